package bench

// Study is a publication whose figures stand beside ours.
type Study struct {
	Title  string `json:"title"`
	Author string `json:"author"`
	Date   string `json:"date"`
	// sentence sums up what it says and what was measured here; it takes the ranges of both.
	sentence string
}

func (s Study) text() string { return s.Author + ", \"" + s.Title + "\", " + s.Date }

// Figure is a published figure, or a target, with what this run has measured beside it.
type Figure struct {
	Benchmark string `json:"benchmark"`
	Name      string `json:"name"`
	Metric    Metric `json:"metric"`
	Left      Ref    `json:"left"`
	Right     Ref    `json:"right"` // empty for a figure that is no ratio, but Left's alone
	// What was published, in microseconds; 0 is not published.
	StudyLeft  float64 `json:"study_left,omitempty"`
	StudyRight float64 `json:"study_right,omitempty"`
	// Study is computed from the two, as ours is.
	Study *float64 `json:"study,omitempty"`
	// Basis says what kind of figures stand beside each other, where the study's and ours are of different kinds.
	Basis string `json:"basis,omitempty"`
	// summed says that the study's sentence sums it up.
	summed bool
	// Target is what Crowfoot wants to reach: at most, or at least if AtLeast; 0 is none.
	Target  float64 `json:"target,omitempty"`
	AtLeast bool    `json:"target_is_least,omitempty"`

	Clients   int      `json:"clients"`
	OursLeft  *float64 `json:"ours_left,omitempty"` // nil if it is unknown
	OursRight *float64 `json:"ours_right,omitempty"`
	Ours      *float64 `json:"ours,omitempty"`
	Spread    *Spread  `json:"spread,omitempty"` // of ours, over the turns
}

// alone says that the figure is no ratio.
func (f Figure) alone() bool { return f.Right == Ref{} }

// isRatio says that the figure has no unit.
func (f Figure) isRatio() bool { return f.Metric != LatencyAdded && !f.alone() }

// Ref names a measure within a benchmark.
type Ref struct {
	Experiment string `json:"experiment"`
	Path       string `json:"path"`
}

// Metric is what two paths are compared by.
type Metric string

// The metrics. Latencies and CPU are in microseconds and compared by left / right.
const (
	ServerCPU     Metric = "server CPU"
	MedianLatency Metric = "latency"
	MeanLatency   Metric = "mean latency"
	P99Latency    Metric = "p99 of latency"
	Throughput    Metric = "operations per second"
	RowThroughput Metric = "rows per second"
	// RowCPU is ServerCPU divided by the rows of an operation.
	RowCPU Metric = "server CPU per row"
	// AverageCPU is what the server's statistics say: AVG_CPU_SECONDS.
	AverageCPU Metric = "average CPU"
	// LatencyAdded is compared by left - right.
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

// finding is what a measure or a turn has found: latencies in microseconds, and the server's CPU time of one operation, nil if it is unknown.
type finding struct {
	operations, rows, seconds, mean, median, p99 float64
	cpu                                          *float64
}

// value works out the figure that the metric stands for.
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
		return nil // the server's statistics know intervals, not turns
	case MeanLatency:
		return &s.mean
	case P99Latency:
		return &s.p99
	case Throughput:
		return &perSecond
	}
	return &s.median
}

func (k Metric) compare(left, right *float64) *float64 {
	if left == nil || right == nil || k != LatencyAdded && *right == 0 {
		return nil
	}
	v := *left - *right
	if k != LatencyAdded {
		v = *left / *right
	}
	return &v
}

// verdict judges the target, if there is one. A ratio that differs too much from turn to turn counts as not measured, with a target or without.
func (f Figure) verdict() string {
	switch {
	case f.Ours == nil:
		return ""
	case f.isRatio() && f.Spread.tooWide():
		return notMeasured
	case f.Target == 0:
		return ""
	}
	return judge(f.Spread, f.Target, f.AtLeast)
}

// fill works out a benchmark's figures, once for each number of clients that was measured.
func (r *Report) fill(benchmark string, figures []Figure) (filled []Figure) {
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
			f.Ours = f.Metric.compare(f.OursLeft, f.OursRight)
			f.Spread = f.Metric.spreadOf(left, right)
			f.Study = f.Metric.compare(studied(f.StudyLeft), studied(f.StudyRight))
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

// nearest is the measure with that number of clients, or the only one in the list; nil if several have other numbers.
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
