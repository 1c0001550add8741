package report

import (
	"fmt"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Measure holds the results of one path in one experiment at one number of clients.
type Measure struct {
	Benchmark  string  `json:"benchmark"`
	Experiment string  `json:"experiment"`
	Title      string  `json:"title"` // of the experiment
	Path       string  `json:"path"`
	Method     string  `json:"method"` // the API methods that the path calls
	Clients    int     `json:"clients"`
	Size       int     `json:"size,omitempty"` // rows of one operation, if the experiments differ in nothing else
	Tag        string  `json:"tag,omitempty"`
	Codec      string  `json:"codec,omitempty"`           // the format of the rows and their compression
	Copy       string  `json:"columnar_copy,omitempty"`   // whether rows may come from a columnar copy: "on" or "off"
	Rate       float64 `json:"rate_per_second,omitempty"` // operations due per second; 0 for a closed loop

	// Failed is the reason why a foreign program or database gave no figures, or "" if it gave some.
	Failed string `json:"failed,omitempty"`

	Operations    int64    `json:"operations"`
	Rows          int64    `json:"rows"`             // read or written
	Unsent        int64    `json:"unsent,omitempty"` // operations of an open loop that were due and never sent
	Seconds       float64  `json:"seconds"`
	PerSecond     float64  `json:"operations_per_second"`
	RowsPerSecond float64  `json:"rows_per_second"`
	Latency       Latency  `json:"latency_us"`
	Corrected     *Latency `json:"corrected_latency_us,omitempty"` // of a closed loop: the method Correct computes it
	// CPU is the server's CPU time per operation in microseconds; nil if unknown.
	CPU       *float64 `json:"server_cpu_us,omitempty"`
	CPUSource string   `json:"server_cpu_source,omitempty"`
	// ClientCPU is the client's CPU time per operation in microseconds; nil if unknown. The client is this program or,
	// for some paths, another process.
	ClientCPU *float64 `json:"client_cpu_us,omitempty"`
	Turns     []Turn   `json:"turns,omitempty"`
	// Calls holds how many calls of each API method one operation makes. It is empty if the server does not count
	// calls.
	Calls []Calls `json:"calls,omitempty"`
	// Averages holds the server's statistics of each call of the path. It is empty if the run did not query the
	// statistics or found none.
	Averages []Averages `json:"averages,omitempty"`
	// Transactions holds the server's statistics of the path's transactions; nil if there are none.
	Transactions *Transactions `json:"transactions,omitempty"`

	// Group is the same number for all measures of paths that take turns with each other. It is the index of the first
	// of these measures in Report.Measures.
	Group   int                     `json:"-"`
	latency *hdrhistogram.Histogram // latencies in all turns, in microseconds
	elapsed time.Duration
	cpu     time.Duration
	own     time.Duration // the client's CPU time
	Metered bool          `json:"-"` // true if the run can see the server's process
	// Parallel is true if several calls of one operation run at the same time. Then the sum of the calls' latencies is
	// not the operation's latency.
	Parallel     bool                    `json:"-"`
	counted      MethodCounts            // the server's counts of calls, over all turns
	roundLatency *hdrhistogram.Histogram // latencies in the latest turn, in microseconds
	used         time.Duration           // the server's CPU time in the latest turn
}

// Turn holds the results of one turn of a path.
type Turn struct {
	// Failed is the reason why a foreign program or database gave no figures, or "" if it gave some.
	Failed string `json:"failed,omitempty"`

	Operations int64   `json:"operations"`
	Rows       int64   `json:"rows"`
	Seconds    float64 `json:"seconds"`
	Mean       float64 `json:"mean_us"`
	P50        int64   `json:"p50_us"`
	P99        int64   `json:"p99_us"`
	// CPU is the server's CPU time per operation in microseconds; nil if unknown.
	CPU *float64 `json:"server_cpu_us,omitempty"`
}

// of returns the value of the metric in this turn; nil if unknown.
func (t Turn) of(k Metric) *float64 {
	if t.Operations == 0 {
		return nil
	}
	return k.value(finding{float64(t.Operations), float64(t.Rows), t.Seconds, t.Mean, float64(t.P50), float64(t.P99), t.CPU})
}

// Latency summarizes a histogram of latencies, in microseconds.
type Latency struct {
	Mean float64 `json:"mean"`
	P50  int64   `json:"p50"`
	P90  int64   `json:"p90"`
	P99  int64   `json:"p99"`
	P999 int64   `json:"p999"`
	Max  int64   `json:"max"`
}

func LatencyOf(h *hdrhistogram.Histogram) Latency {
	q := h.ValueAtQuantile
	return Latency{h.Mean(), q(50), q(90), q(99), q(99.9), h.Max()}
}

// Commits reports whether the path's operations are transactions that write.
func (m *Measure) Commits() bool {
	return strings.HasSuffix(m.Method, "Commit") || m.Method == "BatchWrite"
}

// MeanText formats the mean in milliseconds.
func (l Latency) MeanText() string { return fmt.Sprintf("%.3f", l.Mean/1e3) }

// fromProcess is the source of CPU times that were read from the operating system.
const fromProcess = "process"

// BeginTurn starts the next turn. Add then adds its results.
func (m *Measure) BeginTurn() {
	if m.latency == nil {
		m.latency = NewHistogram()
	}
	m.Turns = append(m.Turns, Turn{})
	m.roundLatency, m.used = NewHistogram(), 0
}

// Add adds the results of a window to the turn that BeginTurn has started, and updates the measure's totals.
func (m *Measure) Add(w Window) {
	m.addToRound(w)
	m.latency.Merge(w.Latency)
	m.Rows += w.Rows
	m.elapsed += w.Elapsed
	m.cpu += w.CPU
	m.own += w.Own
	m.Operations = m.latency.TotalCount()
	m.Seconds = m.elapsed.Seconds()
	if m.Operations == 0 {
		return
	}
	m.PerSecond, m.RowsPerSecond = float64(m.Operations)/m.Seconds, float64(m.Rows)/m.Seconds
	m.Latency = LatencyOf(m.latency)
	if m.own > 0 {
		own := float64(m.own.Nanoseconds()) / 1e3 / float64(m.Operations)
		m.ClientCPU = &own
	}
	if m.Metered {
		cpu := float64(m.cpu.Nanoseconds()) / 1e3 / float64(m.Operations)
		m.CPU, m.CPUSource = &cpu, fromProcess
	}
}

// Fail records that a foreign program or database has failed with err, and discards its measurements.
func (m *Measure) Fail(err error) {
	m.Failed, m.Operations, m.Turns = OneLine(err), 0, nil
}

func (m *Measure) addToRound(w Window) {
	t := &m.Turns[len(m.Turns)-1]
	m.roundLatency.Merge(w.Latency)
	m.used += w.CPU
	t.Operations, t.Rows, t.Seconds = m.roundLatency.TotalCount(), t.Rows+w.Rows, t.Seconds+w.Elapsed.Seconds()
	t.Mean, t.P50, t.P99 = m.roundLatency.Mean(), m.roundLatency.ValueAtQuantile(50), m.roundLatency.ValueAtQuantile(99)
	if m.Metered && t.Operations > 0 {
		cpu := float64(m.used.Nanoseconds()) / 1e3 / float64(t.Operations)
		t.CPU = &cpu
	}
}

// Correct estimates the latencies of a closed loop as if its clients had continued to send at their usual pace while
// an answer was late. The usual pace is one operation per median latency. This is HdrHistogram's correction for
// coordinated omission.
func (m *Measure) Correct() {
	if m.Operations == 0 {
		return
	}
	h := NewHistogram()
	interval := max(1, m.Latency.P50)
	for _, bar := range m.latency.Distribution() {
		if bar.Count == 0 {
			continue
		}
		for v := bar.To; v == bar.To || v >= interval; v -= interval {
			h.RecordValues(min(v, h.HighestTrackableValue()), bar.Count)
		}
	}
	l := LatencyOf(h)
	m.Corrected = &l
}
