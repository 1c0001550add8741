package columnar

import (
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/crowfoot-db/crowfoot/memory"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// TestLargeRows checks that a chunk of large rows ends early, and that a row larger than MaxBytes gets a chunk of its
// own. The memory that Write and a Reader use must be charged and limited.
func TestLargeRows(t *testing.T) {
	h := newHarness(t, vfs.NewMem(), `CREATE TABLE T (Id INT64 NOT NULL, Data BYTES(MAX)) PRIMARY KEY (Id)`)
	defer h.close()
	tab := h.catalog.Table("T")
	const largest = 10 << 20
	for i, size := range []int{10, largest, 3 << 20, 3 << 20, 3 << 20, 100, largest, largest} {
		row := []value.Value{value.OfInt64(int64(i)), value.OfBytes(make([]byte, size))}
		if !h.commit(table.Mutation{Op: table.InsertOrUpdate, Table: tab, Columns: tab.Columns, Rows: [][]value.Value{row}}) {
			t.Fatal("refused")
		}
	}
	budget := memory.NewBudget(256 << 20)
	account := budget.Open(memory.Request)
	src := h.source(tab, nil, h.now)
	src.Memory = account
	c := h.build(src)
	var rows []int64
	for _, ch := range c.Chunks() {
		rows = append(rows, ch.Rows)
		if ch.Rows > 1 && ch.Size > MaxBytes {
			t.Errorf("a chunk of %d rows has %d bytes", ch.Rows, ch.Size)
		}
	}
	if !slices.Equal(rows, []int64{1, 1, 2, 2, 1, 1}) {
		t.Errorf("chunks have %d rows", rows)
	}
	if reserved := budget.Usage().Reserved; reserved > 0 {
		t.Errorf("%d bytes are charged after the chunks were written", reserved)
	}
	// After a change of a few bytes, a read merges the chunks with the change. None of the chunks' rows may be copied
	// into a batch with other rows.
	h.commit(table.Mutation{Op: table.InsertOrUpdate, Table: tab, Columns: tab.Columns, Rows: [][]value.Value{{value.OfInt64(3), value.OfBytes([]byte("small"))}}})
	read := Read{Projection: src.Projection, At: h.now, Memory: account}
	read.Spans, _ = src.Spans(table.KeySet{All: true})
	want, err := h.fromRows(read)
	if err != nil {
		t.Fatal(err)
	}
	most := int64(0)
	got, err := h.fromCopy(c, read, func(*Reader) { most = max(most, budget.Usage().Reserved) })
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%d rows, %v", len(got), err)
	}
	if most < largest || most > 5*largest {
		t.Errorf("%d bytes were charged", most)
	}
	if reserved := budget.Usage().Reserved; reserved > 0 {
		t.Errorf("%d bytes are charged after the read", reserved)
	}
	// If there is not enough memory, a read and a write must return an error.
	small := memory.NewBudget(4 << 20).Open(memory.Request)
	read.Memory, src.Memory = small, small
	if _, err := h.fromCopy(c, read, nil); !usererror.IsExhausted(err) {
		t.Errorf("read without room: %v", err)
	}
	if _, err := c.Write(t.Context(), src, c.Chunks()[1].Span); !usererror.IsExhausted(err) {
		t.Errorf("write without room: %v", err)
	}
}
