package table

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/memory"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// TestLargeRows: a large row is charged while it is the current one, whether it is got by its key or found by a scan. One for which there is no
// room is refused.
func TestLargeRows(t *testing.T) {
	s := newScript()
	if err := s.ddl("CREATE TABLE T (Id INT64 NOT NULL, V STRING(MAX)) PRIMARY KEY (Id)"); err != nil {
		t.Fatal(err)
	}
	tab := s.catalog.Table("T")
	m := Mutation{Op: InsertOrUpdate, Table: tab, Columns: tab.Columns}
	sizes := []int{10, 1 << 20, 10, 2 << 20}
	for i, n := range sizes {
		m.Rows = append(m.Rows, []value.Value{value.OfInt64(int64(i)), value.OfString(strings.Repeat("x", n))})
	}
	ctx := context.Background()
	if err := newFiller(s.m, NewDescriptors(s.catalog), testNow, &Chunk{Rows: 10}).Mutate(ctx, &m); err != nil {
		t.Fatal(err)
	}
	p, err := NewProjection(tab, nil, tab.Columns)
	if err != nil {
		t.Fatal(err)
	}
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
			if taken := budget.Usage().Taken; (n > LargeRow) != (taken >= int64(2*n)) {
				t.Errorf("%s: a row of %d bytes: %d bytes are taken", name, n, taken)
			}
			if wire := len(rows.AppendWire(nil)); n > LargeRow && rows.Size() < wire {
				t.Errorf("%s: a row of %d bytes was taken for one of %d", name, wire, rows.Size())
			}
		}
		if _, err := rows.Next(); usererror.CodeOf(err) != codes.ResourceExhausted {
			t.Errorf("%s: the row that is too large: %v", name, err)
		}
		if err := rows.Close(); err != nil || budget.Usage().Taken != 0 {
			t.Errorf("%s: closed: %v, %d bytes are taken", name, err, budget.Usage().Taken)
		}
	}
}
