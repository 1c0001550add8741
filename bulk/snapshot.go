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

// Snapshot is the state of a database at one timestamp. All reads from it are consistent with each other.
type Snapshot struct {
	client       *spanner.Client
	txn          *spanner.BatchReadOnlyTransaction
	flightClient flight.Client // nil means that the official client reads all rows
}

// NewSnapshot begins a read-only transaction. bound selects its timestamp: that of a strong read, or another one within
// the version retention period.
func NewSnapshot(ctx context.Context, client *spanner.Client, bound spanner.TimestampBound) (*Snapshot, error) {
	txn, err := client.BatchReadOnlyTransaction(ctx, bound)
	if err != nil {
		return nil, err
	}
	return &Snapshot{client: client, txn: txn}, nil
}

// OpenSnapshot opens a snapshot that this or another process has taken. marshaled is the result of the snapshot's
// MarshalBinary.
func OpenSnapshot(client *spanner.Client, marshaled []byte) (*Snapshot, error) {
	var id spanner.BatchReadOnlyTransactionID
	if err := id.UnmarshalBinary(marshaled); err != nil {
		return nil, err
	}
	return &Snapshot{client: client, txn: client.BatchReadOnlyTransactionFromID(id)}, nil
}

// MarshalBinary encodes the snapshot for OpenSnapshot.
func (s *Snapshot) MarshalBinary() ([]byte, error) { return s.txn.ID.MarshalBinary() }

// Timestamp returns the timestamp at which the snapshot reads.
func (s *Snapshot) Timestamp() (time.Time, error) { return s.txn.Timestamp() }

// Close releases the snapshot in this process; other processes can continue to use it.
func (s *Snapshot) Close() { s.txn.Close() }

// Options configure how a table or a query is read.
type Options struct {
	Columns    []string // the columns of a table to read; if empty, all columns that are not generated
	Timestamps arrowtype.Timestamps
	DataBoost  bool // use Spanner Data Boost, so that reads do not use the instance's resources
}

// Table returns a source of the rows of a table. A table in a named schema is SCHEMA.TABLE.
func (s *Snapshot) Table(ctx context.Context, name string, o Options) (*Rows, error) {
	t, err := Describe(ctx, s.client, name)
	if err != nil {
		return nil, err
	}
	return s.Described(t, o)
}

// Described returns a source of the rows of a table, as Table does. The caller passes the table's description, so that
// it is not read again.
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

// Query returns a source of the rows of a query. Spanner must be able to partition the query; for example, a scan with
// filters can be partitioned.
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
