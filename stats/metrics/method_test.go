package metrics

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
)

func TestMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	m, err := NewMethods(registry)
	if err != nil {
		t.Fatal(err)
	}
	read := m.Method("Read")
	m.Method("Rollback") // this API method gets no request, so the metrics do not show it
	read.Observe(Call{Latency: time.Millisecond, CPU: 20 * time.Microsecond, SharedCPU: 30 * time.Microsecond, Received: 10, Sent: 100, RemoteCalls: 3})
	read.Observe(Call{Code: codes.NotFound, Latency: time.Microsecond, Received: 10})
	m.Method("Commit").Observe(Call{Code: 200})
	read.Observe(Call{Latency: time.Hour, ChangeStream: true})
	if m.Method("Read") != read {
		t.Error("a method is two")
	}
	want := `crowfoot_change_stream_query_seconds{Read} 1 in 3600
crowfoot_cpu_seconds_total{Commit} 0
crowfoot_cpu_seconds_total{Read} 2e-05
crowfoot_received_bytes_total{Commit} 0
crowfoot_received_bytes_total{Read} 20
crowfoot_remote_calls_total{Commit} 0
crowfoot_remote_calls_total{Read} 3
crowfoot_request_seconds{Commit} 1 in 0
crowfoot_request_seconds{Read} 2 in 0.001001
crowfoot_requests_total{NotFound,Read} 1
crowfoot_requests_total{OK,Read} 2
crowfoot_requests_total{Unknown,Commit} 1
crowfoot_sent_bytes_total{Commit} 0
crowfoot_sent_bytes_total{Read} 100
crowfoot_shared_cpu_seconds_total{Commit} 0
crowfoot_shared_cpu_seconds_total{Read} 3e-05
`
	if got := gathered(t, registry); got != want {
		t.Errorf("got:\n%s", got)
	}
	if _, err := NewMethods(registry); err == nil {
		t.Error("registered twice")
	}
}

// gathered formats the metrics of a registry as text.
func gathered(t *testing.T, registry *prometheus.Registry) string {
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, f := range families {
		for _, m := range f.Metric {
			var labels []string
			for _, l := range m.Label {
				labels = append(labels, l.GetValue())
			}
			fmt.Fprintf(&b, "%s{%s} ", f.GetName(), strings.Join(labels, ","))
			if h := m.GetHistogram(); h != nil {
				fmt.Fprintf(&b, "%d in %g\n", h.GetSampleCount(), h.GetSampleSum())
			} else {
				fmt.Fprintf(&b, "%g\n", m.GetCounter().GetValue())
			}
		}
	}
	return b.String()
}

// TestLatencyBuckets: a latency is counted in the first bucket whose bound it does not exceed, as Prometheus requires.
// Each bound has at most two digits, so that it is easy to read.
func TestLatencyBuckets(t *testing.T) {
	for i, bound := range latencyBounds {
		if got := bucketOf(bound); got != i {
			t.Errorf("%v is in bucket %d, want %d", bound, got, i)
		}
		if got := bucketOf(bound + 1); got != i+1 {
			t.Errorf("%v is in bucket %d, want %d", bound+1, got, i+1)
		}
		digits := bound
		for digits%10 == 0 {
			digits /= 10
		}
		if digits > 99 {
			t.Errorf("the bound %v has many digits", bound)
		}
	}
	for d, want := range map[time.Duration]int{-time.Second: 0, 0: 0, 1: 0, time.Hour: len(latencyBounds)} {
		if got := bucketOf(d); got != want {
			t.Errorf("%v is in bucket %d, want %d", d, got, want)
		}
	}
}

func BenchmarkMethod(b *testing.B) {
	m, err := NewMethods(prometheus.NewRegistry())
	if err != nil {
		b.Fatal(err)
	}
	method := m.Method("ExecuteStreamingSql")
	b.ReportAllocs()
	for b.Loop() {
		method.Observe(Call{Latency: 30 * time.Microsecond, CPU: 20 * time.Microsecond, Received: 100, Sent: 200})
	}
}
