package bench

import (
	"context"
	"strings"
)

// Benchmark is a list of experiments under a name: a study that is re-run, or a comparison of ours.
type Benchmark struct {
	name  string
	about string // a sentence for the report
	study *Study // nil is none
	// check says what is wrong with settings that this benchmark uses beside those that all use; nil is nothing.
	check func(Settings) error
	// prepare makes tables and rows and lists the experiments.
	prepare func(ctx context.Context, r *run) ([]experiment, error)
	// after runs when everything is measured; nil is nothing.
	after func(ctx context.Context, r *run) error
	// close stops the servers and closes the files that prepare has opened, also if the run failed; nil is nothing.
	close func() error
	// figures are the published ones, and the targets of Crowfoot.
	figures func(Settings) []Figure // nil is none
}

// experiment compares paths to the same result.
type experiment struct {
	name  string // as in tags and JSON: one_key
	title string // as people read it: one key
	size  int    // rows of an operation, where experiments differ in that alone; 0 is none of these
	paths []path
	// pairs are the names of the paths, left and right, that the report sets side by side.
	pairs [][2]string

	rate     float64 // operations per second of each path, in place of the run's; 0 is the run's
	untagged bool    // the calls have no tags
	interval intervalUse
}

// intervalUse says when an experiment may begin, as the server keeps its statistics by intervals.
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
	// on is the server that answers; nil is the target.
	on *server
	// asked is how the server's statistics know the calls; nil if the run does not ask for them.
	asked []asked
	// clients fixes the number of clients; 0 takes the run's.
	clients int
	// withBetween says that what the server does between two turns counts with the turn that follows.
	withBetween bool
	// beside runs beside each turn; it must end soon after stop closes. nil is nothing.
	beside func(ctx context.Context, stop <-chan struct{}) error
	// local says that the operation calls no server.
	local bool
	// peer says that a foreign program or database answers: its failure ends the path and not the run.
	peer bool
	// client reads the CPU time of the client, where it is not in this program; nil is this program.
	client meter
	// codec names the form in which rows come and how they are compressed, where ways are compared that differ in it; "" is not said.
	codec string
	// copy says whether rows may come from a columnar copy, copyOn or copyOff, where that is compared; "" is not said.
	copy string
	// parallel says that calls of one operation run at the same time.
	parallel bool
}

// as gives the same path another name and server.
func (p path) as(name string, on *server) path {
	p.name, p.on = name, on
	return p
}

// against pairs every path but the first with the first.
func against(paths []path) (pairs [][2]string) {
	for _, p := range paths[1:] {
		pairs = append(pairs, [2]string{p.name, paths[0].name})
	}
	return pairs
}

// maxTag is Spanner's limit for request and transaction tags, in characters.
const maxTag = 50

// tag names a path in the server's statistics.
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
