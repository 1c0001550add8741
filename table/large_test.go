package table

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/memory"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// TestLargeRows checks that a large row is charged to the request's memory while it is the current row, whether it was
// found by Get or by a scan. If the memory does not suffice, the read must fail.
func TestLargeRows(t *testing.T) {
	sizes := []int{10, 1 << 20, 10, 2 << 20}
	s, p := rowsOf(t, sizes)
	ctx := context.Background()
	ranges, _ := p.Spans(KeySet{All: true})
	var points KeySet
	for i := range sizes {
		points.Keys = append(points.Keys, []value.Value{value.OfInt64(int64(i))})
	}
	keys, _ := p.Spans(points)
	for name, spans := range map[string][]Span{"scan": ranges, "keys": keys} {
		budget := memory.NewBudget(4 << 20)
		rows := Read{Projection: p, Spans: spans, Memory: budget.Open(memory.Request)}.Open(ctx, s.m)
		for _, n := range sizes[:3] {
			if ok, err := rows.Next(); !ok || err != nil {
				t.Fatalf("%s: %v, %v", name, ok, err)
			}
			if reserved := budget.Usage().Reserved; (n > LargeRow) != (reserved >= int64(2*n)) {
				t.Errorf("%s: a row of %d bytes: %d bytes are taken", name, n, reserved)
			}
			if wire := len(rows.AppendWire(nil)); n > LargeRow && rows.Size() < wire {
				t.Errorf("%s: a row of %d bytes was taken for one of %d", name, wire, rows.Size())
			}
		}
		if _, err := rows.Next(); usererror.CodeOf(err) != codes.ResourceExhausted {
			t.Errorf("%s: the row that is too large: %v", name, err)
		}
		if err := rows.Close(); err != nil || budget.Usage().Reserved != 0 {
			t.Errorf("%s: closed: %v, %d bytes are taken", name, err, budget.Usage().Reserved)
		}
	}
}

// rowsOf makes a table with one row for each of the given sizes in bytes.
func rowsOf(t *testing.T, sizes []int) (*script, *Projection) {
	t.Helper()
	s := newScript()
	if err := s.ddl("CREATE TABLE T (Id INT64 NOT NULL, V STRING(MAX)) PRIMARY KEY (Id)"); err != nil {
		t.Fatal(err)
	}
	tab := s.catalog.Table("T")
	m := Mutation{Op: InsertOrUpdate, Table: tab, Columns: tab.Columns}
	for i, n := range sizes {
		m.Rows = append(m.Rows, []value.Value{value.OfInt64(int64(i)), value.OfString(strings.Repeat("x", n))})
	}
	if err := newFiller(s.m, NewDescriptors(s.catalog), testNow, &Chunk{Rows: 10}).Mutate(context.Background(), &m); err != nil {
		t.Fatal(err)
	}
	p, err := NewProjection(tab, nil, tab.Columns)
	if err != nil {
		t.Fatal(err)
	}
	return s, p
}

// TestLargeRowsKeepTheirCharge checks that a scan keeps its memory charge when it moves from one large row to the next,
// even though another request waits for memory. When the scan moves to a small row, it must release the charge.
func TestLargeRowsKeepTheirCharge(t *testing.T) {
	s, p := rowsOf(t, []int{1 << 20, 1<<20 - 1, 10})
	synctest.Test(t, func(t *testing.T) {
		budget := memory.NewBudget(4 << 20)
		spans, _ := p.Spans(KeySet{All: true})
		rows := Read{Projection: p, Spans: spans, Memory: budget.Open(memory.Request)}.Open(t.Context(), s.m)
		next := func() {
			if ok, err := rows.Next(); !ok || err != nil {
				t.Fatalf("%v, %v", ok, err)
			}
			synctest.Wait()
		}
		next()
		other, waits := budget.Open(memory.Request), true
		go func() {
			if err := other.Grow(t.Context(), 2<<20); err != nil {
				t.Error(err)
			}
			waits = false
		}()
		synctest.Wait()
		if next(); !waits {
			t.Error("the second row gave up the charge of the first")
		}
		if next(); waits {
			t.Error("a small row keeps the charge of the one before")
		}
		other.Close()
		if err := rows.Close(); err != nil || budget.Usage().Reserved != 0 {
			t.Errorf("closed: %v, %d bytes are taken", err, budget.Usage().Reserved)
		}
	})
}
