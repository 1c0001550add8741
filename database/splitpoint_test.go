package database

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/kv/pebble"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// splitWorld is a registry whose clock and file system the test holds, with a database of a table T (A, B) and its index ByB.
type splitWorld struct {
	*testing.T
	fs  *vfs.MemFS
	now time.Time
	r   *Registry
	db  *Database
	end func()
}

func newSplitWorld(t *testing.T, statements ...string) *splitWorld {
	w := &splitWorld{T: t, fs: vfs.NewCrashableMem(), now: time.Date(2030, 1, 2, 3, 4, 0, 0, time.UTC)}
	w.open()
	t.Cleanup(func() { w.end() })
	statements = append([]string{"CREATE TABLE T (A INT64 NOT NULL, B STRING(MAX)) PRIMARY KEY (A)", "CREATE INDEX ByB ON T(B)"}, statements...)
	db, err := w.r.CreateDatabase(context.Background(), testName, statements)
	w.ok(err)
	w.db = db
	return w
}

func (w *splitWorld) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *splitWorld) open() {
	store, err := pebble.Open("data", w.fs)
	w.ok(err)
	w.r, err = Open(store, Config{Clock: func() time.Time { return w.now }, Log: slog.New(slog.DiscardHandler)})
	w.ok(err)
	w.end = func() {
		w.ok(w.r.Close())
		w.ok(store.Close())
	}
}

// crash goes on with what was synced, as after kill -9.
func (w *splitWorld) crash() {
	after := w.fs.CrashClone(vfs.CrashCloneCfg{})
	w.end()
	w.fs = after
	w.open()
	db, err := w.r.Database(testName)
	w.ok(err)
	w.db = db
}

// at is a point of T that lives for so long.
func (w *splitWorld) at(a int64, life time.Duration) SplitPoint {
	return SplitPoint{Table: w.db.Catalog().Table("T"), Key: []value.Value{value.OfInt64(a)}, Initiator: "test", Expires: w.now.Add(life)}
}

// atIndex is a point of ByB; a NULL table key is none.
func (w *splitWorld) atIndex(b string, a value.Value) SplitPoint {
	x := w.db.Catalog().Index("ByB")
	p := SplitPoint{Table: x.Table, Index: x, Key: []value.Value{value.OfString(b)}, Initiator: "test", Expires: w.now.Add(time.Hour)}
	if !a.IsNull() {
		p.TableKey = []value.Value{a}
	}
	return p
}

// shows wants USER_SPLIT_POINTS to hold these keys.
func (w *splitWorld) shows(want ...string) {
	w.Helper()
	var got []string
	for _, row := range systemRows(w.T, w.db, "SPANNER_SYS.USER_SPLIT_POINTS") {
		got = append(got, row[3].AsString())
	}
	if strings.Join(got, "; ") != strings.Join(want, "; ") {
		w.Errorf("got  %v\nwant %v", got, want)
	}
}

// stored is how many points the store holds.
func (w *splitWorld) stored() (n int) {
	w.ok(w.r.eachMeta(metaSplitPoint, func(string, []byte) error { n++; return nil }))
	return n
}

// TestSplitPointsSurvive: a crash loses none, and what expired or was dropped does not come back.
func TestSplitPointsSurvive(t *testing.T) {
	w := newSplitWorld(t)
	null := value.Null(value.Int64)
	w.ok(w.db.AddSplitPoints([]SplitPoint{w.at(7, time.Hour), w.at(3, 2*time.Hour), w.atIndex("b", null), w.atIndex("a", value.OfInt64(9))}))
	byA := "Index: ByB on T, Index Key: (a), Primary Table Key: (9)"
	byB := "Index: ByB on T, Index Key: (b), Primary Table Key: (<begin>)"
	w.crash()
	w.shows("T(3)", "T(7)", byA, byB)

	w.ok(w.db.UpdateSchema(context.Background(), []string{"DROP INDEX ByB"}, nil))
	w.shows("T(3)", "T(7)")
	w.ok(w.db.UpdateSchema(context.Background(), []string{"CREATE INDEX ByB ON T(B)", "RENAME TABLE T TO U"}, nil))
	w.shows("U(3)", "U(7)")
	w.now = w.now.Add(time.Hour)
	w.shows("U(3)")
	if n := w.stored(); n != 4 {
		t.Errorf("%d points stored before the sweep", n)
	}
	w.ok(w.db.sweepSplitPoints())
	if n := w.stored(); n != 1 {
		t.Errorf("%d points stored after the sweep", n)
	}
	w.crash()
	w.shows("U(3)")
	w.ok(w.db.UpdateSchema(context.Background(), []string{"DROP INDEX ByB", "DROP TABLE U"}, nil))
	w.shows()
}

// TestSplitPointsOfDroppedDatabase: they go with it, and no more can be added.
func TestSplitPointsOfDroppedDatabase(t *testing.T) {
	w := newSplitWorld(t)
	w.ok(w.db.AddSplitPoints([]SplitPoint{w.at(7, time.Hour)}))
	w.ok(w.r.DropDatabase(context.Background(), testName))
	if err := w.db.AddSplitPoints([]SplitPoint{w.at(8, time.Hour)}); usererror.CodeOf(err) != codes.NotFound {
		t.Errorf("added to a dropped database: %v", err)
	}
	w.ok(w.db.sweepSplitPoints())
	if n := w.stored(); n != 0 {
		t.Errorf("%d points left", n)
	}
}

// TestSplitPointsAllOrNone: one that cannot be added keeps the others away.
func TestSplitPointsAllOrNone(t *testing.T) {
	w := newSplitWorld(t, "CREATE TABLE C (B STRING(MAX), A INT64) PRIMARY KEY (A, B)", "CREATE INDEX CByB ON C(B)")
	x := w.db.Catalog().Index("CByB")
	differs := SplitPoint{Table: x.Table, Index: x, Key: []value.Value{value.OfString("b")}, TableKey: []value.Value{value.OfInt64(1), value.OfString("c")}}
	if err := w.db.AddSplitPoints([]SplitPoint{w.at(1, time.Hour), differs}); usererror.CodeOf(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "differing in column B") {
		t.Errorf("index key and table key that differ: %v", err)
	}
	differs.TableKey[1], differs.Expires = value.OfString("b"), w.now.Add(time.Hour)
	w.ok(w.db.AddSplitPoints([]SplitPoint{differs}))
	w.shows("Index: CByB on C, Index Key: (b), Primary Table Key: (1,b)")

	var many []SplitPoint
	for a := range int64(maxSplitPoints) {
		many = append(many, w.at(a, time.Hour))
	}
	if err := w.db.AddSplitPoints(many); usererror.CodeOf(err) != codes.ResourceExhausted {
		t.Errorf("too many: %v", err)
	}
	if n := w.stored(); n != 1 {
		t.Errorf("%d points stored", n)
	}
	w.ok(w.db.AddSplitPoints(many[1:]))
	w.now = w.now.Add(time.Hour) // they make room when they expire
	w.ok(w.db.AddSplitPoints([]SplitPoint{w.at(1, time.Hour)}))
	w.shows("T(1)")
}

// TestSplitPointsAtOnce has many add at once; none is lost.
func TestSplitPointsAtOnce(t *testing.T) {
	w := newSplitWorld(t)
	var adding sync.WaitGroup
	var want []string
	for a := range int64(20) {
		want = append(want, fmt.Sprintf("T(%d)", 10+a))
		adding.Go(func() {
			if err := w.db.AddSplitPoints([]SplitPoint{w.at(10+a, time.Hour)}); err != nil {
				t.Error(err)
			}
		})
	}
	adding.Wait()
	w.crash()
	w.shows(want...)
}
