package watch

import (
	"fmt"
	"time"

	"cloud.google.com/go/spanner"
	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/protobuf/types/known/structpb"
)

// A Transaction is a list of changes that were committed together.
//
// If tables are polled, a Transaction has the rows of one table with the same commit timestamp. Two transactions that
// have written different rows may share a commit timestamp
// (https://cloud.google.com/spanner/docs/commit-timestamp#overview). Polls deliver such transactions as one. If a
// change stream is read, a Transaction is one transaction of the database. It has all changes of this transaction to
// tables and columns that the stream watches.
type Transaction struct {
	CommitTimestamp time.Time
	// ReadTimestamp is the timestamp at which a poll read the rows, so the rows have these values at that time. It is
	// zero on change streams.
	ReadTimestamp time.Time
	// ID is the server_transaction_id on change streams, else "".
	ID string
	// Tag is the transaction tag; it is only known on change streams.
	Tag string
	// System is true if the database itself has made the changes, for example to apply a row deletion policy. Change
	// streams call this is_system_transaction.
	System bool
	// Changes are ordered by key when polled, and by record sequence on change streams.
	Changes []Change
	// Partial is true if the transaction is larger than MaxTransactionChanges and the next call of the handler gets
	// more of its changes. If a table is polled, a later transaction may overwrite a row between these two calls,
	// before the row is read. The row then comes only with the later transaction.
	Partial bool

	// handled is the number of Changes, counted from the first, for which the function of EachChange has returned nil.
	handled int
}

// MaxTransactionChanges is the maximum number of changes in a Transaction. It is enough for the rows that one commit
// inserts or updates, because a commit may contain at most 80,000 mutations
// (https://cloud.google.com/spanner/quotas#limits-for). A poll can still find more rows with one commit timestamp. This
// happens if several transactions share the timestamp, or if a program sets the timestamp column or the change set id
// of many rows to the same value in several transactions.
const MaxTransactionChanges = 80_000

// A Change is the change of one row.
type Change struct {
	Table           TableID
	Kind            Kind
	CommitTimestamp time.Time
	// Key has the columns of the primary key, in the order of the key.
	Key Row
	// Values has the new values. An Upsert has the current values of all watched columns. On a change stream, the value
	// capture type of the stream decides which columns are included. The columns of the key are never included, and a
	// Delete has no values.
	Values Row
	// OldValues has the values before the change, if the changes come from a change stream that captures old values.
	OldValues Row
	// RecordSequence orders the records of one transaction on a change stream. It is "" for a polled row.
	RecordSequence string
}

// TableID identifies a table. Catalog is "" in Spanner, and Schema is "" for tables outside of named schemas.
type TableID struct {
	Database string // projects/P/instances/I/databases/D
	Catalog  string
	Schema   string
	Name     string
}

// String returns the table's name in SQL, without quotes: Name or Schema.Name.
func (t TableID) String() string {
	if t.Schema == "" {
		return t.Name
	}
	return t.Schema + "." + t.Name
}

// Kind says what happened to a row.
type Kind int

const (
	// Upsert is a row that a poll has found. The row was inserted or updated, perhaps several times.
	Upsert Kind = iota
	// Insert, Update and Delete come from change streams.
	Insert
	Update
	Delete
)

// String returns the change stream's mod_type (INSERT, UPDATE, DELETE), or UPSERT.
func (k Kind) String() string {
	switch k {
	case Upsert:
		return "UPSERT"
	case Insert:
		return "INSERT"
	case Update:
		return "UPDATE"
	case Delete:
		return "DELETE"
	}
	return fmt.Sprintf("Kind(%d)", int(k))
}

// A Row is a list of columns and their values. Several rows share one list of columns, so do not modify it.
type Row struct {
	Columns []Column
	// Values has one value for each column, in the coding of Spanner's API
	// (https://cloud.google.com/spanner/docs/reference/rest/v1/TypeCode). An INT64, for example, is a string of digits.
	Values []*structpb.Value
}

// Column is the name and type of a column.
type Column struct {
	Name string
	Type *spannerpb.Type
}

// Index returns the position of the column with this name; -1 if the row has none.
func (r Row) Index(column string) int {
	for i := range r.Columns {
		if r.Columns[i].Name == column {
			return i
		}
	}
	return -1
}

// Decode decodes the value of a column into a variable, as the official library does for rows of a query
// (https://pkg.go.dev/cloud.google.com/go/spanner#Row).
func (r Row) Decode(column string, into any) error {
	i := r.Index(column)
	if i < 0 {
		return fmt.Errorf("the change has no column %q", column)
	}
	v := spanner.GenericColumnValue{Type: r.Columns[i].Type, Value: r.Values[i]}
	return v.Decode(into)
}
