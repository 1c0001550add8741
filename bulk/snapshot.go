package bulk

import (
	"context"
	"fmt"
	"time"

	"cloud.google.com/go/spanner"
	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"google.golang.org/api/iterator"

	"github.com/crowfoot-db/crowfoot/arrowtype"
)

// Snapshot is a database as it is at one timestamp. All that is read from it is consistent.
type Snapshot struct {
	client *spanner.Client
	txn    *spanner.BatchReadOnlyTransaction
	flight flight.Client // nil: rows are read by the client
}

// NewSnapshot begins a read-only transaction: at a strong read's timestamp, or at one of the caller's choice within the version retention period.
func NewSnapshot(ctx context.Context, client *spanner.Client, bound spanner.TimestampBound) (*Snapshot, error) {
	txn, err := client.BatchReadOnlyTransaction(ctx, bound)
	if err != nil {
		return nil, err
	}
	return &Snapshot{client: client, txn: txn}, nil
}

// OpenSnapshot goes on with a snapshot of another process, or of this one before, by what MarshalBinary gave.
func OpenSnapshot(client *spanner.Client, marshaled []byte) (*Snapshot, error) {
	var id spanner.BatchReadOnlyTransactionID
	if err := id.UnmarshalBinary(marshaled); err != nil {
		return nil, err
	}
	return &Snapshot{client: client, txn: client.BatchReadOnlyTransactionFromID(id)}, nil
}

// MarshalBinary gives what OpenSnapshot wants.
func (s *Snapshot) MarshalBinary() ([]byte, error) { return s.txn.ID.MarshalBinary() }

// Timestamp is that at which the snapshot reads.
func (s *Snapshot) Timestamp() (time.Time, error) { return s.txn.Timestamp() }

// Close ends the transaction in this process.
func (s *Snapshot) Close() { s.txn.Close() }

// Options say how a table or a query is read.
type Options struct {
	Columns    []string // of a table; all if empty
	Timestamps arrowtype.Timestamps
	DataBoost  bool // read with Spanner's resources for analytics, not those of the instance
}

// Table is a source of the rows of a table; that of a named schema is SCHEMA.TABLE.
func (s *Snapshot) Table(ctx context.Context, name string, o Options) (*Rows, error) {
	t, err := Describe(ctx, s.client, name)
	if err != nil {
		return nil, err
	}
	return s.Described(t, o)
}

// Described is Table for a table that is described already.
func (s *Snapshot) Described(t *TableInfo, o Options) (*Rows, error) {
	columns, err := t.Select(o.Columns)
	if err != nil {
		return nil, err
	}
	r := &Rows{snapshot: s, options: o, name: t.Name}
	var fields []arrow.Field
	for _, c := range columns {
		f, err := arrowtype.Field(c.Name, c.Type, c.DDL, c.Nullable, o.Timestamps)
		if err != nil {
			return nil, err
		}
		fields = append(fields, f)
		r.columns, r.types = append(r.columns, c.Name), append(r.types, c.Type)
	}
	r.schema = arrow.NewSchema(fields, nil)
	return r, nil
}

// Query is a source of the rows of a query. It must be one that can be partitioned, as a scan with filters can.
func (s *Snapshot) Query(ctx context.Context, statement spanner.Statement, o Options) (*Rows, error) {
	plan := spannerpb.ExecuteSqlRequest_PLAN
	rows := s.txn.QueryWithOptions(ctx, statement, spanner.QueryOptions{Mode: &plan})
	defer rows.Stop()
	if _, err := rows.Next(); err != nil && err != iterator.Done {
		return nil, err
	}
	r := &Rows{snapshot: s, options: o, statement: &statement, name: "the query"}
	var fields []arrow.Field
	for _, c := range rows.Metadata.GetRowType().GetFields() {
		f, err := arrowtype.Field(c.GetName(), c.GetType(), "", true, o.Timestamps)
		if err != nil {
			return nil, err
		}
		fields = append(fields, f)
		r.types = append(r.types, c.GetType())
	}
	if len(fields) == 0 {
		return nil, fmt.Errorf("the statement returns no columns")
	}
	r.schema = arrow.NewSchema(fields, nil)
	return r, nil
}
