package bulk

import (
	"context"
	"fmt"
	"io"

	"cloud.google.com/go/spanner"
	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"google.golang.org/api/iterator"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/crowfoot-db/crowfoot/arrowtype"
)

// Rows is a source that reads a table or a query of a Snapshot. Its segments are the partitions that the server
// returns.
type Rows struct {
	snapshot  *Snapshot
	options   Options
	name      string   // the table's name, or "the query"
	columns   []string // the columns of the table to read; nil for a query
	statement *spanner.Statement
	schema    *arrow.Schema
	types     []*spannerpb.Type
}

// Schema returns the source's schema.
func (r *Rows) Schema() *arrow.Schema { return r.schema }

// Close does nothing, since the caller owns the snapshot.
func (r *Rows) Close() error { return nil }

// Segments asks the server for at most n partitions, and returns a segment for each.
func (r *Rows) Segments(ctx context.Context, n int) ([]Segment, error) {
	partitions, err := r.Partitions(ctx, n)
	if err != nil {
		return nil, err
	}
	segments := make([]Segment, len(partitions))
	for i, p := range partitions {
		segments[i] = r.Partition(p, fmt.Sprintf("%s, partition %d of %d", r.name, i+1, len(partitions)))
	}
	return segments, nil
}

// Partitions asks the server for at most n partitions. They can be stored and read by another process (see Partition).
func (r *Rows) Partitions(ctx context.Context, n int) ([]*spanner.Partition, error) {
	limit := spanner.PartitionOptions{MaxPartitions: int64(n)}
	if r.statement != nil {
		return r.snapshot.txn.PartitionQueryWithOptions(ctx, *r.statement, limit, spanner.QueryOptions{DataBoostEnabled: r.options.DataBoost})
	}
	return r.snapshot.txn.PartitionReadWithOptions(ctx, r.name, spanner.AllKeys(), r.columns, limit, spanner.ReadOptions{DataBoostEnabled: r.options.DataBoost})
}

// Partition returns a segment that reads the partition p. The parameter name is the segment's name in messages.
func (r *Rows) Partition(p *spanner.Partition, name string) Segment { return &partition{r, p, name} }

type partition struct {
	rows *Rows
	of   *spanner.Partition
	name string
}

func (p *partition) Bytes() int64   { return 0 }
func (p *partition) String() string { return p.name }
func (p *partition) Extent() Extent { return Extent{} }

// Open opens the partition for reading. It reads over Flight SQL if the server supports that, and otherwise through
// Google's official Spanner client, which works with every endpoint.
func (p *partition) Open(ctx context.Context) (Reader, error) {
	if r := p.openFlight(ctx); r != nil {
		return r, nil
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, p.rows.schema)
	r := &clientReader{segment: p, builder: b, iterator: p.rows.snapshot.txn.Execute(ctx, p.of)}
	for i, t := range p.rows.types {
		a, err := arrowtype.NewAppender(b.Field(i), t)
		if err != nil {
			return nil, err
		}
		r.columns = append(r.columns, a)
	}
	return r, nil
}

// clientReader converts the rows that the official Spanner client returns to columns.
type clientReader struct {
	segment  *partition
	iterator *spanner.RowIterator
	builder  *array.RecordBuilder
	columns  []*arrowtype.Appender
	done     bool
}

func (r *clientReader) Places() func(int) Place {
	return func(int) Place { return Place{File: r.segment.name} }
}

func (r *clientReader) Positions() func(int) int64 { return func(int) int64 { return 0 } }

func (r *clientReader) Progress() int64 { return 0 }

func (r *clientReader) Close() error {
	r.iterator.Stop()
	r.builder.Release()
	return nil
}

func (r *clientReader) Next() (arrow.RecordBatch, error) {
	rows, bytes := 0, 0
	for !r.done && rows < BatchRows && bytes < BatchBytes {
		row, err := r.iterator.Next()
		if err == iterator.Done {
			r.done = true
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.segment, err)
		}
		for i, c := range r.columns {
			v := row.ColumnValue(i)
			bytes += textBytes(v)
			if err := c.AppendWire(v); err != nil {
				return nil, fmt.Errorf("%s, column %s: %w", r.segment, r.segment.rows.schema.Field(i).Name, err)
			}
		}
		rows++
	}
	if rows == 0 {
		return nil, io.EOF
	}
	return r.builder.NewRecordBatch(), nil
}

// textBytes returns the number of bytes of text in a value and, for an array, in the array's elements.
func textBytes(v *structpb.Value) int {
	n := len(v.GetStringValue())
	for _, e := range v.GetListValue().GetValues() {
		n += textBytes(e)
	}
	return n
}
