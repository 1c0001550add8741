package stats

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
)

// Metrics is how the API is used, by method, for Prometheus.
type Metrics struct {
	requests *prometheus.CounterVec
	latency  *prometheus.HistogramVec
	cpu      *prometheus.CounterVec
	received *prometheus.CounterVec
	sent     *prometheus.CounterVec
	remote   *prometheus.CounterVec
}

// latencyBuckets are from 50 us to 105 s, each twice the one before.
var latencyBuckets = prometheus.ExponentialBuckets(50e-6, 2, 22)

// NewMetrics makes the metrics and registers them.
func NewMetrics(to prometheus.Registerer) (*Metrics, error) {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "crowfoot", Name: name, Help: help}, append([]string{"method"}, labels...))
	}
	m := &Metrics{
		requests: counter("requests_total", "Requests that have ended, by status code.", "code"),
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "crowfoot", Name: "request_seconds", Help: "Time from first byte received to last byte sent.", Buckets: latencyBuckets,
		}, []string{"method"}),
		cpu:      counter("cpu_seconds_total", "CPU time of requests, with their share of what the process used for all."),
		received: counter("received_bytes_total", "Bytes of requests."),
		sent:     counter("sent_bytes_total", "Bytes of replies."),
		remote:   counter("remote_calls_total", "Calls of the servers of other splits that reads and queries would make: one process serves them all."),
	}
	for _, c := range []prometheus.Collector{m.requests, m.latency, m.cpu, m.received, m.sent, m.remote} {
		if err := to.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// A Method counts the requests of one API method. It is made once, so that counting looks nothing up.
type Method struct {
	requests *prometheus.CounterVec // of the method
	byCode   [maxCode + 1]atomic.Pointer[prometheus.Counter]
	latency  prometheus.Observer
	cpu      prometheus.Counter
	received prometheus.Counter
	sent     prometheus.Counter
	remote   prometheus.Counter
}

const maxCode = codes.Unauthenticated

// Method is the method of a name, such as ExecuteStreamingSql; nil if there are no metrics.
func (m *Metrics) Method(name string) *Method {
	if m == nil {
		return nil
	}
	return &Method{
		requests: m.requests.MustCurryWith(prometheus.Labels{"method": name}),
		latency:  m.latency.WithLabelValues(name),
		cpu:      m.cpu.WithLabelValues(name),
		received: m.received.WithLabelValues(name),
		sent:     m.sent.WithLabelValues(name),
		remote:   m.remote.WithLabelValues(name),
	}
}

// A Call is one request that has ended.
type Call struct {
	Code           codes.Code
	Latency        time.Duration
	CPU            time.Duration
	Received, Sent int64 // bytes
	RemoteCalls    int64
}

// Observe counts a request. A nil Method counts nothing.
func (m *Method) Observe(c Call) {
	if m == nil {
		return
	}
	m.counter(c.Code).Inc()
	m.latency.Observe(c.Latency.Seconds())
	m.cpu.Add(max(c.CPU, 0).Seconds())
	m.received.Add(float64(c.Received))
	m.sent.Add(float64(c.Sent))
	if c.RemoteCalls > 0 {
		m.remote.Add(float64(c.RemoteCalls))
	}
}

func (m *Method) counter(code codes.Code) prometheus.Counter {
	if code > maxCode {
		code = codes.Unknown
	}
	if c := m.byCode[code].Load(); c != nil {
		return *c
	}
	c := m.requests.WithLabelValues(code.String())
	m.byCode[code].Store(&c)
	return c
}
