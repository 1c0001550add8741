package otlp

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	collector "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// receiver is an OpenTelemetry collector that keeps the last message.
type receiver struct {
	collector.UnimplementedMetricsServiceServer
	mu   sync.Mutex
	last *collector.ExportMetricsServiceRequest
}

func (r *receiver) Export(_ context.Context, req *collector.ExportMetricsServiceRequest) (*collector.ExportMetricsServiceResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = req
	return new(collector.ExportMetricsServiceResponse), nil
}

// ServeHTTP handles a request to export metrics over HTTP.
func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	m := new(collector.ExportMetricsServiceRequest)
	if err != nil || proto.Unmarshal(body, m) != nil || req.URL.Path != "/v1/metrics" {
		http.Error(w, "bad request "+req.URL.Path, http.StatusBadRequest)
		return
	}
	r.Export(req.Context(), m)
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// overGRPC starts the receiver as a gRPC server and returns its URL.
func (r *receiver) overGRPC(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	collector.RegisterMetricsServiceServer(s, r)
	go s.Serve(l)
	t.Cleanup(s.Stop)
	return "http://" + l.Addr().String()
}

// text returns the counters and histograms of the last message, one line for each data point, and the name of the
// service that sent them. For a counter that is not cumulative, it adds a line that says so.
func (r *receiver) text() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var lines []string
	for _, resource := range r.last.GetResourceMetrics() {
		for _, scope := range resource.ScopeMetrics {
			for _, m := range scope.Metrics {
				for _, p := range m.GetSum().GetDataPoints() {
					lines = append(lines, fmt.Sprintf("%s%s %v monotonic=%v", m.Name, labels(p.Attributes), p.GetAsDouble(), m.GetSum().IsMonotonic))
				}
				for _, p := range m.GetHistogram().GetDataPoints() {
					lines = append(lines, fmt.Sprintf("%s%s count %d, %v", m.Name, labels(p.Attributes), p.Count, p.BucketCounts))
				}
				if s := m.GetSum(); s != nil && s.AggregationTemporality != metrics.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE {
					lines = append(lines, m.Name+" is not cumulative")
				}
			}
		}
		lines = append(lines, "of "+value(resource.GetResource().GetAttributes(), "service.name"))
	}
	slices.Sort(lines)
	return lines
}

func labels(list []*common.KeyValue) string {
	var parts []string
	for _, kv := range list {
		parts = append(parts, kv.Key+"="+kv.Value.GetStringValue())
	}
	slices.Sort(parts)
	return "{" + strings.Join(parts, ",") + "}"
}

func value(list []*common.KeyValue, key string) string {
	for _, kv := range list {
		if kv.Key == key {
			return kv.Value.GetStringValue()
		}
	}
	return ""
}

// counted returns a registry with one counter and one histogram, which have already counted some requests.
func counted() *prometheus.Registry {
	r := prometheus.NewRegistry()
	requests := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "crowfoot_requests_total"}, []string{"method", "code"})
	latency := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "crowfoot_request_seconds", Buckets: []float64{0.001, 0.01}}, []string{"method"})
	r.MustRegister(requests, latency)
	requests.WithLabelValues("Commit", "OK").Add(3)
	requests.WithLabelValues("Commit", "ABORTED").Add(1)
	for _, seconds := range []float64{0.0005, 0.0005, 0.002, 5} {
		latency.WithLabelValues("Commit").Observe(seconds)
	}
	return r
}

var discard = slog.New(slog.DiscardHandler)

// set sets OpenTelemetry's environment variables to those in env, and removes the others.
func set(t *testing.T, env map[string]string) {
	for _, name := range append(slices.Clone(endpoints), "OTEL_METRICS_EXPORTER", "OTEL_SDK_DISABLED", "OTEL_SERVICE_NAME",
		"OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL") {
		t.Setenv(name, env[name])
	}
	t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "600000") // milliseconds; long, because other tests may keep the machine busy
}

// TestExport checks that metrics reach a collector over either protocol. Closing the exporter must send the last
// metrics.
func TestExport(t *testing.T) {
	want := []string{
		"crowfoot_request_seconds{method=Commit} count 4, [2 1 1]",
		"crowfoot_requests_total{code=ABORTED,method=Commit} 1 monotonic=true",
		"crowfoot_requests_total{code=OK,method=Commit} 3 monotonic=true",
	}
	for _, c := range []struct {
		name, service string
		env           func(t *testing.T, r *receiver) map[string]string
	}{
		{"gRPC", "crowfoot", func(t *testing.T, r *receiver) map[string]string {
			return map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": r.overGRPC(t), "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}
		}},
		{"HTTP by default", "shop", func(t *testing.T, r *receiver) map[string]string {
			s := httptest.NewServer(r)
			t.Cleanup(s.Close)
			return map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": s.URL, "OTEL_METRICS_EXPORTER": "otlp", "OTEL_SERVICE_NAME": "shop"}
		}},
		{"an endpoint of their own", "crowfoot", func(t *testing.T, r *receiver) map[string]string {
			return map[string]string{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": r.overGRPC(t), "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL": "grpc",
				"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var r receiver
			set(t, c.env(t, &r))
			x, err := Start(counted(), discard)
			if err != nil || x == nil {
				t.Fatal(x, err)
			}
			x.Close(t.Context())
			if got := r.text(); !slices.Equal(got, append(slices.Clone(want), "of "+c.service)) {
				t.Errorf("received\n%s", strings.Join(got, "\n"))
			}
		})
	}
}

// TestNotWanted checks that no exporter is started if the environment variables do not ask for one.
func TestNotWanted(t *testing.T) {
	for _, env := range []map[string]string{
		{},
		{"OTEL_METRICS_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"},
		{"OTEL_SDK_DISABLED": "true", "OTEL_METRICS_EXPORTER": "otlp"},
		{"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc", "OTEL_SERVICE_NAME": "shop"},
	} {
		set(t, env)
		if x, err := Start(counted(), discard); x != nil || err != nil {
			t.Errorf("%v starts %v, %v", env, x, err)
		}
	}
	(*Exporter)(nil).Close(t.Context())
}

// TestBadEnvironment checks that Start returns an error if an environment variable has a bad value. The error must name
// the variable and say what is wrong.
func TestBadEnvironment(t *testing.T) {
	for _, c := range []struct{ name, value, want string }{
		{"OTEL_EXPORTER_OTLP_ENDPOINT", "localhost:4317", "want a URL"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://", "want a URL"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://host:port", "want a URL"},
		{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "ftp://host", "want a URL"},
		{"OTEL_METRICS_EXPORTER", "prometheus", "want otlp or none"},
		{"OTEL_EXPORTER_OTLP_PROTOCOL", "http/json", "want grpc or http/protobuf"},
	} {
		set(t, map[string]string{"OTEL_METRICS_EXPORTER": "otlp", c.name: c.value})
		x, err := Start(counted(), discard)
		if x != nil || err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.name) || !strings.Contains(err.Error(), c.value) {
			t.Errorf("%s=%s: %v, %v", c.name, c.value, x, err)
		}
	}
}

// TestCollectorAway checks that Start succeeds even if there is no collector. Sending the metrics fails later, and the
// log must say so.
func TestCollectorAway(t *testing.T) {
	for _, p := range []protocol{overGRPC, overHTTP} {
		set(t, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_PROTOCOL": string(p)})
		var log strings.Builder
		x, err := Start(counted(), slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		over, cancel := context.WithCancel(t.Context())
		cancel() // so that Close does not retry; no attempt can succeed
		x.Close(over)
		if !strings.Contains(log.String(), "last metrics not sent") {
			t.Errorf("%s: the log says %q", p, &log)
		}
	}
}
