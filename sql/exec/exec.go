package exec

import (
	"context"
	"fmt"
	"time"

	"github.com/crowfoot-db/crowfoot/memory"
	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/sql/plan"
	"github.com/crowfoot-db/crowfoot/sql/spill"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/value"
)

// Env holds what one run of a plan needs: the data, the parameters and the limits.
type Env struct {
	View   table.View   // the snapshot or transaction from which a query reads
	Writer table.Writer // the transaction in which DML reads and writes; View may then be nil
	// Params are the values of the parameters that plan.Plan.Params lists, in the same order.
	Params []value.Value
	// Columns, if set, opens a source that returns the rows of a scan column by column. If it returns nil for a
	// scan, the scan reads its rows from View.
	Columns func(ColumnRead) (ColumnSource, error)
	// Functions holds the time, the time zone and the source of randomness for functions.
	Functions *fn.Context
	// Restrict, if set, restricts the driving scan (plan.Plan.Driving) to the keys of one span, so that the run
	// computes one partition of a query.
	Restrict *table.Span
	// Spill creates the temporary files of operators whose rows do not fit into memory. If it is nil, no operator
	// spills, and a run whose rows take more than MaxMemory bytes fails. Operators spill when the run keeps more than
	// SpillAbove bytes of rows. If SpillAbove is 0, operators spill above three quarters of MaxMemory.
	Spill      *spill.Dir
	SpillAbove int64
	// Profile makes the run collect statistics of each operator (Stats.Nodes). The run calls Clock for the current time
	// when it measures how long an operator takes.
	Profile bool
	Clock   func() time.Time
	// Memory is the account that is charged for the memory of the rows that the run keeps. If it is nil, nothing is
	// charged.
	Memory *memory.Account
}

// Rows returns the result of a run, row by row. Next moves to the next row, and returns false at the end. Values,
// AppendWire, AppendColumn, Size and ColumnSize are about the current row.
type Rows interface {
	Next() (bool, error)
	// AppendWire appends the row as elements of google.spanner.v1.PartialResultSet.values.
	AppendWire(dst []byte) []byte
	// AppendColumn appends one column of the row, encoded as AppendWire does.
	AppendColumn(dst []byte, i int) []byte
	// Size estimates how many bytes AppendWire will append, and ColumnSize how many AppendColumn will append.
	Size() int
	ColumnSize(i int) int
	// Fill appends the values of the next rows to columns, until the rows have about size bytes. It returns the
	// number of rows that it appended, 0 at the end.
	Fill(columns []value.Column, size int) (rows int, err error)
	// DataSize returns the total size in bytes of the values that AppendWire, AppendColumn and Fill have appended so
	// far. The size of a value is its data size by Spanner's rules, not the size of its encoding.
	DataSize() int64
	// Values appends the values of the row to dst.
	Values(dst []value.Value) []value.Value
	// Columns are the columns of the result; none for DML without THEN RETURN.
	Columns() []plan.Column
	// RowCount returns how many rows a DML statement changed.
	RowCount() int64
	// Stats returns what the run has read, written and used so far.
	Stats() Stats
	Close() error
}

// Stats holds what a run has read, written and used.
type Stats struct {
	RowsScanned  int64 // read from tables and indexes
	RowsReturned int64
	Mutations    int64         // mutations of a DML statement, which count towards the limit of a commit
	MemoryPeak   int64         // the greatest number of bytes of rows that the run kept in memory at a time
	Spilled      spill.Written // rows and bytes written to temporary files
	BytesWritten int64         // bytes that DML wrote, index entries included
	Written      []table.Written
	// Nodes holds the statistics of each operator, if Env.Profile is set.
	Nodes  map[plan.Node]*NodeStats
	Chunks int64 // chunks of columnar copies that were read
}

// Program is a compiled plan. It is immutable, so that many goroutines can run it at once.
type Program struct {
	plan *plan.Plan
	// dml is set for DML, and root for a query. read is set too if the query only reads rows of one table or index by
	// key (plan.Plan.Read). A run then uses read instead of root, unless Env.Profile is set.
	read *keyScan
	root maker
	dml  *dmlCode
	// driving is the compiled scan whose keys are divided to partition the statement (plan.Plan.Driving); nil if
	// there is none.
	driving *keyScan
	// Each run gets roomSize values in run.room, and as many lazyArgs, element sets and spools as the fields lazies,
	// sets and spools say. bounded is the number of function calls that the method compiler.bounded has compiled. Each
	// of these calls has a number below bounded, by which a run finds what it was charged for the call's last result
	// (see madeValues). subqueries are the compiled subquery expressions.
	roomSize, lazies, sets, spools int
	outputs                        int // the number of vectorRooms that a run needs
	bounded                        int
	subqueries                     []*subqueryCode
	// spoolMakers make the operators that compute the rows of the spools (see plan.Spool), and spoolTypes are the types
	// of the spools' columns. Both are indexed by the number of the spool.
	spoolMakers []maker
	spoolTypes  [][]*value.Type
}

// Run starts the plan. A query computes its rows while the caller reads them. A DML statement is complete when Run
// returns.
func (p *Program) Run(ctx context.Context, env Env) (Rows, error) {
	if len(env.Params) != len(p.plan.Params) {
		return nil, fmt.Errorf("run plan: %d parameters given, %d wanted", len(env.Params), len(p.plan.Params))
	}
	if p.read != nil && !env.Profile {
		if env.Columns != nil {
			r := p.start(ctx, env, new(run))
			if rows, err := p.readColumns(r); rows != nil || err != nil {
				return rows, err
			}
		}
		k := &keyRows{columns: p.plan.Columns}
		if err := k.open(p.start(ctx, env, &k.run)); err != nil {
			return nil, err
		}
		return k, nil
	}
	r := p.start(ctx, env, new(run))
	if p.dml != nil {
		rows, err := p.dml.run(r)
		if e := r.end(); err == nil && e != nil {
			return nil, e
		}
		return rows, err
	}
	root := p.root(r)
	if err := root.open(r); err != nil {
		root.close()
		r.end()
		return nil, err
	}
	return &operatorRows{batchRows: batchRows{columns: p.plan.Columns}, run: r, root: root}, nil
}

// noContext is the context of functions in a run without Env.Functions.
var noContext = &fn.Context{}

// start initializes r for a run of p with env, and returns r.
func (p *Program) start(ctx context.Context, env Env, r *run) *run {
	*r = run{prog: p, ctx: ctx, env: env, view: env.View, fns: env.Functions, params: env.Params}
	if env.Restrict != nil {
		r.driving = p.plan.Driving()
	}
	if env.Writer != nil {
		r.view = env.Writer
	}
	if r.fns == nil {
		r.fns = noContext
	}
	if n := p.plan.Registers + p.roomSize; n > 0 {
		vals := make([]value.Value, n)
		r.registers, r.room = vals[:p.plan.Registers:p.plan.Registers], vals[p.plan.Registers:]
	}
	if p.lazies > 0 {
		r.lazies = make([]lazyArgs, p.lazies)
	}
	if p.sets > 0 {
		r.sets = make([]elementSet, p.sets)
	}
	if len(p.subqueries) > 0 {
		r.subqueries = make([]subqueryState, len(p.subqueries))
	}
	if p.spools > 0 {
		r.spools = make([]spool, p.spools)
	}
	r.memory.start(ctx, &r.env)
	if env.Profile {
		r.stats.Nodes = map[plan.Node]*NodeStats{}
	}
	return r
}
