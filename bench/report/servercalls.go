package report

import (
	"cmp"
	"slices"
	"strings"
)

// Calls holds the server's counts of one API method, divided by the number of operations of a path.
type Calls struct {
	Method       string  `json:"method"`
	PerOperation float64 `json:"per_operation"`
	// Latency is the mean latency of one call, from the first byte received to the last byte sent.
	Latency float64 `json:"server_latency_us"`
}

// MethodCounts holds a server's counts of calls since its start, by API method. They come from /metrics.
type MethodCounts map[string]MethodCount

// MethodCount holds the number of calls of one method and their total latency in seconds.
type MethodCount struct{ Calls, Seconds float64 }

// AddCalls adds the calls of a turn. before and after are the server's counts that were read before and after the
// turn.
func (m *Measure) AddCalls(before, after MethodCounts) {
	if m.counted == nil {
		m.counted = MethodCounts{}
	}
	for name, a := range after {
		b, sum := before[name], m.counted[name]
		if a.Calls > b.Calls {
			m.counted[name] = MethodCount{sum.Calls + a.Calls - b.Calls, sum.Seconds + a.Seconds - b.Seconds}
		}
	}
}

// rarely is the least number of calls per operation for a method to count as part of the path. The limit keeps out
// calls that belong to no operation: the client also creates sessions and keeps them alive, but makes fewer than rarely
// such calls per operation.
const rarely = 0.01

// countCalls computes the calls per operation.
func (m *Measure) countCalls() {
	if m.Operations == 0 {
		return
	}
	for name, c := range m.counted {
		if per := c.Calls / float64(m.Operations); per >= rarely {
			m.Calls = append(m.Calls, Calls{name, per, c.Seconds / c.Calls * 1e6})
		}
	}
	slices.SortFunc(m.Calls, func(a, b Calls) int {
		return cmp.Or(commitLast(a)-commitLast(b), strings.Compare(a.Method, b.Method))
	})
}

func commitLast(c Calls) int {
	if c.Method == "Commit" {
		return 1
	}
	return 0
}

// atServer splits an operation's mean latency into the part that the server's counts explain, and the rest, which is
// spent in the network and the client. Both are in microseconds. ok is false if the server has no counts, or if calls
// of an operation ran at the same time.
func (m *Measure) atServer() (server, rest float64, ok bool) {
	for _, c := range m.Calls {
		server += c.PerOperation * c.Latency
	}
	return server, m.Latency.Mean - server, len(m.Calls) > 0 && !m.Parallel
}
