package harness

import (
	"context"
	"slices"
	"strings"

	"github.com/crowfoot-db/crowfoot/bench"
	"github.com/crowfoot-db/crowfoot/bench/report"
)

// Benchmark is a named list of experiments. They repeat a published study, or compare something that no study has
// published.
type Benchmark struct {
	Name  string
	About string        // a sentence for the report
	Study *report.Study // nil for none
	// Check returns an error if the benchmark cannot run with the settings; nil means that every setting is fine.
	// Settings.Check checks the settings that all benchmarks use.
	Check func(bench.Settings) error
	// Prepare creates and fills the tables and returns the experiments.
	Prepare func(ctx context.Context, r *Runner) ([]Experiment, error)
	// After is called when all experiments have been measured. It may be nil.
	After func(ctx context.Context, r *Runner) error
	// Close stops the servers and closes the files that Prepare has opened, even if the run failed. It may be nil.
	Close func() error
	// Figures returns the published figures and Crowfoot's targets.
	Figures func(bench.Settings) []report.Figure // nil for none
	// Grids returns the tables that the report shows only for this benchmark. They come before the tables that it
	// shows for every benchmark. Nil means none.
	Grids func(*report.Report) []report.Grid
	// Published holds the averages of the server's statistics that the study in the field Study has published, by
	// measure. It may be nil.
	Published map[report.Ref]report.Averages
}

// Experiment compares paths, which are different ways to do the same work.
type Experiment struct {
	Name  string // in tags and JSON, such as one_key
	Title string // for people, such as one key
	Size  int    // how many rows one operation has, if the experiments differ only in this number; otherwise 0
	Paths []Path
	// Pairs lists the pairs of paths that the report compares, by their names: left and right.
	Pairs [][2]string

	Rate     float64 // operations per second of each path; 0 for the run's rate
	Untagged bool    // the calls have no tags
	Interval intervalUse
}

// intervalUse says in which interval of the server's statistics an experiment may run.
type intervalUse int

const (
	anyInterval  intervalUse = iota // at any time
	OwnInterval                     // from the beginning of an interval
	SameInterval                    // in the interval of the experiment before it
)

// Path is one way to do the work of an experiment, such as a read by SQL.
type Path struct {
	Name      string
	Method    string // the API methods that it calls, in order
	Operation Operation
	// Server is the server that answers; nil stands for the target.
	Server *Server
	// StatisticsKeys identify the path's calls in the server's statistics. It is nil if the run does not query the
	// statistics of these calls.
	StatisticsKeys []StatisticsKey
	// Clients is the number of clients; 0 stands for the run's number.
	Clients int
	// CountsBetween is true if the CPU time that the server uses between two turns counts for the later turn. A path
	// sets it if the server still works for a turn after the turn's end: for example, if it then updates a columnar
	// copy.
	CountsBetween bool
	// Beside is a function that runs during each turn, in parallel with the operations. It must return soon after stop
	// closes. It may be nil.
	Beside func(ctx context.Context, stop <-chan struct{}) error
	// Local is true if the operation does not call a server.
	Local bool
	// Foreign is true if a foreign program or database answers. If it fails, the path ends but the run continues.
	Foreign bool
	// ClientCPU reads the CPU time of the client. It is nil if this program is the client.
	ClientCPU CPUMeter
	// Codec is the format of the rows and their compression, in experiments that compare formats; otherwise it is "".
	Codec string
	// Copy is "on" if the rows of this path may come from a columnar copy, and "off" if not. It is "" in experiments
	// that do not compare this, and for paths that do not read from the target.
	Copy string
	// Parallel is true if one operation makes several calls at the same time.
	Parallel bool
}

// As returns a copy of the path with another name and server.
func (p Path) As(name string, on *Server) Path {
	p.Name, p.Server = name, on
	return p
}

// AgainstFirst returns pairs that compare each path except the first with the first path.
func AgainstFirst(paths []Path) (pairs [][2]string) {
	for _, p := range paths[1:] {
		pairs = append(pairs, [2]string{p.Name, paths[0].Name})
	}
	return pairs
}

// maxTag is Spanner's limit for request and transaction tags, in characters.
const maxTag = 50

// Tag returns a tag for a path's requests, by which the server's statistics identify the path. It joins the parts, and
// cuts the result to maxTag characters.
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

// Reads reports whether the key c identifies a read of the given columns. columns is a value of READ_COLUMNS in the
// statistics, in which the name of the table or index precedes each column. The columns of the primary key appear there
// with their names, or all together as _exists.
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
