// Package fn has the types and helpers that the packages of GoogleSQL's functions share. The packages below it contain
// the functions: one package for each chapter of GoogleSQL's reference, such as text, timestamps and json. Package
// library lists all scalar functions. Package aggregate lists the aggregate functions.
//
// A Record describes a function. It has the function's name in lower case, as in GoogleSQL's resolved tree ("concat",
// "$add", "net.host"), its signatures, and a line of documentation. Each signature has a body, the Go code that
// computes it. To add a function, write one Record in the table of its family (operators/arithmetic.go,
// text/strings.go, ...), one Go function, and one line in library/testdata. To add a family of functions, add its table
// to library/library.go.
//
// Registry.Lookup finds the body for the argument types that the analyzer chose. The executor calls Lookup once for a
// call in a statement, so a body need not check the types of its arguments for each row. Lookup also wraps bodies so
// that they handle NULL arguments and SAFE.
//
// GoogleSQL's enumerations (date parts, rounding and normalisation modes) have no types of their own in Crowfoot. A
// value of an enumeration is a STRING with its name in upper case: 'DAY', 'WEEK_MONDAY', 'NFKC'.
//
// The executor, not this package, evaluates arguments, reads tables, and handles DISTINCT, ORDER BY, LIMIT and HAVING
// of aggregates.
//
// Imports of this module: sql/tree, usererror, value.
package fn

import (
	"io"
	"time"

	"github.com/crowfoot-db/crowfoot/value"
)

// Context holds the facts about the statement and its database that functions need. It does not change while the
// statement runs, and all goroutines of the statement share it.
type Context struct {
	// Now is the value of CURRENT_TIMESTAMP, which is the same throughout a statement.
	Now time.Time
	// Zone is the database's default time zone; nil means America/Los_Angeles, as in Spanner.
	Zone *time.Location
	// Random is the source of randomness for GENERATE_UUID. It must be safe for concurrent use. Nil means the system's
	// source.
	Random io.Reader
	// Sequences gives access to the database's sequences. It may be nil if the statement cannot name a sequence.
	Sequences Sequences
}

// Sequences gives access to the sequences and identity columns of a database.
type Sequences interface {
	// Next takes the next value of a sequence. No other caller gets this value, even if the transaction does not
	// commit.
	Next(name string) (int64, error)
	// State returns the counter of a sequence, before its bits are reversed; ok is false if the sequence was never used.
	State(name string) (counter int64, ok bool, err error)
	// IdentityState returns the counter of an identity column, named "table.column".
	IdentityState(column string) (counter int64, ok bool, err error)
}

// Eval computes a function from its arguments. It must not keep the slice args after its return.
type Eval func(ctx *Context, args []value.Value) (value.Value, error)

// Args are the arguments of a lazy function. An argument is computed when Arg is called.
type Args interface {
	// Arg computes argument i.
	Arg(i int) (value.Value, error)
	// Len returns the number of arguments.
	Len() int
}

// Lambda is an argument that is a lambda. Apply calls it for the current row; Apply must not keep the slice args.
type Lambda interface {
	Apply(args []value.Value) (value.Value, error)
}

// Scalar is a scalar function with one signature. It is immutable except for its caches, and many goroutines may use
// it.
//
// If Lazy or Higher is set, callers must use that field, otherwise Call.
type Scalar struct {
	// Lazy, if set, is called instead of Call. IF, COALESCE, CASE, AND, OR, ... have it, and compute only the
	// arguments that they need.
	Lazy func(ctx *Context, args Args) (value.Value, error)
	// Higher, if set, is called instead of Call. It takes the lambdas separately from the other arguments. Both lists
	// are in the order of the call.
	Higher func(ctx *Context, args []value.Value, lambdas []Lambda) (value.Value, error)
	// Volatile functions may give different results for the same arguments (GENERATE_UUID). A plan must neither fold
	// them into a constant nor compute them once for many rows. Functions that use Context.Now are not Volatile but
	// Stable.
	Volatile bool
	// Stable functions depend on the Context (its time or zone). Their results are constant within a statement, but
	// not between statements, so a stored plan must not fold them into a constant.
	Stable bool
	// Leakproof functions return a value for all arguments and change nothing, so that nobody can observe that they
	// were called. A plan may compute them for rows that the statement's user must not see. The term is PostgreSQL's.
	Leakproof bool

	eval  Eval
	null  value.Value // the result if an argument is NULL
	nulls bool        // eval is also called if an argument is NULL
	safe  bool        // suppressible errors become NULL
}

// NewScalar makes a function whose eval is never called with a NULL argument. The parameter null is the function's
// result if an argument is NULL. If safe is set, null is also the result if eval fails with an error that SAFE turns
// into NULL (see Suppressible).
func NewScalar(eval Eval, null value.Value, safe bool) *Scalar {
	return &Scalar{eval: eval, null: null, safe: safe}
}

// Call computes the function. It must not be called if Lazy or Higher is set.
func (s *Scalar) Call(ctx *Context, args []value.Value) (value.Value, error) {
	if !s.nulls {
		for i := range args {
			if args[i].IsNull() {
				return s.null, nil
			}
		}
	}
	v, err := s.eval(ctx, args)
	if err != nil && s.safe && Suppressible(err) {
		return s.null, nil
	}
	return v, err
}

// Aggregate is an aggregate function with one signature.
type Aggregate struct {
	// IgnoresNulls says that a row with a NULL first argument does not count. The executor may then drop the row
	// before DISTINCT, ORDER BY and LIMIT. IGNORE NULLS or RESPECT NULLS in a call overrides this field.
	IgnoresNulls bool
	// Collects says that a group stores the arguments of all its rows.
	Collects bool
	// New makes the State of a new group.
	New func() State
	// NewGroups makes an object that computes all groups of a statement together. The object has no groups at first.
	// New, in contrast, makes a State for one group.
	NewGroups func() Groups
}

// State is the aggregate of one group, computed from the rows added so far.
type State interface {
	// Add adds a row's arguments. It must not keep the slice args.
	Add(args []value.Value) error
	// Result returns the aggregate of the rows added.
	Result() (value.Value, error)
}

// Groups computes an aggregate for many groups, which are numbered from 0.
type Groups interface {
	// Grow adds empty groups until there are n.
	Grow(n int)
	// Add adds rows to groups. rows holds row numbers: row i has the arguments args[0].At(i), args[1].At(i) and so
	// on, and belongs to group groups[i]. A row with a NULL argument does not count if Aggregate.IgnoresNulls is set.
	// After an error the object must not be used any more.
	Add(rows, groups []int32, args []Column) error
	// Result returns the aggregate of a group.
	Result(group int) (value.Value, error)
	// Keep removes all groups except one, which becomes group 0.
	Keep(group int)
	// Clear removes all groups.
	Clear()
}

// AnyNull reports whether an argument is NULL. Most aggregates ignore a row that has a NULL argument.
func AnyNull(args []value.Value) bool {
	for i := range args {
		if args[i].IsNull() {
			return true
		}
	}
	return false
}
