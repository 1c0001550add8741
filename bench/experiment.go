package bench

import (
	"context"
	"slices"
	"strings"
)

// Benchmark is a named list of experiments: a study that is run again, or a comparison of our own.
type Benchmark struct {
	name  string
	about string // a sentence for the report
	study *Study // nil for none
	// check returns an error if the benchmark cannot run with the settings. Nil checks nothing. Settings.check checks
	// the settings that all benchmarks use.
	check func(Settings) error
	// prepare makes the tables and rows and returns the experiments.
	prepare func(ctx context.Context, r *run) ([]experiment, error)
	// after runs when all experiments have been measured. It may be nil.
	after func(ctx context.Context, r *run) error
	// close stops the servers and closes the files that prepare has opened, even if the run failed. It may be nil.
	close func() error
	// figures returns the published figures and Crowfoot's targets.
	figures func(Settings) []Figure // nil for none
	// grids returns the tables that only this benchmark has. They stand before those of every benchmark. Nil means
	// none.
	grids func(*Report) []grid
	// published are the study's averages of the server's statistics. It may be nil.
	published map[Ref]Averages
}

// experiment compares paths to the same result.
type experiment struct {
	name  string // in tags and JSON, such as one_key
	title string // for people, such as one key
	size  int    // rows of one operation, if the experiments differ in nothing else; otherwise 0
	paths []path
	// pairs are the names of the paths, left and right, that the report compares.
	pairs [][2]string

	rate     float64 // operations per second of each path; 0 for the run's rate
	untagged bool    // the calls have no tags
	interval intervalUse
}

// intervalUse says when an experiment may begin. It matters because the server keeps its statistics by intervals.
type intervalUse int

const (
	anyInterval  intervalUse = iota // at any time
	ownInterval                     // when an interval begins
	sameInterval                    // in the interval of the experiment before it
)

// path is one way to a result.
type path struct {
	name   string
	method string // the API methods that it calls, in order
	op     operation
	// on is the server that answers, nil for the target.
	on *server
	// asked identifies the path's calls in the server's statistics. It is nil if the run does not query them.
	asked []asked
	// clients is the number of clients, 0 for the run's number.
	clients int
	// withBetween is true if the server's CPU time between two turns counts with the turn that follows.
	withBetween bool
	// beside runs during each turn and must return soon after stop closes. It may be nil.
	beside func(ctx context.Context, stop <-chan struct{}) error
	// local is true if the operation calls no server.
	local bool
	// peer is true if a foreign program or database answers. If it fails, only this path ends and not the run.
	peer bool
	// client reads the CPU time of the client. It is nil if the client is this program.
	client meter
	// codec names the format of the rows and their compression, in experiments that compare these; otherwise it is
	// "".
	codec string
	// copy says whether rows may come from a columnar copy, copyOn or copyOff, in experiments that compare the two;
	// otherwise it is "".
	copy string
	// parallel is true if one operation makes several calls at the same time.
	parallel bool
}

// as returns the path with another name and server.
func (p path) as(name string, on *server) path {
	p.name, p.on = name, on
	return p
}

// against pairs every path but the first with the first path.
func against(paths []path) (pairs [][2]string) {
	for _, p := range paths[1:] {
		pairs = append(pairs, [2]string{p.name, paths[0].name})
	}
	return pairs
}

// maxTag is Spanner's limit for request and transaction tags, in characters.
const maxTag = 50

// tag returns a path's tag, by which the server's statistics identify it. It has at most maxTag characters.
func tag(parts ...string) string {
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

// asked identifies a call in the server's statistics: a query by its text, a read by its table or index and its
// columns.
type asked struct {
	text    string // "" for a read
	source  string
	columns []string
}

// reads reports whether a value of READ_COLUMNS belongs to the call. READ_COLUMNS has the name of the table or index
// before each column. It lists the key's columns by their names, or all of them together as _exists.
func (c asked) reads(columns []string) bool {
	var rest []string
	for _, full := range columns {
		source, column, _ := strings.Cut(full, ".")
		if source != c.source {
			return false
		}
		if column != "_exists" && column != "id" {
			rest = append(rest, column)
		}
	}
	want := slices.DeleteFunc(slices.Clone(c.columns), func(column string) bool { return column == "id" })
	slices.Sort(rest)
	return slices.Equal(rest, slices.Sorted(slices.Values(want)))
}
