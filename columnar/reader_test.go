package columnar

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/value"
)

// TestChangesOverChunk checks that a copy with several chunks shows the same rows as the table, at the timestamp of
// the copy and at later ones.
func TestChangesOverChunk(t *testing.T) {
	h := newHarness(t, vfs.NewMem(), `CREATE TABLE T (Id INT64 NOT NULL, Name STRING(MAX), Stamp TIMESTAMP) PRIMARY KEY (Id DESC)`)
	defer h.close()
	tab := h.catalog.Table("T")
	const rows = MaxRows + 1000
	put := func(id int, name string) []value.Value {
		return []value.Value{value.OfInt64(int64(id)), value.OfString(name), value.OfTimestamp(int64(id), 5)}
	}
	for at := 0; at < rows; at += 5000 {
		m := table.Mutation{Op: table.InsertOrUpdate, Table: tab, Columns: tab.Columns}
		for id := at; id < min(at+5000, rows); id++ {
			m.Rows = append(m.Rows, put(id, fmt.Sprint("name", id)))
		}
		if !h.commit(m) {
			t.Fatal("refused")
		}
	}
	src := h.source(tab, nil, h.now)
	c := h.build(src)
	if n := len(c.Chunks()); n != 2 {
		t.Fatalf("%d chunks", n)
	}
	m := table.Mutation{Op: table.InsertOrUpdate, Table: tab, Columns: tab.Columns}
	for _, id := range []int{-5, 7, 20_000, 20_001, 33_000, rows, rows + 7} {
		m.Rows = append(m.Rows, put(id, "changed"))
	}
	m.Rows = append(m.Rows, []value.Value{value.OfInt64(500), value.OfString("late"), value.OfTimestamp(253402300799, 999_999_999)})
	h.commit(m)
	h.commit(table.Mutation{Op: table.Delete, Table: tab, Keys: table.KeySet{Keys: [][]value.Value{{value.OfInt64(0)}, {value.OfInt64(rows - 1)}, {value.OfInt64(8)}}}})
	for at := src.At; at <= h.now; at++ {
		read := Read{Projection: src.Projection, At: at}
		read.Spans, _ = src.Spans(table.KeySet{All: true})
		want, err := h.fromRows(read)
		if err != nil {
			t.Fatal(err)
		}
		got, err := h.fromCopy(c, read, nil)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want) {
			t.Errorf("at %d: %d rows, want %d", at, len(got), len(want))
		}
	}
}

// TestReleaseBehindChanges checks that after Release a Reader has no iterator open, even after the last changed row of
// a chunk.
func TestReleaseBehindChanges(t *testing.T) {
	h := newHarness(t, vfs.NewMem(), `CREATE TABLE T (Id INT64 NOT NULL) PRIMARY KEY (Id)`)
	tab := h.catalog.Table("T")
	h.commit(table.Mutation{Op: table.Insert, Table: tab, Columns: tab.Columns, Rows: [][]value.Value{{value.OfInt64(1)}}})
	src := h.source(tab, nil, h.now)
	c := h.build(src)
	c.minSlice = 1
	h.commit(table.Mutation{Op: table.Insert, Table: tab, Columns: tab.Columns, Rows: [][]value.Value{{value.OfInt64(-1)}}})
	if err := h.store.Flush(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	read := Read{Projection: src.Projection, At: h.now}
	read.Spans, _ = src.Spans(table.KeySet{All: true})
	r := c.Open(t.Context(), h.view(read.At), read)
	for range 2 { // the first run has the row that is newer than the chunk, the second the row of the chunk
		if n, err := r.Next(); n != 1 || err != nil {
			t.Fatal(n, err)
		}
	}
	r.Release()
	h.close() // fails if an iterator is still open
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

// TestDroppedDatabase checks that a read of a copy fails with the same error as reads of the table if the database is
// dropped before the read has loaded a column. The read must not report damage.
func TestDroppedDatabase(t *testing.T) {
	h := newHarness(t, vfs.NewMem(), `CREATE TABLE T (Id INT64 NOT NULL, Name STRING(MAX)) PRIMARY KEY (Id)`)
	defer h.close()
	versions := mvcc.New(h.store)
	h.rows = versions.In(testSpace)
	var err error
	if h.copies, err = Open(h.rows); err != nil {
		t.Fatal(err)
	}
	tab := h.catalog.Table("T")
	put := func(id int64) {
		h.commit(table.Mutation{Op: table.Insert, Table: tab, Columns: tab.Columns, Rows: [][]value.Value{{value.OfInt64(id), value.OfString("name")}}})
	}
	put(1)
	src := h.source(tab, nil, h.now)
	c := h.build(src)
	c.minSlice = 1
	put(-1)
	read := Read{Projection: src.Projection, At: h.now}
	read.Spans, _ = src.Spans(table.KeySet{All: true})
	r := c.Open(t.Context(), h.view(read.At), read)
	defer r.Close()
	if n, err := r.Next(); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	gone := errors.New("the database was dropped")
	b := h.store.NewBatch()
	defer b.Close()
	if err := errors.Join(Erase(b, testSpace), versions.Drop(b, testSpace, gone), b.CommitNoSync()); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Next(); !errors.Is(err, gone) || c.Chunks()[0].Damaged {
		t.Errorf("%v, %+v", err, c.Chunks())
	}
}
