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
	// registers hold columns of rows of enclosing queries. room holds the arguments of function calls; each call
	// has its own range of room.
	registers, room []value.Value
	lazies          []lazyArgs
	sets            []elementSet
	outputs         []vectorRoom // memory of vector expressions (vectorexpr.go); nil before the first is computed
	subqueries      []subqueryState
	spools          []spool
	memory          rowMemory
	made            madeValues
	file            *spill.File // the file to which the run spills rows; nil before it spills
	driving         *plan.Scan  // the scan that Env.Restrict restricts
	target          readRows
	stats           Stats
	inner           inputCost     // bytes spilled and CPU time used by the inputs of the measured operator
	checks          int           // number of calls of check
	meter           *cpu.Meter    // the request's meter; nil if it has none, and until check first uses it
	opened          []*table.Rows // the cursors of scans; in a nested loop, a scan reuses its cursor for each outer row
	byColumns       []*columnScan
}

// openRows opens a cursor for a scan and adds it to r.opened, the list of cursors that Release releases. The scan
// closes the cursor.
func (r *run) openRows(read table.Read) *table.Rows {
	rows := read.Open(r.ctx, r.view)
	r.opened = append(r.opened, rows)
	return rows
}

// operator computes rows. After it has returned its last row, it can be opened again, for instance for another row of
// an enclosing query.
type operator interface {
	open(r *run) error
	// next returns the next rows, nil at the end. Only run.pull and the type meter (nodestats.go) call it.
	next(r *run) (*batch, error)
	// close closes the operator's cursors. The operator can be opened again afterwards.
	close() error
}

// These constants say how often run.check is called and reads the clock: so seldom that the checks cost nearly
// nothing, and so often that a cancelled run ends within milliseconds.
const (
	// checkRows is the number of rows that an operator drops between two calls of check.
	checkRows = 1024
	// lapChecks is the number of calls of check between two readings of the CPU clock.
	lapChecks = 16
)

// pullRows gets the next batch of an operator and turns it into flat rows. The result is nil at the end.
func (r *run) pullRows(op operator) (*batch, error) {
	b, err := r.pull(op)
	if b != nil {
		b.toRows()
	}
	return b, err
}

// pull gets the next batch of an operator, with flat rows or columns. The result is nil at the end. pull first checks
// whether the run was cancelled. Operators get their input only from pull and pullRows, so every long computation
// notices a cancellation.
func (r *run) pull(op operator) (*batch, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	return op.next(r)
}

// check returns an error if the run was cancelled or its time is up. Every lapChecks-th call also adds the CPU time
// that was used since the last such call to the request's CPU time.
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

// cost returns what the run has read, written and used so far.
func (r *run) cost() Stats {
	s := r.stats
	s.MemoryPeak, s.Spilled = r.memory.peak, r.spilled()
	return s
}

// closeAll closes all operators of the list and returns the first error.
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

// drainBatches opens an operator, calls f for each of its batches (of flat rows or columns), and closes it.
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
