package exec

import (
	"time"

	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/sql/plan"
	"github.com/crowfoot-db/crowfoot/sql/spill"
	"github.com/crowfoot-db/crowfoot/stats/cpu"
)

// meter measures an operator, its inputs included.
type meter struct {
	operator
	stats *NodeStats
}

func newMeter(r *run, n plan.Node, op operator) operator {
	s := r.stats.Nodes[n]
	if s == nil {
		_, scan := n.(*plan.Scan)
		s = &NodeStats{Scan: scan}
		r.stats.Nodes[n] = s
	}
	return &meter{operator: op, stats: s}
}

func (m *meter) open(r *run) error {
	m.stats.Executions++
	return m.measure(r, func() error { return m.operator.open(r) })
}

func (m *meter) next(r *run) (b *batch, err error) {
	err = m.measure(r, func() error {
		b, err = m.operator.next(r) // pull has checked the run already
		return err
	})
	if b != nil {
		m.stats.Rows += int64(b.n)
	}
	return b, err
}

// readAhead implements lookahead.
func (m *meter) readAhead(r *run, n int, since mvcc.Timestamp, bind func(i int)) error {
	in, ok := m.operator.(lookahead)
	if !ok {
		return nil
	}
	return m.measure(r, func() error { return in.readAhead(r, n, since, bind) })
}

// inputCost is what the inputs of an operator have spilled and the CPU time that they have used during the call of the operator that is being
// measured.
type inputCost struct {
	spilled spill.Written
	cpu     time.Duration
}

func (m *meter) measure(r *run, f func() error) (err error) {
	scanned, chunks, spilled, outer := r.stats.RowsScanned, r.stats.Chunks, r.spilled(), r.inner
	r.inner = inputCost{}
	begin := r.now()
	used := cpu.Spent(r.ctx, func() { err = f() })
	all := r.spilled().Less(spilled)
	m.stats.Spilled = m.stats.Spilled.Plus(all.Less(r.inner.spilled))
	m.stats.CPU += used
	m.stats.SelfCPU += used - r.inner.cpu
	r.inner = inputCost{outer.spilled.Plus(all), outer.cpu + used}
	m.stats.Latency += r.now().Sub(begin)
	if m.stats.Scan {
		m.stats.Scanned += r.stats.RowsScanned - scanned
		m.stats.Chunks += r.stats.Chunks - chunks
	}
	return err
}

// now returns the time by the run's clock, or the zero time if it has none.
func (r *run) now() time.Time {
	if r.env.Clock == nil {
		return time.Time{}
	}
	return r.env.Clock()
}
