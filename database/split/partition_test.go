package split

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/txn"
	"github.com/crowfoot-db/crowfoot/value"
)

// A part is the number of rows in one partition, and the number of their bytes.
type part struct{ rows, bytes int64 }

// partition divides spans of a layout into partitions and reads each of them. It checks that the partitions together
// have all rows, once and in order. It returns the size of each partition and the text of its first key.
func (w *world) partition(l *table.Layout, spans []table.Span, size, most int64) (parts []part, begins []string) {
	w.Helper()
	ctx := context.Background()
	view, err := w.txns.Snapshot(ctx, txn.Bound{})
	w.ok(err)
	read := func(spans []table.Span) (p part, keys []string) {
		rows := table.Read{Projection: &table.Projection{Layout: l}, Spans: spans}.Open(ctx, view)
		defer rows.Close()
		for {
			ok, err := rows.Next()
			w.ok(err)
			if !ok {
				return p, keys
			}
			p.rows, p.bytes, keys = p.rows+1, p.bytes+int64(rows.StoredSize()), append(keys, string(rows.Key()))
		}
	}
	_, all := read(spans)
	list, err := w.Partition(ctx, Partitioning{Layout: l, Spans: spans, View: view, Bytes: size, Most: most})
	w.ok(err)
	var partKeys []string
	for _, span := range list {
		p, keys := read(table.Within(spans, span))
		parts, partKeys, begins = append(parts, p), append(partKeys, keys...), append(begins, w.keyText(span.Start))
	}
	if strings.Join(partKeys, "|") != strings.Join(all, "|") {
		w.Errorf("%s: the parts have %d rows, or others, not the %d", l.Name(), len(partKeys), len(all))
	}
	return parts, begins
}

// wantBalance checks that the number of partitions is count, and that no partition has more than twice the bytes of
// another.
func (w *world) wantBalance(what string, parts []part, count int) {
	w.Helper()
	least, most := parts[0].bytes, parts[0].bytes
	for _, p := range parts {
		least, most = min(least, p.bytes), max(most, p.bytes)
	}
	if len(parts) != count || most > 2*least {
		w.Errorf("%s: %d partitions, want %d; the largest has %d bytes, the smallest %d: %v", what, len(parts), count, most, least, parts)
	}
}

func all(l *table.Layout) []table.Span {
	space, _ := l.Space()
	return []table.Span{space}
}

// TestPartitionCount checks the number of partitions. It must be the requested number, but at most one for each
// thousand rows. If the request gives the size of a partition, the number must be the size of all rows divided by that
// size, but at most the requested number.
func TestPartitionCount(t *testing.T) {
	w := newWorld(t)
	l := table.TableLayout(w.catalog.Table("T"))
	for _, c := range []struct {
		rows       int64
		size, most int64
		want       int
	}{
		{0, 0, 0, 1}, {1, 0, 100, 1}, {999, 0, 0, 1}, {1999, 0, 0, 1}, {2000, 0, 0, 2}, {5000, 0, 0, 5}, {5000, 0, 3, 3}, {5000, 0, 1, 1}, {5000, 0, 200_000, 5},
		{5000, 1 << 20, 0, 5}, {5000, 1 << 20, 3, 3}, {5000, 1 << 40, 0, 1}, {5000, 100 << 10, 0, 50},
	} {
		if have, _ := w.partition(l, all(l), 0, 1); have[0].rows < c.rows {
			w.fill(have[0].rows, c.rows)
		}
		parts, _ := w.partition(l, all(l), c.size, c.most)
		w.wantBalance(fmt.Sprint(c), parts, c.want)
	}
}

// TestPartitionsAtPoints checks that a partition begins at each split point of a user, even if the partitions become
// small.
func TestPartitionsAtPoints(t *testing.T) {
	w := newWorld(t)
	w.fill(0, 100)
	w.ok(w.AddPoints([]Point{w.point(25, time.Hour), w.point(50, time.Hour), w.point(75, time.Hour)}))
	l := table.TableLayout(w.catalog.Table("T"))
	for _, c := range []struct {
		size, most int64
		want       string
	}{
		{0, 0, "[T() T(25) T(50) T(75)]"},
		{1 << 40, 100, "[T() T(25) T(50) T(75)]"},
		{0, 2, "[T() T(50)]"},
		{0, 3, "[T() T(25) T(50)]"},
		{0, 1, "[T()]"},
		{1 << 10, 8, "[T() T(13) T(25) T(37) T(50) T(62) T(75) T(87)]"},
	} {
		if _, begins := w.partition(l, all(l), c.size, c.most); fmt.Sprint(begins) != c.want {
			t.Errorf("%d bytes, %d partitions: got %s, want %s", c.size, c.most, begins, c.want)
		}
	}
	key := func(a int64) []byte { return l.AppendKey(nil, []value.Value{value.OfInt64(a)}) }
	if _, begins := w.partition(l, []table.Span{{Start: key(30), End: key(60)}, {Start: key(80)}}, 0, 0); fmt.Sprint(begins) != "[T() T(50) T(75)]" {
		t.Errorf("part of a table: %s", begins)
	}
}

// partitionShapes are tables whose rows have different sizes and distributions.
var partitionShapes = []struct {
	name, ddl, read string
	row             func(i int64) []value.Value
}{
	{"ascending", "CREATE TABLE S (A INT64, B STRING(MAX)) PRIMARY KEY (A)", "S", func(i int64) []value.Value {
		return []value.Value{value.OfInt64(i), value.OfString(noise(i))}
	}},
	{"descending", "CREATE TABLE S (A INT64, B STRING(MAX)) PRIMARY KEY (A DESC)", "S", func(i int64) []value.Value {
		return []value.Value{value.OfInt64(i), value.OfString(noise(i))}
	}},
	{"sizes grow", "CREATE TABLE S (A INT64, B STRING(MAX)) PRIMARY KEY (A)", "S", func(i int64) []value.Value {
		return []value.Value{value.OfInt64(i), value.OfString(noise(i)[:i/4])}
	}},
	{"zeros in keys", "CREATE TABLE S (A INT64, B STRING(MAX)) PRIMARY KEY (A)", "S", func(i int64) []value.Value {
		return []value.Value{value.OfInt64(i%3<<48 | i), value.OfString(noise(i))}
	}},
	{"two long prefixes", "CREATE TABLE S (P STRING(MAX), A INT64, B STRING(MAX)) PRIMARY KEY (P, A)", "S", func(i int64) []value.Value {
		return []value.Value{value.OfString(strings.Repeat("p", 50) + fmt.Sprint(i%7/6)), value.OfInt64(i), value.OfString(noise(i))}
	}},
	{"index", "CREATE TABLE S (A INT64, B STRING(MAX)) PRIMARY KEY (A); CREATE INDEX X ON S (B DESC)", "X", func(i int64) []value.Value {
		return []value.Value{value.OfInt64(i), value.OfString(noise(i))}
	}},
}

// TestPartitionsOfShapes checks that partitions have about the same size in three cases: the rows are only in memory,
// they are in files, or they are too many for all of them to be read. The large rows of another table, whose keys lie
// before these rows, must not count.
func TestPartitionsOfShapes(t *testing.T) {
	for _, c := range partitionShapes {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, strings.Split(c.ddl, "; ")...)
			w.fill(0, 1000)
			s := w.catalog.Table("S")
			m := table.Mutation{Op: table.Insert, Table: s, Columns: s.Columns}
			for i := range int64(4000) {
				m.Rows = append(m.Rows, c.row(i))
			}
			w.commit(m)
			l := table.TableLayout(s)
			if c.read != "S" {
				l = table.IndexLayout(w.catalog.Index(c.read))
			}
			for _, most := range []int64{2, 4, 64} {
				parts, _ := w.partition(l, all(l), 0, most)
				w.wantBalance(fmt.Sprintf("in memory, %d", most), parts, int(min(most, 4)))
			}
			w.crash()
			for _, most := range []int64{2, 3, 64} {
				parts, _ := w.partition(l, all(l), 0, most)
				w.wantBalance(fmt.Sprintf("in files, %d", most), parts, int(min(most, 4)))
			}
		})
	}
}

// TestPartitionsOfParents checks that partitions of parents with large children are balanced by the bytes of the
// parents alone, and partitions of the children by the bytes of the children.
func TestPartitionsOfParents(t *testing.T) {
	w := newWorld(t, "CREATE TABLE P (A INT64, B STRING(MAX)) PRIMARY KEY (A)",
		"CREATE TABLE C (A INT64, N INT64, B STRING(MAX)) PRIMARY KEY (A, N), INTERLEAVE IN PARENT P")
	parent, child := w.catalog.Table("P"), w.catalog.Table("C")
	parents := table.Mutation{Op: table.Insert, Table: parent, Columns: parent.Columns}
	children := table.Mutation{Op: table.Insert, Table: child, Columns: child.Columns}
	for i := range int64(3000) {
		parents.Rows = append(parents.Rows, []value.Value{value.OfInt64(i), value.OfString("parent")})
		for n := range 20 * (i / 2900) { // the last parents have many children
			children.Rows = append(children.Rows, []value.Value{value.OfInt64(i), value.OfInt64(n), value.OfString(noise(i))})
		}
	}
	w.commit(parents, children)
	for _, state := range []string{"in memory", "in files"} {
		for _, s := range []*table.Layout{table.TableLayout(parent), table.TableLayout(child)} {
			count := map[string]int{"P": 3, "C": 2}[s.Name()]
			for _, most := range []int64{2, 64} {
				parts, _ := w.partition(s, all(s), 0, most)
				w.wantBalance(fmt.Sprintf("%s, %s, %d", s.Name(), state, most), parts, min(int(most), count))
			}
		}
		w.crash()
	}
}

// TestPartitionsAfterDeletes checks that deleted rows and old versions of rows do not count for the size of a
// partition.
func TestPartitionsAfterDeletes(t *testing.T) {
	w := newWorld(t)
	w.alter("DROP INDEX ByB")
	w.fill(0, 8000)
	w.crash()
	s := w.catalog.Table("T")
	l := table.TableLayout(s)
	var keys table.KeySet
	for a := range int64(4000) {
		keys.Keys = append(keys.Keys, []value.Value{value.OfInt64(a)})
	}
	w.commit(table.Mutation{Op: table.Delete, Table: s, Keys: keys})
	for range 4 {
		w.fill(7000, 8000)
	}
	for _, most := range []int64{2, 3} {
		parts, _ := w.partition(l, all(l), 0, most)
		w.wantBalance(fmt.Sprint(most), parts, int(most))
	}
}

// TestPartitionsOfLargeRows checks that a few rows of a megabyte each are divided into several partitions if the
// requested size is small enough.
func TestPartitionsOfLargeRows(t *testing.T) {
	w := newWorld(t)
	w.alter("DROP INDEX ByB")
	s := w.catalog.Table("T")
	for a := range int64(12) {
		w.commit(table.Mutation{Op: table.Insert, Table: s, Columns: s.Columns, Rows: [][]value.Value{{value.OfInt64(a), value.OfString(strings.Repeat(noise(a), 1000))}}})
	}
	l := table.TableLayout(s)
	for _, state := range []string{"in memory", "in files"} {
		for _, c := range []struct {
			size, most int64
			want       int
		}{{0, 0, 1}, {3 << 20, 0, 4}, {1, 2, 2}, {1, 0, 12}} {
			parts, _ := w.partition(l, all(l), c.size, c.most)
			w.wantBalance(fmt.Sprint(state, c), parts, c.want)
		}
		w.crash()
	}
}

// TestPartitionsOfRanges checks that the partitions of key ranges and single keys are balanced by the rows in these
// ranges. Rows outside the ranges must not count.
func TestPartitionsOfRanges(t *testing.T) {
	w := newWorld(t)
	w.fill(0, 6000)
	l := table.TableLayout(w.catalog.Table("T"))
	key := func(a int64) []byte { return l.AppendKey(nil, []value.Value{value.OfInt64(a)}) }
	spans := []table.Span{{Start: key(5)}, {Start: key(10), End: key(1010)}, {Start: key(3000)}, {Start: key(5000), End: key(7000)}, {Start: key(9000)}}
	for _, state := range []string{"in memory", "in files"} {
		parts, _ := w.partition(l, spans, 0, 2)
		w.wantBalance(state, parts, 2)
		w.crash()
	}
	if none, _ := w.partition(l, spans[4:], 1, 10); len(none) != 1 {
		t.Errorf("of no rows there are %d partitions", len(none))
	}
}

// TestHalves checks that the method half divides a span into two parts that both have a key. The test divides a span,
// then both of its parts, and so on, until each part has one key.
func TestHalves(t *testing.T) {
	w := newWorld(t, "CREATE TABLE S (P STRING(MAX), A INT64) PRIMARY KEY (P, A)")
	s := w.catalog.Table("S")
	m := table.Mutation{Op: table.Insert, Table: s, Columns: s.Columns}
	for _, p := range []string{"", "\x00", "\x00\x00", "a", "aaaaaaaaaaaaaaaaaaaa", "aaaaaaaaaaaaaaaaaaaa\x00", "aaaaaaaaaaaaaaaaaaab"} {
		for _, a := range []int64{-1 << 60, -1, 0, 1, 255, 256, 1 << 32, 1<<32 + 1, 1 << 56} {
			m.Rows = append(m.Rows, []value.Value{value.OfString(p), value.OfInt64(a)})
		}
	}
	w.commit(m)
	l := table.TableLayout(s)
	space, _ := l.Space()
	var halves int
	var cutUp func(span table.Span)
	cutUp = func(span table.Span) {
		halves++
		bound, err := w.half(span, 1<<20) // the size is wrong on purpose: the result must not depend on it
		w.ok(err)
		if bound == nil {
			return
		}
		for _, h := range []table.Span{{Start: span.Start, End: bound}, {Start: bound, End: span.End}} {
			if first, _, err := w.rows.Ends(h.Start, h.End); err != nil || first == nil {
				t.Fatalf("no key between %x and %x: %v", h.Start, h.End, err)
			}
			cutUp(h)
		}
	}
	cutUp(space)
	if want := 2*len(m.Rows) - 1; halves != want {
		t.Errorf("%d rows are cut into %d spans, want %d", len(m.Rows), halves, want)
	}
}
