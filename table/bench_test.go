package table

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/value"
)

// benchTable makes the same table as the points benchmark (package bench): an id and ten columns of strings with 100
// characters.
func benchTable(tb testing.TB, indexes ...string) (*schema.Table, *Descriptors, *mapWriter) {
	s := newScript()
	var columns strings.Builder
	for i := range 10 {
		fmt.Fprintf(&columns, "F%d STRING(100), ", i)
	}
	if err := s.ddl("CREATE TABLE B (Id INT64 NOT NULL, " + columns.String() + ") PRIMARY KEY (Id);" + strings.Join(indexes, ";")); err != nil {
		tb.Fatal(err)
	}
	return s.catalog.Table("B"), NewDescriptors(s.catalog), s.m
}

func benchRows(t *schema.Table, n int) Mutation {
	m := Mutation{Op: InsertOrUpdate, Table: t, Columns: t.Columns}
	for i := range n {
		row := []value.Value{value.OfInt64(int64(i))}
		for f := range 10 {
			row = append(row, value.OfString(fmt.Sprintf("%0100d", i*10+f)))
		}
		m.Rows = append(m.Rows, row)
	}
	return m
}

func loadBench(tb testing.TB, n int) (*schema.Table, *mapWriter) {
	t, tables, m := benchTable(tb)
	c := newFiller(m, tables, testNow, &Chunk{Rows: 1}) // a chunk of one row has no limits
	muts := benchRows(t, n)
	if err := c.Mutate(context.Background(), &muts); err != nil {
		tb.Fatal(err)
	}
	return t, m
}

const benchCount = 10_000

// BenchmarkScanToWire measures reading all rows and encoding them for the response (AppendWire).
func BenchmarkScanToWire(b *testing.B) {
	t, m := loadBench(b, benchCount)
	p, err := NewProjection(t, nil, t.Columns)
	if err != nil {
		b.Fatal(err)
	}
	spans, _ := p.Spans(KeySet{All: true})
	ctx := context.Background()
	var buf []byte
	rows := 0
	for b.Loop() {
		r := Read{Projection: p, Spans: spans}.Open(ctx, m)
		for {
			ok, err := r.Next()
			if err != nil {
				b.Fatal(err)
			}
			if !ok {
				break
			}
			buf = r.AppendWire(buf[:0])
			rows++
		}
	}
	b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "rows/s")
	b.SetBytes(int64(len(buf) * benchCount))
}

// BenchmarkScanTwoColumns measures reading two columns of all rows with Rows.Values.
func BenchmarkScanTwoColumns(b *testing.B) {
	t, m := loadBench(b, benchCount)
	p, _ := NewProjection(t, nil, []*schema.Column{t.Columns[0], t.Columns[3]})
	spans, _ := p.Spans(KeySet{All: true})
	ctx := context.Background()
	var vals []value.Value
	rows := 0
	for b.Loop() {
		r := Read{Projection: p, Spans: spans}.Open(ctx, m)
		for {
			ok, _ := r.Next()
			if !ok {
				break
			}
			vals = r.Values(vals[:0])
			rows++
		}
	}
	b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "rows/s")
}

// BenchmarkPointToWire measures reading one row by its key and encoding it for the response (AppendWire). The time
// includes the computation of the row's Span.
func BenchmarkPointToWire(b *testing.B) {
	t, m := loadBench(b, benchCount)
	p, _ := NewProjection(t, nil, t.Columns)
	ctx := context.Background()
	var buf []byte
	i := int64(0)
	b.ReportAllocs()
	for b.Loop() {
		i = (i + 7919) % benchCount
		spans, err := p.Spans(KeySet{Keys: [][]value.Value{{value.OfInt64(i)}}})
		if err != nil {
			b.Fatal(err)
		}
		r := Read{Projection: p, Spans: spans}.Open(ctx, m)
		if ok, err := r.Next(); !ok || err != nil {
			b.Fatal(ok, err)
		}
		buf = r.AppendWire(buf[:0])
	}
}

// BenchmarkBlindWrites upserts rows with values for all columns, so that no existing row is read.
func BenchmarkBlindWrites(b *testing.B) { benchmarkApply(b, nil, InsertOrUpdate) }

// BenchmarkSingleInsert measures a commit that inserts one row, because most commits write one row.
func BenchmarkSingleInsert(b *testing.B) {
	t, tables, m := benchTable(b)
	muts := []Mutation{benchRows(t, 1)}
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Apply(ctx, m, tables, muts, testNow); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkIndexedWrites writes rows into a table with a unique index.
func BenchmarkIndexedWrites(b *testing.B) {
	benchmarkApply(b, []string{"CREATE UNIQUE INDEX U ON B (F1)"}, InsertOrUpdate)
}

// BenchmarkReferringWrites writes rows into a table with a foreign key.
func BenchmarkReferringWrites(b *testing.B) {
	benchmarkApply(b, []string{"ALTER TABLE B ADD FOREIGN KEY (Id) REFERENCES B (Id)"}, Replace)
}

func benchmarkApply(b *testing.B, indexes []string, op Op) {
	t, tables, m := benchTable(b, indexes...)
	mut := benchRows(t, 1000)
	mut.Op = op
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Apply(ctx, m, tables, []Mutation{mut}, testNow); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/row")
}

// TestScanAllocates checks that a scan allocates nothing per row.
func TestScanAllocates(t *testing.T) {
	tab, m := loadBench(t, 1000)
	p, err := NewProjection(tab, nil, tab.Columns)
	if err != nil {
		t.Fatal(err)
	}
	spans, _ := p.Spans(KeySet{All: true})
	buf := make([]byte, 0, 4096)
	r := Read{Projection: p, Spans: spans}.Open(context.Background(), m)
	if ok, err := r.Next(); !ok || err != nil {
		t.Fatal(ok, err)
	}
	allocs := testing.AllocsPerRun(900, func() {
		if ok, err := r.Next(); !ok || err != nil {
			t.Fatal(ok, err)
		}
		buf = r.AppendWire(buf[:0])
	})
	if allocs != 0 {
		t.Errorf("%v allocations per row", allocs)
	}
}

// TestBlindWritesReadNothing checks that an upsert of whole rows does not read the existing rows.
func TestBlindWritesReadNothing(t *testing.T) {
	tab, tables, m := benchTable(t)
	if _, err := Apply(context.Background(), m, tables, []Mutation{benchRows(tab, 100)}, testNow); err != nil {
		t.Fatal(err)
	}
	if m.gets != 0 || m.scans != 0 {
		t.Errorf("%d gets and %d scans", m.gets, m.scans)
	}
}
