package harness

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/crowfoot-db/crowfoot/bench/report"
)

// MetricsURL returns the URL of the Prometheus metrics of a server. address is where the server listens for HTTP.
func MetricsURL(address string) string { return "http://" + address + "/metrics" }

// metricsLimit is the longest time that a server may take to answer a request for its metrics.
const metricsLimit = 10 * time.Second

// requestSeconds is the name of the metric that holds Crowfoot's latencies by API method, as a histogram.
const requestSeconds = "crowfoot_request_seconds"

// counts returns the number of calls and the total latency of each API method. It takes them from the server's metrics,
// and returns nil if the server has no metrics.
func (s *Server) counts(ctx context.Context) (report.MethodCounts, error) {
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
	counts := report.MethodCounts{}
	for _, m := range families[requestSeconds].GetMetric() {
		for _, label := range m.GetLabel() {
			if label.GetName() == "method" {
				counts[label.GetValue()] = report.MethodCount{Calls: float64(m.GetHistogram().GetSampleCount()), Seconds: m.GetHistogram().GetSampleSum()}
			}
		}
	}
	return counts, nil
}
