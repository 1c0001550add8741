package bench

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Calls are those of one API method within the operations of a path, as the server has counted them.
type Calls struct {
	Method       string  `json:"method"`
	PerOperation float64 `json:"per_operation"`
	Latency      float64 `json:"server_latency_us"` // mean of one call, from the first byte received to the last byte sent
}

// methodCounts are a server's counts by API method since it began, from /metrics.
type methodCounts map[string]methodCount

// methodCount is of one method.
type methodCount struct{ calls, seconds float64 }

// metricsURL is where a server that listens for HTTP at an address has its metrics for Prometheus.
func metricsURL(address string) string { return "http://" + address + "/metrics" }

// metricsLimit is how long a server may take to show its metrics.
const metricsLimit = 10 * time.Second

// requestSeconds is the histogram of latencies by method among Crowfoot's metrics.
const requestSeconds = "crowfoot_request_seconds"

// counts asks the server for its metrics; nil if it has none.
func (s *server) counts(ctx context.Context) (methodCounts, error) {
	if s.metrics == "" {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, metricsLimit)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.metrics, nil)
	if err != nil {
		return nil, err
	}
	reply, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer reply.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(reply.Body)
	if err != nil {
		return nil, fmt.Errorf("metrics of the server: %w", err)
	}
	counts := methodCounts{}
	for _, m := range families[requestSeconds].GetMetric() {
		for _, label := range m.GetLabel() {
			if label.GetName() == "method" {
				counts[label.GetValue()] = methodCount{float64(m.GetHistogram().GetSampleCount()), m.GetHistogram().GetSampleSum()}
			}
		}
	}
	return counts, nil
}

// count adds the calls between two moments of a turn.
func (m *Measure) count(before, after methodCounts) {
	if m.counted == nil {
		m.counted = methodCounts{}
	}
	for name, a := range after {
		b, sum := before[name], m.counted[name]
		if a.calls > b.calls {
			m.counted[name] = methodCount{sum.calls + a.calls - b.calls, sum.seconds + a.seconds - b.seconds}
		}
	}
}

// rarely is the fewest calls per operation for a method to belong to the path. The client also creates sessions and keeps them
// alive, at a lower rate.
const rarely = 0.01

// countCalls works out the calls of one operation.
func (m *Measure) countCalls() {
	if m.Operations == 0 {
		return
	}
	for name, c := range m.counted {
		if per := c.calls / float64(m.Operations); per >= rarely {
			m.Calls = append(m.Calls, Calls{name, per, c.seconds / c.calls * 1e6})
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

// atServer is how much of an operation's mean latency the server accounts for, and rest is what remains: network and
// client. Microseconds; ok is false if the server has not counted, and if calls ran at the same time.
func (m *Measure) atServer() (server, rest float64, ok bool) {
	for _, c := range m.Calls {
		server += c.PerOperation * c.Latency
	}
	return server, m.Latency.Mean - server, len(m.Calls) > 0 && !m.parallel
}
