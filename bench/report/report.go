package report

import (
	"encoding/json"
	"io"
	"time"

	"github.com/crowfoot-db/crowfoot/bench"
)

// Heading is the beginning of every report. It says when the benchmark ran, on which machine and against which server.
type Heading struct {
	Began time.Time `json:"began"`
	Ended time.Time `json:"ended"`
	// Partial is the reason why the run ended early; "" if it did not.
	Partial  string   `json:"partial,omitempty"`
	Machine  Machine  `json:"machine"`
	Server   string   `json:"server"`
	Database string   `json:"database"`
	Facts    []string `json:"facts,omitempty"` // sentences about what the run observed besides the measures
}

// NewHeading returns the heading for the report of a run that has just begun.
func NewHeading(began time.Time, server, database string) Heading {
	return Heading{Began: began.UTC(), Machine: thisMachine(), Server: server, Database: database}
}

// Took returns the duration of the run in whole seconds.
func (h *Heading) Took() string { return h.Ended.Sub(h.Began).Round(time.Second).String() }

// Report holds all results of a run. The flag --json writes it to a file.
type Report struct {
	Heading
	Benchmarks []string       `json:"benchmarks"`
	Settings   bench.Settings `json:"settings"`
	Measures   []*Measure     `json:"measures"`
	Pairs      []Pair         `json:"pairs"`
	Figures    []Figure       `json:"figures"`
	Fits       []Fit          `json:"fits,omitempty"`
	Statistics []Statistic    `json:"server_statistics"`

	About   map[string]string `json:"-"` // a sentence about each benchmark, by its name
	Studies map[string]*Study `json:"-"` // the study that each benchmark repeats, by its name; nil for none
	// OwnGrids holds, by benchmark, the function that makes the tables that only this benchmark has. These tables come
	// before those that the report shows for every benchmark.
	OwnGrids map[string]func(*Report) []Grid `json:"-"`
	// Published holds the averages of the server's statistics that a study published, by measure.
	Published map[Ref]Averages `json:"-"`
	wanted    []wantedPair
}

// Pair is a comparison of two paths of an experiment.
type Pair struct {
	Title     string `json:"title"`
	Left      int    `json:"left"`  // index in Measures
	Right     int    `json:"right"` // index in Measures
	LeftPath  string `json:"left_path"`
	RightPath string `json:"right_path"`
	Clients   int    `json:"clients"`
	// The ratios are left / right; nil if unknown.
	Latency    *float64 `json:"latency_ratio,omitempty"` // of the median latencies
	Tail       *float64 `json:"p99_ratio,omitempty"`
	CPU        *float64 `json:"server_cpu_ratio,omitempty"`
	Throughput *float64 `json:"throughput_ratio,omitempty"`
	// The spreads say how much the ratios differ from turn to turn.
	LatencySpread *Spread `json:"latency_spread,omitempty"`
	CPUSpread     *Spread `json:"server_cpu_spread,omitempty"`
}

// wantedPair is a pair of paths that the report must compare. Its fields are indexes in Measures.
type wantedPair struct{ left, right int }

// Compare adds a pair of paths of an experiment that has begun. left and right are indexes in Measures.
func (r *Report) Compare(left, right int) { r.wanted = append(r.wanted, wantedPair{left, right}) }

// groupTitle returns the title of the measure's experiment. It adds the number of clients if that is the same for all
// paths.
func (r *Report) groupTitle(m *Measure) string {
	for _, other := range r.Measures {
		if other.Group == m.Group && other.Clients != m.Clients {
			return m.Title
		}
	}
	return m.Title + ", " + Plural(m.Clients, "client")
}

// Complete computes the comparisons and the figures of each benchmark. It leaves out paths without measurements, which
// the run did not reach.
func (r *Report) Complete(figures map[string][]Figure) {
	r.Ended = time.Now().UTC()
	for _, w := range r.wanted {
		left, right := r.Measures[w.left], r.Measures[w.right]
		if left.Operations == 0 || right.Operations == 0 {
			continue
		}
		r.Pairs = append(r.Pairs, Pair{
			Title: left.Title, Left: w.left, Right: w.right, LeftPath: left.Path, RightPath: right.Path, Clients: left.Clients,
			Latency:    MedianLatency.Compare(MedianLatency.of(left), MedianLatency.of(right)),
			Tail:       Ratio(float64(left.tail().P99), float64(right.tail().P99)),
			CPU:        ServerCPU.Compare(left.CPU, right.CPU),
			Throughput: Throughput.Compare(Throughput.of(left), Throughput.of(right)),

			LatencySpread: MedianLatency.spreadOf(left, right), CPUSpread: ServerCPU.spreadOf(left, right),
		})
	}
	for _, m := range r.Measures {
		m.countCalls()
	}
	r.Fits = fits(r.Measures)
	for _, name := range r.Benchmarks {
		r.Figures = append(r.Figures, r.Fill(name, figures[name])...)
	}
}

func Ratio(a, b float64) *float64 {
	if b == 0 {
		return nil
	}
	q := a / b
	return &q
}

// tail returns the latencies by which the report judges the slowest operations: the latencies that are corrected for
// coordinated omission or, if there are none, the measured latencies.
func (m *Measure) tail() Latency {
	if m.Corrected != nil {
		return *m.Corrected
	}
	return m.Latency
}

// WriteJSON writes the results as JSON.
func (r *Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}
