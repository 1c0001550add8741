package watch

import (
	"fmt"
	"time"

	"cloud.google.com/go/spanner"
	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/protobuf/types/known/structpb"
)

// A Transaction is what the handler gets: changes that were committed together.
//
// From tables that are polled, these are the rows of one table that carry the same commit timestamp. Two transactions that have written different rows
// may share a commit timestamp (https://cloud.google.com/spanner/docs/commit-timestamp#overview), and then they come as one. From a change stream, it is
// one transaction with all that the stream watches.
type Transaction struct {
	CommitTimestamp time.Time
	// ReadTimestamp is at which a poll has read the rows: they have these values then. It is zero on change streams.
	ReadTimestamp time.Time
	// ID is the server_transaction_id of a change stream, else "".
	ID string
	// Tag is the transaction tag, on change streams.
	Tag string
	// System says that the database itself has made the changes (is_system_transaction), as row deletion policies do.
	System bool
	// Changes are in the order of tables, and of keys in each, when polled; in that of record sequences on change streams.
	Changes []Change
	// Partial says that the transaction is larger than MaxTransactionChanges: further changes of it come with the next call, unless they are overwritten by then
	// and come with a later transaction.
	Partial bool

	// handled is how many of Changes EachChange need not hand out again.
	handled int
}

// MaxTransactionChanges is how many changes a Transaction has at most. A commit may contain 80,000 mutations
// (https://cloud.google.com/spanner/quotas#limits-for), so that only rows to which a program has itself written one timestamp, or one id of a change set,
// make more.
const MaxTransactionChanges = 80_000

// A Change is one row that has changed.
type Change struct {
	Table           TableID
	Kind            Kind
	CommitTimestamp time.Time
	// Key are the columns of the primary key, in its order.
	Key Row
	// Values are all columns that are watched, as they are now (Upsert). On a change stream they are what its value capture type says: the
	// new values, without the key; none for Delete.
	Values Row
	// OldValues are those before the change, on a change stream that captures them.
	OldValues Row
	// RecordSequence orders the records of one transaction on a change stream, else it is "".
	RecordSequence string
}

// TableID names a table. Catalog is "" in Spanner, and Schema is "" for tables outside of named schemas.
type TableID struct {
	Database string // projects/P/instances/I/databases/D
	Catalog  string
	Schema   string
	Name     string
}

// String is the name by which a statement has the table: Name or Schema.Name.
func (t TableID) String() string {
	if t.Schema == "" {
		return t.Name
	}
	return t.Schema + "." + t.Name
}

// Kind is what happened to a row.
type Kind int

const (
	// Upsert is a row that a poll has found: it was inserted or updated, perhaps several times.
	Upsert Kind = iota
	// Insert, Update and Delete come from change streams.
	Insert
	Update
	Delete
)

// String is the word that change streams use (mod_type), and UPSERT.
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

// A Row is columns and their values. Rows share their columns: do not alter them.
type Row struct {
	Columns []Column
	// Values are one for each column, in the coding of Spanner's API
	// (https://cloud.google.com/spanner/docs/reference/rest/v1/TypeCode): an INT64 is a string of digits, say.
	Values []*structpb.Value
}

// Column is the name and type of a column.
type Column struct {
	Name string
	Type *spannerpb.Type
}

// Index is the place of a column; -1 if there is none of this name.
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
