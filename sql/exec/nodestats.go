package exec

import (
	"strconv"
	"time"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/sql/plan"
	"github.com/crowfoot-db/crowfoot/sql/spill"
	"github.com/crowfoot-db/crowfoot/stats/cpu"
)

// NodeStats holds how much work one operator of a plan has done. Latency and CPU include the work of the operator's
// inputs.
type NodeStats struct {
	Scan       bool  // the operator is a Scan
	Rows       int64 // rows that the operator returned
	Scanned    int64 // rows that a Scan read
	Chunks     int64 // chunks of a columnar copy that a Scan read
	Executions int64
	Latency    time.Duration
	CPU        time.Duration // CPU time of the thread, without waits
	SelfCPU    time.Duration // CPU time without that of the inputs
	Spilled    spill.Written // rows and bytes that the operator itself spilled, without its inputs
}

// NodeStatsProto returns a function that returns the execution_stats of an operator. The method Proto of plan.Plan
// calls it for each operator.
func NodeStatsProto(s Stats) func(plan.Node) *structpb.Struct {
	return func(n plan.Node) *structpb.Struct { return s.Nodes[n].proto() }
}

// proto returns the execution_stats of an operator, or nil if s is nil. As in Spanner, every number is a string.
func (s *NodeStats) proto() *structpb.Struct {
	if s == nil {
		return nil
	}
	total := func(n, unit string) *structpb.Value {
		return object(map[string]*structpb.Value{"total": structpb.NewStringValue(n), "unit": structpb.NewStringValue(unit)})
	}
	count := func(n int64) string { return strconv.FormatInt(n, 10) }
	fields := map[string]*structpb.Value{
		"rows":     total(count(s.Rows), "rows"),
		"latency":  total(Msecs(s.Latency), "msecs"),
		"cpu_time": total(Msecs(s.CPU), "msecs"),
		// self_cpu_time is cpu_time without the time of the operator's inputs. Spanner has no such field.
		"self_cpu_time":     total(Msecs(s.SelfCPU), "msecs"),
		"execution_summary": object(map[string]*structpb.Value{"num_executions": structpb.NewStringValue(count(s.Executions))}),
	}
	if s.Scan {
		fields["scanned_rows"] = total(count(s.Scanned), "rows")
		fields["filtered_rows"] = total(count(s.Scanned-s.Rows), "rows")
	}
	if s.Chunks > 0 {
		fields["columnar_chunks"] = total(count(s.Chunks), "chunks")
	}
	if s.Spilled.Rows > 0 {
		fields["Rows Spooled"] = total(count(s.Spilled.Rows), "rows")
		fields["Disk Usage (KBytes)"] = total(count((s.Spilled.Bytes+1023)/1024), "KBytes")
	}
	return &structpb.Struct{Fields: fields}
}

func object(fields map[string]*structpb.Value) *structpb.Value {
	return structpb.NewStructValue(&structpb.Struct{Fields: fields})
}

// Msecs formats a duration as in the statistics of a plan: in milliseconds, with two digits after the point.
func Msecs(d time.Duration) string {
	return strconv.FormatFloat(float64(d)/float64(time.Millisecond), 'f', 2, 64)
}

// meter wraps an operator and measures the calls of its methods. A measured call includes the work of the inputs.
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
		b, err = m.operator.next(r) // run.pull has called this method, and has already called check
		return err
	})
	if b != nil {
		m.stats.Rows += int64(b.n)
	}
	return b, err
}

// readAhead implements lookahead. It does nothing if the operator cannot read ahead.
func (m *meter) readAhead(r *run, n int, since mvcc.Timestamp, bind func(i int)) error {
	in, ok := m.operator.(lookahead)
	if !ok {
		return nil
	}
	return m.measure(r, func() error { return in.readAhead(r, n, since, bind) })
}

// inputCost adds up what the inputs of an operator spill, and the CPU time that they use, during one measured call of
// that operator. The method measure subtracts both from what the whole call spills and uses, to get the operator's own
// share.
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

// now returns the time of the run's clock, or the zero time if the run has no clock.
func (r *run) now() time.Time {
	if r.env.Clock == nil {
		return time.Time{}
	}
	return r.env.Clock()
}
