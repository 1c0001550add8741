package report

// Study is a publication whose figures the report shows beside ours.
type Study struct {
	Title  string `json:"title"`
	Author string `json:"author"`
	Date   string `json:"date"`
	// Sentence is a format string for the sentence that compares the study's result with ours. The first verb, such as
	// %s, stands for the range of the study's figures, and the second verb for the range of our figures.
	Sentence string `json:"-"`
}

func (s Study) text() string { return s.Author + ", \"" + s.Title + "\", " + s.Date }

// Figure is a published figure or a target of Crowfoot, together with the value that this run has measured.
type Figure struct {
	Benchmark string `json:"benchmark"`
	Name      string `json:"name"`
	Metric    Metric `json:"metric"`
	Left      Ref    `json:"left"`
	Right     Ref    `json:"right"` // empty if the figure is not a ratio but Left's value alone
	// StudyLeft and StudyRight are the published values; CPU times and latencies are in microseconds. 0 means that the
	// value was not published.
	StudyLeft  float64 `json:"study_left,omitempty"`
	StudyRight float64 `json:"study_right,omitempty"`
	// Study is the ratio or difference of the two published values. It is computed in the same way as Ours.
	Study *float64 `json:"study,omitempty"`
	// Basis says how the study's values and ours were measured, if this was done in different ways.
	Basis string `json:"basis,omitempty"`
	// Summed is true if the figure is included in the two ranges that the sentence about the study gives.
	Summed bool `json:"-"`
	// Target is the value that Crowfoot should reach. It is a maximum or, if AtLeast is set, a minimum. 0 means that
	// there is no target.
	Target  float64 `json:"target,omitempty"`
	AtLeast bool    `json:"target_is_least,omitempty"`

	Clients   int      `json:"clients"`
	OursLeft  *float64 `json:"ours_left,omitempty"` // nil if unknown
	OursRight *float64 `json:"ours_right,omitempty"`
	Ours      *float64 `json:"ours,omitempty"`
	Spread    *Spread  `json:"spread,omitempty"` // spread of Ours over the turns
}

// alone reports whether the figure is the value of one measure and not a ratio.
func (f Figure) alone() bool { return f.Right == Ref{} }

// isRatio reports whether the figure is a ratio, and so has no unit.
func (f Figure) isRatio() bool { return f.Metric != LatencyAdded && !f.alone() }

// Ref identifies a measure within a benchmark.
type Ref struct {
	Experiment string `json:"experiment"`
	Path       string `json:"path"`
}

// RefTo identifies the measure of a path in an experiment.
func RefTo(experiment, path string) Ref { return Ref{experiment, path} }

// Metric is a quantity by which two paths are compared.
type Metric string

// The metrics. Latencies and CPU times are in microseconds. All metrics except LatencyAdded are compared as the ratio
// left / right.
const (
	ServerCPU     Metric = "server CPU"
	MedianLatency Metric = "latency"
	MeanLatency   Metric = "mean latency"
	P99Latency    Metric = "p99 of latency"
	Throughput    Metric = "operations per second"
	RowThroughput Metric = "rows per second"
	// RowCPU is ServerCPU divided by the number of rows of an operation.
	RowCPU Metric = "server CPU per row"
	// AverageCPU is AVG_CPU_SECONDS of the server's statistics.
	AverageCPU Metric = "average CPU"
	// LatencyAdded is the median latency; it is compared as the difference left - right.
	LatencyAdded Metric = "latency added"
)

func (k Metric) of(m *Measure) *float64 {
	if m.Operations == 0 {
		return nil
	}
	if k == AverageCPU {
		return m.averageCPU()
	}
	return k.value(finding{float64(m.Operations), float64(m.Rows), m.Seconds, m.Latency.Mean, float64(m.Latency.P50), float64(m.Latency.P99), m.CPU})
}

// finding holds the results of a measure or of a turn. Latencies and the server's CPU time per operation are in
// microseconds. cpu is nil if the CPU time is unknown.
type finding struct {
	operations, rows, seconds, mean, median, p99 float64
	cpu                                          *float64
}

// value computes the metric from a finding. It returns nil if the finding lacks the values that the metric needs.
func (k Metric) value(s finding) *float64 {
	perSecond := s.operations / s.seconds
	switch k {
	case ServerCPU:
		return s.cpu
	case RowCPU:
		if s.cpu == nil {
			return nil
		}
		perRow := *s.cpu * s.operations / s.rows
		return &perRow
	case RowThroughput:
		perSecond = s.rows / s.seconds
		return &perSecond
	case AverageCPU:
		return nil // the server's statistics count by interval, not by turn
	case MeanLatency:
		return &s.mean
	case P99Latency:
		return &s.p99
	case Throughput:
		return &perSecond
	}
	return &s.median
}

func (k Metric) Compare(left, right *float64) *float64 {
	if left == nil || right == nil || k != LatencyAdded && *right == 0 {
		return nil
	}
	v := *left - *right
	if k != LatencyAdded {
		v = *left / *right
	}
	return &v
}

// Verdict says whether the figure meets its target. If a ratio differs too much from turn to turn, the verdict is "not
// measured", even if the figure has no target.
func (f Figure) Verdict() string {
	switch {
	case f.Ours == nil:
		return ""
	case f.isRatio() && f.Spread.tooWide():
		return notMeasured
	case f.Target == 0:
		return ""
	}
	return Judge(f.Spread, f.Target, f.AtLeast)
}

// Fill computes the figures of a benchmark, once for each number of clients that was measured.
func (r *Report) Fill(benchmark string, figures []Figure) (filled []Figure) {
	for _, f := range figures {
		for _, left := range r.find(benchmark, f.Left) {
			f.Benchmark, f.Clients = benchmark, left.Clients
			if f.alone() {
				f.OursLeft = f.Metric.of(left)
				f.Ours, f.Spread = f.OursLeft, f.Metric.spreadAlone(left)
				filled = append(filled, f)
				continue
			}
			right := nearest(r.find(benchmark, f.Right), left.Clients)
			if right == nil {
				continue
			}
			f.OursLeft, f.OursRight = f.Metric.of(left), f.Metric.of(right)
			f.Ours = f.Metric.Compare(f.OursLeft, f.OursRight)
			f.Spread = f.Metric.spreadOf(left, right)
			f.Study = f.Metric.Compare(IfPublished(f.StudyLeft), IfPublished(f.StudyRight))
			filled = append(filled, f)
		}
	}
	return filled
}

func (r *Report) find(benchmark string, ref Ref) (found []*Measure) {
	for _, m := range r.Measures {
		if m.Benchmark == benchmark && m.Experiment == ref.Experiment && m.Path == ref.Path {
			found = append(found, m)
		}
	}
	return found
}

// nearest returns the measure in the list with the given number of clients. If there is none and the list has only one
// measure, it returns that one, otherwise nil.
func nearest(list []*Measure, clients int) *Measure {
	for _, m := range list {
		if m.Clients == clients {
			return m
		}
	}
	if len(list) == 1 {
		return list[0]
	}
	return nil
}
