package bench

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
	Size       int     `json:"size,omitempty"` // rows of an operation, where experiments differ in that alone
	Tag        string  `json:"tag,omitempty"`
	Codec      string  `json:"codec,omitempty"`           // the form in which rows come, and how they are compressed
	Copy       string  `json:"columnar_copy,omitempty"`   // on or off: whether rows may come from a columnar copy
	Rate       float64 `json:"rate_per_second,omitempty"` // at which operations were due; 0 is a closed loop

	// Failed says why a foreign program or database gave no figures; "" if it did.
	Failed string `json:"failed,omitempty"`

	Operations    int64    `json:"operations"`
	Rows          int64    `json:"rows"`             // read or written
	Unsent        int64    `json:"unsent,omitempty"` // of an open loop: due and never sent
	Seconds       float64  `json:"seconds"`
	PerSecond     float64  `json:"operations_per_second"`
	RowsPerSecond float64  `json:"rows_per_second"`
	Latency       Latency  `json:"latency_us"`
	Corrected     *Latency `json:"corrected_latency_us,omitempty"` // of a closed loop: see correct
	// CPU is the server's CPU time of one operation; nil if it is unknown.
	CPU       *float64 `json:"server_cpu_us,omitempty"`
	CPUSource string   `json:"server_cpu_source,omitempty"`
	// ClientCPU is the CPU time of this program, or of the process that is the client in its place, of one operation; nil if it is unknown.
	ClientCPU *float64 `json:"client_cpu_us,omitempty"`
	Turns     []Turn   `json:"turns,omitempty"`
	// Calls of one operation by API method; empty if the server does not count them.
	Calls []Calls `json:"calls,omitempty"`
	// Averages are what the server's statistics say of each of the path's calls; empty if the run does not ask, or had no answer.
	Averages []Averages `json:"averages,omitempty"`
	// Transactions is what the server's statistics say of the path's transactions; nil if nothing.
	Transactions *Transactions `json:"transactions,omitempty"`

	group   int                     // position of the first measure that takes turns with this one
	latency *hdrhistogram.Histogram // microseconds
	elapsed time.Duration
	cpu     time.Duration
	own     time.Duration // the client's CPU time
	metered bool
	// parallel says that calls of one operation run at the same time: their latencies do not add up to the operation's.
	parallel bool
	asked    []asked
	// intervalEnd is the end of the interval of the server's statistics in which all operations were; zero if there is none.
	intervalEnd time.Time
	counted     methodCounts            // by the server, in all turns
	turn        *hdrhistogram.Histogram // microseconds, of the last of Turns
	used        time.Duration           // the server's CPU time in the last of Turns
}

// Turn holds the results of one turn of a path.
type Turn struct {
	// Failed says why a foreign program or database gave no figures; "" if it did.
	Failed string `json:"failed,omitempty"`

	Operations int64    `json:"operations"`
	Rows       int64    `json:"rows"`
	Seconds    float64  `json:"seconds"`
	Mean       float64  `json:"mean_us"`
	P50        int64    `json:"p50_us"`
	P99        int64    `json:"p99_us"`
	CPU        *float64 `json:"server_cpu_us,omitempty"` // of one operation; nil if it is unknown
}

// of is what the metric says of the turn; nil if it is unknown.
func (t Turn) of(k Metric) *float64 {
	if t.Operations == 0 {
		return nil
	}
	return k.value(finding{float64(t.Operations), float64(t.Rows), t.Seconds, t.Mean, float64(t.P50), float64(t.P99), t.CPU})
}

// Latency sums up a histogram, in microseconds.
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

// commits says whether the path's operations are transactions that write.
func (m *Measure) commits() bool {
	return strings.HasSuffix(m.Method, "Commit") || m.Method == "BatchWrite"
}

// MeanText prints the mean in milliseconds.
func (l Latency) MeanText() string { return fmt.Sprintf("%.3f", l.Mean/1e3) }

// fromProcess is the source of CPU times read from the operating system.
const fromProcess = "process"

// begin opens a turn.
func (m *Measure) begin() {
	m.Turns = append(m.Turns, Turn{})
	m.turn, m.used = newHistogram(), 0
}

// add takes in a window of the turn that begin has opened, and brings the figures up to date.
func (m *Measure) add(w window) {
	m.addToTurn(w)
	m.latency.Merge(w.latency)
	m.Rows += w.rows
	m.elapsed += w.elapsed
	m.cpu += w.cpu
	m.own += w.own
	m.Operations = m.latency.TotalCount()
	m.Seconds = m.elapsed.Seconds()
	if m.Operations == 0 {
		return
	}
	m.PerSecond, m.RowsPerSecond = float64(m.Operations)/m.Seconds, float64(m.Rows)/m.Seconds
	m.Latency = latencyOf(m.latency)
	if m.own > 0 {
		own := float64(m.own.Nanoseconds()) / 1e3 / float64(m.Operations)
		m.ClientCPU = &own
	}
	if m.metered {
		cpu := float64(m.cpu.Nanoseconds()) / 1e3 / float64(m.Operations)
		m.CPU, m.CPUSource = &cpu, fromProcess
	}
}

// fail drops what was measured of a foreign program or database that has failed.
func (m *Measure) fail(err error) {
	m.Failed, m.Operations, m.Turns = oneLine(err), 0, nil
}

func (m *Measure) addToTurn(w window) {
	t := &m.Turns[len(m.Turns)-1]
	m.turn.Merge(w.latency)
	m.used += w.cpu
	t.Operations, t.Rows, t.Seconds = m.turn.TotalCount(), t.Rows+w.rows, t.Seconds+w.elapsed.Seconds()
	t.Mean, t.P50, t.P99 = m.turn.Mean(), m.turn.ValueAtQuantile(50), m.turn.ValueAtQuantile(99)
	if m.metered && t.Operations > 0 {
		cpu := float64(m.used.Nanoseconds()) / 1e3 / float64(t.Operations)
		t.CPU = &cpu
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
