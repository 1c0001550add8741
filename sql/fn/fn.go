// Package fn holds GoogleSQL's functions over values: scalar functions,
// aggregates and casts, one record each.
//
// A record is a name, as GoogleSQL's resolved tree has it in lower case
// ("concat", "$add", "net.host"), its signatures with a body each, and a line of
// documentation. Adding a function is one record in the table of its family
// (arithmetic.go, strings.go, ...), one Go function, one line in testdata.
//
// Lookup picks the body once, by the argument types that the analyzer chose, so
// that a body need not look at the types of its arguments for each row. Lookup
// also wraps bodies that never see a NULL argument, and calls with SAFE.
//
// A value of GoogleSQL's enumerations (date parts, rounding and normalisation
// modes), which have no type of their own in Crowfoot, is a STRING with its name
// in upper case: 'DAY', 'WEEK_MONDAY', 'NFKC'.
//
// Left to the executor: DISTINCT, ORDER BY, LIMIT and HAVING of aggregates,
// evaluation of arguments, and anything that reads tables.
//
// Imports of this module: sql/tree, stats/distribution, usererror, value.
package fn

import (
	"io"
	"time"

	"github.com/crowfoot-db/crowfoot/value"
)

// Context is what functions know of the statement that they run in. It is not
// changed while the statement runs, and shared by all its goroutines.
type Context struct {
	// Now is CURRENT_TIMESTAMP, the same throughout a statement.
	Now time.Time
	// Zone is the database's default time zone; nil is America/Los_Angeles, as in Spanner.
	Zone *time.Location
	// Random feeds GENERATE_UUID; it must be safe for concurrent use. Nil is the system's.
	Random io.Reader
	// Sequences are those of the database; nil if there are none that a statement could name.
	Sequences Sequences
}

// Sequences are the sequences and identity columns of a database.
type Sequences interface {
	// Next takes the next value of a sequence, which is given out to no other caller, whether the transaction commits or not.
	Next(name string) (int64, error)
	// State is the counter of a sequence before its bits are reversed; ok is false if the sequence was never used.
	State(name string) (counter int64, ok bool, err error)
	// IdentityState is State for an identity column, "table.column".
	IdentityState(column string) (counter int64, ok bool, err error)
}

// Eval computes a function from its arguments. It must not keep args.
type Eval func(ctx *Context, args []value.Value) (value.Value, error)

// Args are the arguments of a lazy function, not yet computed.
type Args interface {
	// Arg computes argument i.
	Arg(i int) (value.Value, error)
	// Len is the number of arguments.
	Len() int
}

// Lambda calls a lambda argument over the current row. It must not keep args.
type Lambda interface {
	Apply(args []value.Value) (value.Value, error)
}

// Scalar is a scalar function with one signature. It is immutable but for
// caches of its own and may be used by many goroutines.
//
// Exactly one of Lazy, Higher and the strict body is set: see Call.
type Scalar struct {
	// Lazy, if set, is called instead of Call: IF, COALESCE, CASE, AND, OR, ... compute only the arguments they need.
	Lazy func(ctx *Context, args Args) (value.Value, error)
	// Higher, if set, is called instead of Call. It gets the lambdas apart from the other arguments, both in the order of the call.
	Higher func(ctx *Context, args []value.Value, lambdas []Lambda) (value.Value, error)
	// Volatile functions give another result for the same arguments (GENERATE_UUID): a plan must not fold them into a constant
	// nor compute them once for many rows. Functions of Context.Now are not volatile, but may not be folded either: see Stable.
	Volatile bool
	// Stable functions depend on the Context (its time or zone): constant within a statement, not between statements.
	Stable bool
	// Leakproof functions have a value for all arguments and change nothing, so that nobody learns that they were computed: a plan may compute them
	// for rows that the statement's reader must not see. As in PostgreSQL.
	Leakproof bool

	eval  Eval
	null  value.Value // the result if an argument is NULL
	nulls bool        // eval is called with NULL arguments too
	safe  bool        // errors become NULL
}

// Call computes the function, if it is neither Lazy nor Higher.
func (s *Scalar) Call(ctx *Context, args []value.Value) (value.Value, error) {
	if !s.nulls {
		for i := range args {
			if args[i].IsNull() {
				return s.null, nil
			}
		}
	}
	v, err := s.eval(ctx, args)
	if err != nil && s.safe && suppressible(err) {
		return s.null, nil
	}
	return v, err
}

// Aggregate is an aggregate function with one signature.
type Aggregate struct {
	// IgnoresNulls says that a row whose first argument is NULL does not count, so that the executor may drop it before DISTINCT, ORDER BY and
	// LIMIT. IGNORE NULLS or RESPECT NULLS in a call overrules it.
	IgnoresNulls bool
	// Collects says that a group keeps the arguments of all its rows.
	Collects bool
	// New starts a group.
	New func() State
	// NewGroups makes the groups of a statement, which has none in the beginning.
	NewGroups func() Groups
}

// State is the aggregate of one group so far.
type State interface {
	// Add adds a row's arguments; it must not keep args.
	Add(args []value.Value) error
	// Result is the aggregate of the rows added.
	Result() (value.Value, error)
}
