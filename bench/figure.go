package bench

// Figure is a published figure, or a target, with what this run has measured beside it.
type Figure struct {
	Name   string `json:"name"`
	Metric Metric `json:"metric"`
	Left   Ref    `json:"left"`
	Right  Ref    `json:"right"`
	// What was published: both sides in microseconds, and left / right; 0 is not published.
	StudyLeft  float64 `json:"study_left,omitempty"`
	StudyRight float64 `json:"study_right,omitempty"`
	Study      float64 `json:"study,omitempty"`
	// Target is what Crowfoot wants to reach: at most, or at least if AtLeast; 0 is none.
	Target  float64 `json:"target,omitempty"`
	AtLeast bool    `json:"target_is_least,omitempty"`

	Clients   int      `json:"clients"`
	OursLeft  *float64 `json:"ours_left,omitempty"` // nil where nobody knows
	OursRight *float64 `json:"ours_right,omitempty"`
	Ours      *float64 `json:"ours,omitempty"`
}

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
	Throughput    Metric = "operations per second"
	// LatencyAdded is compared by left - right.
	LatencyAdded Metric = "latency added"
)

func (k Metric) of(m *Measure) *float64 {
	if m.Operations == 0 {
		return nil
	}
	v := m.PerSecond
	switch k {
	case ServerCPU:
		return m.CPU
	case MedianLatency, LatencyAdded:
		v = float64(m.Latency.P50)
	}
	return &v
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

// met says whether the target is reached; ok is false without a target or without a figure of ours.
func (f Figure) met() (met, ok bool) {
	if f.Target == 0 || f.Ours == nil {
		return false, false
	}
	return *f.Ours <= f.Target == !f.AtLeast || *f.Ours == f.Target, true
}

// figuresOf fills in a benchmark's figures, once for each number of clients that was measured.
func (r *Report) figuresOf(b Benchmark) (filled []Figure) {
	if b.figures == nil {
		return nil
	}
	for _, f := range b.figures(r.Settings) {
		for _, left := range r.find(b.name, f.Left) {
			right := nearest(r.find(b.name, f.Right), left.Clients)
			if right == nil {
				continue
			}
			f.Clients = left.Clients
			f.OursLeft, f.OursRight = f.Metric.of(left), f.Metric.of(right)
			f.Ours = f.Metric.compare(f.OursLeft, f.OursRight)
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

// nearest is the measure with so many clients, or the only one there is.
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
