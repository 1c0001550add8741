package watch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"cloud.google.com/go/spanner"
	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/api/iterator"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// rowReader converts rows of queries on one table to changes.
type rowReader struct {
	table TableID
	names []string // the names of the key's columns
	// The following fields describe the last result: its columns, the key's columns, and the positions of the key's
	// columns in the field columns.
	columns []Column
	key     []Column
	keyAt   []int

	values, keys []*structpb.Value // memory for the values and keys of the next rows
}

// slab is the number of rows whose values are allocated in one piece. If a handler keeps one of these rows, all of
// them stay in memory.
const slab = 32

// begin sets the columns of a new result. If they equal those of the last result, begin keeps the slices of columns, so
// that the rows of both results share them.
func (r *rowReader) begin(m *spannerpb.ResultSetMetadata) error {
	fields := m.GetRowType().GetFields()
	if slices.EqualFunc(r.columns, fields, func(c Column, f *spannerpb.StructType_Field) bool {
		return c.Name == f.GetName() && proto.Equal(c.Type, f.GetType())
	}) {
		return nil
	}
	r.columns, r.key, r.keyAt = nil, nil, nil
	for _, f := range fields {
		r.columns = append(r.columns, Column{f.GetName(), f.GetType()})
	}
	for _, name := range r.names {
		i := Row{Columns: r.columns}.Index(name)
		if i < 0 {
			return fmt.Errorf("a row of table %s comes without the column %s of its key", r.table, name)
		}
		r.key, r.keyAt = append(r.key, r.columns[i]), append(r.keyAt, i)
	}
	return nil
}

// change converts a row to a Change of the kind Upsert.
func (r *rowReader) change(row *spanner.Row, commit time.Time) Change {
	n, k := len(r.columns), len(r.keyAt)
	if len(r.values) < n || len(r.keys) < k {
		r.values, r.keys = make([]*structpb.Value, n*slab), make([]*structpb.Value, k*slab)
	}
	values, key := r.values[:n:n], r.keys[:k:k]
	r.values, r.keys = r.values[n:], r.keys[k:]
	for i := range values {
		values[i] = row.ColumnValue(i)
	}
	for i, at := range r.keyAt {
		key[i] = values[at]
	}
	return Change{Table: r.table, CommitTimestamp: commit, Key: Row{r.key, key}, Values: Row{r.columns, values}}
}

// query runs a statement with a request tag. It calls begin with the columns of the result before the first row, and
// then f with each row.
func query(ctx context.Context, ro *spanner.ReadOnlyTransaction, stmt spanner.Statement, tag string, begin func(*spannerpb.ResultSetMetadata) error, f func(*spanner.Row) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	it := ro.QueryWithOptions(ctx, stmt, spanner.QueryOptions{RequestTag: tag})
	defer it.Stop()
	for n := 0; ; n++ {
		row, err := it.Next()
		if err == iterator.Done {
			return nil
		}
		if err != nil {
			return err
		}
		if n == 0 {
			if err := begin(it.Metadata); err != nil {
				return err
			}
		}
		if err := f(row); err != nil {
			return err
		}
	}
}

// errPageEnds ends the reading of a page that has reached its limit of bytes.
var errPageEnds = errors.New("the page has enough bytes")

// rowBytes estimates the bytes of memory that a row takes.
func rowBytes(row *spanner.Row) (n int) {
	for i := range row.Size() {
		n += valueBytes(row.ColumnValue(i))
	}
	return n
}

func valueBytes(v *structpb.Value) int {
	n := 48 // the bytes of a structpb.Value without the text or list to which it points
	switch k := v.GetKind().(type) {
	case *structpb.Value_StringValue:
		n += len(k.StringValue)
	case *structpb.Value_ListValue:
		for _, e := range k.ListValue.GetValues() {
			n += valueBytes(e)
		}
	}
	return n
}

// clock parses the commit timestamps of rows. It caches the last one, since successive rows often have the same
// timestamp.
type clock struct {
	text string
	time time.Time
}

func (c *clock) parse(v *structpb.Value) (time.Time, error) {
	if text := v.GetStringValue(); text != c.text || c.text == "" {
		t, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			return t, fmt.Errorf("a commit timestamp: %w", err)
		}
		c.text, c.time = text, t
	}
	return c.time, nil
}
