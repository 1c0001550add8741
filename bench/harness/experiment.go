package harness

import (
	"context"
	"slices"
	"strings"

	"github.com/crowfoot-db/crowfoot/bench"
	"github.com/crowfoot-db/crowfoot/bench/report"
)

// Benchmark is a named list of experiments: a study that is run again, or a comparison of our own.
type Benchmark struct {
	Name  string
	About string        // a sentence for the report
	Study *report.Study // nil for none
	// Check returns an error if the benchmark cannot run with the settings. Nil checks nothing. Settings.check checks
	// the settings that all benchmarks use.
	Check func(bench.Settings) error
	// Prepare makes the tables and rows and returns the experiments.
	Prepare func(ctx context.Context, r *Runner) ([]Experiment, error)
	// After runs when all experiments have been measured. It may be nil.
	After func(ctx context.Context, r *Runner) error
	// Close stops the servers and closes the files that prepare has opened, even if the run failed. It may be nil.
	Close func() error
	// Figures returns the published figures and Crowfoot's targets.
	Figures func(bench.Settings) []report.Figure // nil for none
	// Grids returns the tables that only this benchmark has. They stand before those of every benchmark. Nil means
	// none.
	Grids func(*report.Report) []report.Grid
	// Published are the study's averages of the server's statistics. It may be nil.
	Published map[report.Ref]report.Averages
}

// Experiment compares paths to the same result.
type Experiment struct {
	Name  string // in tags and JSON, such as one_key
	Title string // for people, such as one key
	Size  int    // rows of one operation, if the experiments differ in nothing else; otherwise 0
	Paths []Path
	// Pairs are the names of the paths, left and right, that the report compares.
	Pairs [][2]string

	Rate     float64 // operations per second of each path; 0 for the run's rate
	Untagged bool    // the calls have no tags
	Interval intervalUse
}

// intervalUse says when an experiment may begin. It matters because the server keeps its statistics by intervals.
type intervalUse int

const (
	anyInterval  intervalUse = iota // at any time
	OwnInterval                     // when an interval begins
	SameInterval                    // in the interval of the experiment before it
)

// Path is one way to a result.
type Path struct {
	Name      string
	Method    string // the API methods that it calls, in order
	Operation Operation
	// Server is the server that answers, nil for the target.
	Server *Server
	// StatisticsKeys identifies the path's calls in the server's statistics. It is nil if the run does not query them.
	StatisticsKeys []StatisticsKey
	// Clients is the number of clients, 0 for the run's number.
	Clients int
	// CountsBetween is true if the server's CPU time between two turns counts with the turn that follows.
	CountsBetween bool
	// Beside runs during each turn and must return soon after stop closes. It may be nil.
	Beside func(ctx context.Context, stop <-chan struct{}) error
	// Local is true if the operation calls no server.
	Local bool
	// Foreign is true if a foreign program or database answers. If it fails, only this path ends and not the run.
	Foreign bool
	// ClientCPU reads the CPU time of the client. It is nil if the client is this program.
	ClientCPU CPUMeter
	// Codec names the format of the rows and their compression, in experiments that compare these; otherwise it is
	// "".
	Codec string
	// Copy says whether rows may come from a columnar copy, copyOn or copyOff, in experiments that compare the two;
	// otherwise it is "".
	Copy string
	// Parallel is true if one operation makes several calls at the same time.
	Parallel bool
}

// As returns the path with another name and server.
func (p Path) As(name string, on *Server) Path {
	p.Name, p.Server = name, on
	return p
}

// AgainstFirst pairs every path but the first with the first path.
func AgainstFirst(paths []Path) (pairs [][2]string) {
	for _, p := range paths[1:] {
		pairs = append(pairs, [2]string{p.Name, paths[0].Name})
	}
	return pairs
}

// maxTag is Spanner's limit for request and transaction tags, in characters.
const maxTag = 50

// Tag returns a path's tag, by which the server's statistics identify it. It has at most maxTag characters.
func Tag(parts ...string) string {
	text := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '_'
	}, strings.Join(parts, "_"))
	return text[:min(len(text), maxTag)]
}

// StatisticsKey identifies a call in the server's statistics: a query by its text, a read by its table or index and its
// columns.
type StatisticsKey struct {
	Text    string // "" for a read
	Source  string
	Columns []string
}

// Reads reports whether a value of READ_COLUMNS belongs to the call. READ_COLUMNS has the name of the table or index
// before each column. It lists the key's columns by their names, or all of them together as _exists.
func (c StatisticsKey) Reads(columns []string) bool {
	var rest []string
	for _, full := range columns {
		source, column, _ := strings.Cut(full, ".")
		if source != c.Source {
			return false
		}
		if column != "_exists" && column != "id" {
			rest = append(rest, column)
		}
	}
	want := slices.DeleteFunc(slices.Clone(c.Columns), func(column string) bool { return column == "id" })
	slices.Sort(rest)
	return slices.Equal(rest, slices.Sorted(slices.Values(want)))
}
