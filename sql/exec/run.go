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

// cost returns what the run has cost so far.
func (r *run) cost() Stats {
	s := r.stats
	s.MemoryPeak, s.Spilled = r.memory.peak, r.spilled()
	return s
}

// closeAll closes operators and returns the first error.
func closeAll(list ...operator) error {
	var err error
	for _, op := range list {
		if e := op.close(); err == nil {
			err = e
		}
	}
	return err
}

// drain opens an operator, calls f for each of its rows, and closes it.
func drain(r *run, op operator, f func(row []value.Value) error) error {
	return drainBatches(r, op, func(b *batch) (err error) {
		b.toRows()
		for i := 0; i < b.n && err == nil; i++ {
			err = f(b.row(i))
		}
		return err
	})
}

// drainBatches is drain for whole batches, in either form.
func drainBatches(r *run, op operator, f func(b *batch) error) error {
	err := op.open(r)
	for err == nil {
		var b *batch
		if b, err = r.pull(op); b == nil || err != nil {
			break
		}
		err = f(b)
	}
	if e := op.close(); err == nil {
		err = e
	}
	return err
}
