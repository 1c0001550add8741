package bench

import (
	"fmt"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Measure is what one path has shown in one experiment at one number of clients.
type Measure struct {
	Benchmark  string `json:"benchmark"`
	Experiment string `json:"experiment"`
	Title      string `json:"title"` // of the experiment
	Path       string `json:"path"`
	Method     string `json:"method"` // the API methods that the path calls
	Clients    int    `json:"clients"`
	Tag        string `json:"tag,omitempty"`

	Operations int64    `json:"operations"`
	Unsent     int64    `json:"unsent,omitempty"` // of an open loop: due and never sent
	Seconds    float64  `json:"seconds"`
	PerSecond  float64  `json:"operations_per_second"`
	Latency    Latency  `json:"latency_us"`
	Corrected  *Latency `json:"corrected_latency_us,omitempty"` // of a closed loop: see correct
	// CPU is the server's CPU time of one operation; nil where nobody knows.
	CPU       *float64 `json:"server_cpu_us,omitempty"`
	CPUSource string   `json:"server_cpu_source,omitempty"`

	group   int                     // position of the first measure that takes turns with this one
	latency *hdrhistogram.Histogram // microseconds
	elapsed time.Duration
	cpu     time.Duration
	metered bool
}

// Latency is a histogram in a few figures, in microseconds.
type Latency struct {
	Mean float64 `json:"mean"`
	P50  int64   `json:"p50"`
	P90  int64   `json:"p90"`
	P99  int64   `json:"p99"`
	P999 int64   `json:"p999"`
	Max  int64   `json:"max"`
}

func latencyOf(h *hdrhistogram.Histogram) Latency {
	q := h.ValueAtQuantile
	return Latency{h.Mean(), q(50), q(90), q(99), q(99.9), h.Max()}
}

// MeanText prints the mean in milliseconds.
func (l Latency) MeanText() string { return fmt.Sprintf("%.3f", l.Mean/1e3) }

// fromProcess is the source of CPU times read from the operating system.
const fromProcess = "process"

// add takes in a window and brings the figures up to date.
func (m *Measure) add(w window) {
	m.latency.Merge(w.latency)
	m.elapsed += w.elapsed
	m.cpu += w.cpu
	m.Operations = m.latency.TotalCount()
	m.Seconds = m.elapsed.Seconds()
	if m.Operations == 0 {
		return
	}
	m.PerSecond = float64(m.Operations) / m.Seconds
	m.Latency = latencyOf(m.latency)
	if m.metered {
		cpu := float64(m.cpu.Nanoseconds()) / 1e3 / float64(m.Operations)
		m.CPU, m.CPUSource = &cpu, fromProcess
	}
}

// correct finds what the latencies of a closed loop would have been if its clients
// had gone on sending at their usual pace, one operation each median latency, while
// an answer was late (HdrHistogram's correction for coordinated omission).
func (m *Measure) correct() {
	if m.Operations == 0 {
		return
	}
	h := newHistogram()
	interval := max(1, m.Latency.P50)
	for _, bar := range m.latency.Distribution() {
		if bar.Count == 0 {
			continue
		}
		for v := bar.To; v == bar.To || v >= interval; v -= interval {
			h.RecordValues(min(v, h.HighestTrackableValue()), bar.Count)
		}
	}
	l := latencyOf(h)
	m.Corrected = &l
}

// Sample is a moment of the run: one path, for one tick.
type Sample struct {
	Seconds   float64  `json:"at_s"`    // since the run began, at the sample's end
	Width     float64  `json:"width_s"` // how long it lasted
	Measure   int      `json:"measure"` // position in Report.Measures
	PerSecond float64  `json:"operations_per_second"`
	P50       int64    `json:"p50_us"`
	P99       int64    `json:"p99_us"`
	Cores     *float64 `json:"server_cores,omitempty"` // CPU seconds of the server per second
}
