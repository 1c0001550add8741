package exec

import (
	"context"

	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/sql/plan"
	"github.com/crowfoot-db/crowfoot/sql/spill"
	"github.com/crowfoot-db/crowfoot/stats/cpu"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/value"
)

// run is one execution of a Program.
type run struct {
	prog   *Program
	ctx    context.Context
	env    Env
	view   table.View
	fns    *fn.Context
	params []value.Value
	// registers hold columns of enclosing rows. room holds the arguments of calls; each call has a place of its own.
	registers, room []value.Value
	lazies          []lazyArgs
	sets            []elementSet
	outputs         []vectorRoom // of expressions that are computed for many rows at once; nil before the first
	subqueries      []subqueryState
	spools          []spool
	memory          rowMemory
	made            madeValues
	file            *spill.File // where the run keeps what it spills; nil before it does
	driving         *plan.Scan  // the scan that Env.Restrict restricts
	target          readRows
	stats           Stats
	inner           inputCost     // of the inputs of the operator that is being measured; see meter
	checks          int           // how often the run was checked
	meter           *cpu.Meter    // nil until the first lap, or if nothing is measured
	opened          []*table.Rows // by scans, which open them again and again
	byColumns       []*columnScan
}

// openRows begins a read of a scan, which ends it.
func (r *run) openRows(read table.Read) *table.Rows {
	rows := read.Open(r.ctx, r.view)
	r.opened = append(r.opened, rows)
	return rows
}

// operator makes rows. It may be opened again, for another row of an enclosing query.
type operator interface {
	open(r *run) error
	// next returns the next rows, nil at the end. Only pull calls it.
	next(r *run) (*batch, error)
	// close lets go of cursors; the operator may be opened again.
	close() error
}

// Checks are far apart enough to cost nothing, and near enough that a run which was cancelled ends within milliseconds.
const (
	// checkRows is how many rows an operator drops between two checks.
	checkRows = 1024
	// lapChecks is how many checks share a look at the time.
	lapChecks = 16
)

// pullRows gets the next rows of an operator, row by row.
func (r *run) pullRows(op operator) (*batch, error) {
	b, err := r.pull(op)
	if b != nil {
		b.toRows()
	}
	return b, err
}

// pull gets the next rows of an operator, in either form. Operators get their input by it alone, so that every long computation is checked.
func (r *run) pull(op operator) (*batch, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	return op.next(r)
}

// check ends a run whose context has ended, and lets the CPU time that a long one has used so far be counted.
func (r *run) check() error {
	if r.checks++; r.checks%lapChecks == 0 {
		if r.meter == nil {
			r.meter = cpu.From(r.ctx)
		}
		r.meter.Lap()
	}
	return r.ctx.Err()
}

// maker makes the operator of a node for one run.
type maker func(r *run) operator

// Program is a compiled plan, ready to run. It is immutable: many goroutines may run it at once.
type Program struct {
	plan *plan.Plan
	// read is set for a plan that is a key read, root for every other query, dml for DML.
	read *keyScan
	root maker
	dml  *dmlCode
	// driving is the compiled scan of plan.Plan.Driving; nil if there is none.
	driving *keyScan
	// roomSize, lazies, sets and spools are how many of these a run needs; bounded is how many calls are; subqueries are the subquery
	// expressions.
	roomSize, lazies, sets, spools int
	outputs                        int // the same of vectorRooms
	bounded                        int
	subqueries                     []*subqueryCode
	// spoolMakers make the inputs of spools, and spoolTypes are the types of their columns, by the spool's number.
	spoolMakers []maker
	spoolTypes  [][]*value.Type
}

// cost is what the run has cost so far.
func (r *run) cost() Stats {
	s := r.stats
	s.MemoryPeak, s.Spilled = r.memory.peak, r.spilled()
	return s
}

// noContext is the context of functions in a run without Env.Functions.
var noContext = &fn.Context{}

// start begins a run in r.
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
