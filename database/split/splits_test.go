package split

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/value"
)

// TestSplits checks that a split begins at each point that has not expired and whose table or index exists, and nowhere
// else.
func TestSplits(t *testing.T) {
	w := newWorld(t)
	w.wantSplits("<begin>-<end>")
	null := value.Null(value.Int64)
	w.ok(w.AddPoints([]Point{w.point(7, time.Hour), w.point(3, time.Minute), w.indexPoint("b", null), w.indexPoint("a", value.OfInt64(9))}))
	w.wantSplits("<begin>-T(3)", "T(3)-T(7)", "T(7)-ByB(a,9)", "ByB(a,9)-ByB(b)", "ByB(b)-<end>")
	s := w.Manager.at(w.now)
	key := func(a int64) []byte {
		return table.TableLayout(w.catalog.Table("T")).AppendKey(nil, []value.Value{value.OfInt64(a)})
	}
	for a, want := range map[int64]int{2: 0, 3: 1, 6: 1, 7: 2, 100: 2} {
		if got := s.of(key(a)); got != want {
			t.Errorf("T(%d) is in split %d, not %d", a, got, want)
		}
	}
	if s.before(key(3)) != 0 || s.before(key(4)) != 1 || s.before(nil) != 4 {
		t.Error("bounds lie in wrong splits")
	}
	w.now = w.now.Add(time.Minute)
	w.wantSplits("<begin>-T(7)", "T(7)-ByB(a,9)", "ByB(a,9)-ByB(b)", "ByB(b)-<end>")
	w.alter("DROP INDEX ByB")
	w.wantSplits("<begin>-T(7)", "T(7)-<end>")
}

// TestAffectedTables compares the tables of splits with the example in
// https://cloud.google.com/spanner/docs/introspection/hot-split-statistics#example_of_splits. That page lists the index
// on Users with all splits. Here it is listed with the splits that can hold its entries.
func TestAffectedTables(t *testing.T) {
	w := newWorld(t,
		"CREATE TABLE Users (UserId INT64 NOT NULL, FirstName STRING(MAX)) PRIMARY KEY (UserId)",
		"CREATE INDEX UsersByFirstName ON Users(FirstName DESC)",
		"CREATE TABLE Threads (UserId INT64 NOT NULL, ThreadId STRING(MAX) NOT NULL) PRIMARY KEY (UserId, ThreadId), INTERLEAVE IN PARENT Users ON DELETE CASCADE",
		"CREATE TABLE Messages (UserId INT64 NOT NULL, ThreadId STRING(MAX) NOT NULL, MessageId INT64 NOT NULL, Subject STRING(MAX)) PRIMARY KEY (UserId, ThreadId, MessageId), INTERLEAVE IN PARENT Threads ON DELETE CASCADE",
		"CREATE INDEX MessagesIdx ON Messages(UserId, ThreadId, Subject), INTERLEAVE IN Threads")
	w.alter("DROP INDEX ByB", "DROP TABLE T")
	bound := func(text string) []byte {
		name, parts, ok := strings.Cut(strings.TrimSuffix(text, ")"), "(")
		if !ok {
			return nil
		}
		var vals []value.Value
		for _, p := range strings.FieldsFunc(parts, func(r rune) bool { return r == ',' }) {
			if n, err := strconv.ParseInt(p, 10, 64); err == nil {
				vals = append(vals, value.OfInt64(n))
			} else {
				vals = append(vals, value.OfString(p))
			}
		}
		for l := range table.Layouts(w.catalog) {
			if l.Name() == name {
				return l.AppendKey(nil, vals)
			}
		}
		t.Fatalf("no table %s", name)
		return nil
	}
	for _, c := range []struct{ start, limit, want string }{
		{"Users(3)", "Users(10)", "Messages MessagesIdx Threads Users"},
		{"Messages(3,a,1)", "Threads(3,aa)", "Messages MessagesIdx Threads"},
		{"Messages(3,a,1)", "<end>", "Messages MessagesIdx Threads Users UsersByFirstName"},
		{"<begin>", "Users(9)", "Messages MessagesIdx Threads Users"},
		{"Messages(3,a,1)", "Threads(10)", "Messages MessagesIdx Threads Users"},
		{"Users()", "<end>", "Messages MessagesIdx Threads Users UsersByFirstName"},
		{"Threads(10)", "UsersByFirstName(abc)", "Messages MessagesIdx Threads Users UsersByFirstName"},
		{"Threads(3)", "Threads(3,a)", "Messages MessagesIdx Threads"},
		{"UsersByFirstName(abc)", "<end>", "UsersByFirstName"},
		{"<begin>", "<end>", "Messages MessagesIdx Threads Users UsersByFirstName"},
	} {
		start, limit := bound(c.start), bound(c.limit)
		if got := strings.Join(w.affected(start, limit), " "); got != c.want {
			t.Errorf("%s-%s: got %s, want %s", c.start, c.limit, got, c.want)
		}
		if from, to := w.boundTexts(start, limit); from != c.start || to != c.limit {
			t.Errorf("%s-%s is printed as %s-%s", c.start, c.limit, from, to)
		}
	}
}

// TestLargeSplits checks that repeated calls of SplitBySize divide a large split at rows until no split is large, and
// that small splits are joined again.
func TestLargeSplits(t *testing.T) {
	w := newWorld(t, "CREATE TABLE U (A INT64 NOT NULL) PRIMARY KEY (A)")
	w.alter("DROP INDEX ByB")
	w.fill(0, 4000)
	w.crash() // moves the rows from memory to files
	w.ok(w.AddPoints([]Point{w.point(1000, time.Hour)}))
	const size = 1 << 20 // about the size of a quarter of the rows
	for range 4 {
		w.ok(w.SplitBySize(size))
	}
	s := w.Manager.at(w.now)
	if len(s.bounds) < 4 {
		t.Fatalf("splits: %v", w.splitTexts())
	}
	for i := range len(s.bounds) + 1 {
		start, limit := s.start(i), s.limit(i)
		if limit == nil {
			space, _ := table.TableLayout(w.catalog.Table("T")).Space()
			limit = space.End
		}
		if n, err := w.rows.Size(start, limit); err != nil || n > size+size/10 {
			t.Errorf("split %d has %d bytes, %v", i, n, err)
		}
	}
	before := w.splitTexts()
	w.ok(w.SplitBySize(size))
	w.wantSplits(before...)

	w.ok(w.SplitBySize(1 << 30))
	w.wantSplits("<begin>-T(1000)", "T(1000)-<end>")
	w.alter("DROP TABLE T")
	w.ok(w.SplitBySize(size))
	w.wantSplits("<begin>-<end>")
}
