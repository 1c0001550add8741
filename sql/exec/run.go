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
	// registers hold columns of enclosing rows. room holds the arguments of function calls, at a different place for each call.
	registers, room []value.Value
	lazies          []lazyArgs
	sets            []elementSet
	outputs         []vectorRoom // memory of vector expressions (vectorexpr.go); nil before the first
	subqueries      []subqueryState
	spools          []spool
	memory          rowMemory
	made            madeValues
	file            *spill.File // the file to which the run spills rows; nil before it spills
	driving         *plan.Scan  // the scan that Env.Restrict restricts
	target          readRows
	stats           Stats
	inner           inputCost     // cost of the inputs of the operator that is being measured; see meter
	checks          int           // number of calls of check
	meter           *cpu.Meter    // nil until the first lap, or if CPU time is not measured
	opened          []*table.Rows // cursors of scans, which scans open again for each outer row
	byColumns       []*columnScan
}

// openRows opens a cursor for a scan. The scan closes it.
func (r *run) openRows(read table.Read) *table.Rows {
	rows := read.Open(r.ctx, r.view)
	r.opened = append(r.opened, rows)
	return rows
}

// operator computes rows. It may be opened again, for another row of an enclosing query.
type operator interface {
	open(r *run) error
	// next returns the next rows, nil at the end. Only pull and meter call it.
	next(r *run) (*batch, error)
	// close closes cursors. The operator may be opened again.
	close() error
}

// A run is checked seldom enough that checks cost nothing, and often enough that a cancelled run ends within milliseconds.
const (
	// checkRows is how many rows an operator drops before it checks the run.
	checkRows = 1024
	// lapChecks is how many checks there are between two readings of the CPU clock.
	lapChecks = 16
)

// pullRows gets the next rows of an operator, in the form of flat rows.
func (r *run) pullRows(op operator) (*batch, error) {
	b, err := r.pull(op)
	if b != nil {
		b.toRows()
	}
	return b, err
}

// pull gets the next rows of an operator, in either form. It checks the run first. Operators get their input only by pull and pullRows, so that
// every long computation is checked.
func (r *run) pull(op operator) (*batch, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	return op.next(r)
}

// check returns an error if the context of the run has ended. Every lapChecks calls it also adds the CPU time since the last lap to the meter.
func (r *run) check() error {
	if r.checks++; r.checks%lapChecks == 0 {
		if r.meter == nil {
			r.meter = cpu.From(r.ctx)
		}
		r.meter.Lap()
	}
	return r.ctx.Err()
}

// maker makes the operator of a plan node for one run.
type maker func(r *run) operator

// Program is a compiled plan, ready to run. It is immutable, so that many goroutines may run it at once.
type Program struct {
	plan *plan.Plan
	// read is set for a plan that is a key read, root for every other query, dml for DML.
	read *keyScan
	root maker
	dml  *dmlCode
	// driving is the compiled scan of plan.Plan.Driving; nil if there is none.
	driving *keyScan
	// roomSize, lazies, sets and spools are how many values of room, lazyArgs, element sets and spools a run needs. bounded is how many calls the
	// method bounded has compiled. subqueries are the subquery expressions.
	roomSize, lazies, sets, spools int
	outputs                        int // the number of vectorRooms that a run needs
	bounded                        int
	subqueries                     []*subqueryCode
	// spoolMakers make the inputs of spools, and spoolTypes are their column types. The index is the spool's number.
	spoolMakers []maker
	spoolTypes  [][]*value.Type
}

// cost returns what the run has cost so far.
func (r *run) cost() Stats {
	s := r.stats
	s.MemoryPeak, s.Spilled = r.memory.peak, r.spilled()
	return s
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
