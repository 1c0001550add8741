package file

import (
	"context"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/crowfoot-db/crowfoot/bulk"
)

// chosen is a source that renames the columns of another source, and leaves some of them out.
type chosen struct {
	bulk.Source
	columns []int // for each column, its index in the embedded Source
	schema  *arrow.Schema
}

// choose returns a source that reads the rows of the given source and gives other names to its columns. The parameter
// names lists the new names in the order of the columns; "-" leaves a column out.
func choose(source bulk.Source, names []string) (bulk.Source, error) {
	schema := source.Schema()
	if len(names) != schema.NumFields() {
		return nil, fmt.Errorf("the files have %d columns, and %d are named: %v", schema.NumFields(), len(names), columnNames(schema))
	}
	c := &chosen{Source: source}
	var fields []arrow.Field
	for i, name := range names {
		if name == "-" {
			continue
		}
		f := schema.Field(i)
		f.Name = name
		fields, c.columns = append(fields, f), append(c.columns, i)
	}
	c.schema = arrow.NewSchema(fields, nil)
	return c, nil
}

func columnNames(s *arrow.Schema) (names []string) {
	for _, f := range s.Fields() {
		names = append(names, f.Name)
	}
	return names
}

func (c *chosen) Schema() *arrow.Schema { return c.schema }

func (c *chosen) Segments(ctx context.Context, n int) ([]bulk.Segment, error) {
	segments, err := c.Source.Segments(ctx, n)
	for i, s := range segments {
		segments[i] = chosenSegment{s, c}
	}
	return segments, err
}

type chosenSegment struct {
	bulk.Segment
	of *chosen
}

func (s chosenSegment) Open(ctx context.Context) (bulk.Reader, error) {
	r, err := s.Segment.Open(ctx)
	return chosenReader{r, s.of}, err
}

type chosenReader struct {
	bulk.Reader
	of *chosen
}

func (r chosenReader) Next() (arrow.RecordBatch, error) {
	whole, err := r.Reader.Next()
	if err != nil {
		return nil, err
	}
	defer whole.Release()
	columns := make([]arrow.Array, len(r.of.columns))
	for i, k := range r.of.columns {
		columns[i] = whole.Column(k)
	}
	return array.NewRecordBatch(r.of.schema, columns, whole.NumRows()), nil
}
