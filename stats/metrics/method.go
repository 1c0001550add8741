// Package metrics counts, for Prometheus, the requests of each API method.
//
// Imports of this module: stats/stripe.
package metrics

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/stats/stripe"
)

// Methods counts, for Prometheus, the requests of each API method. Every request is counted, so counting must be cheap.
// Therefore Methods does not use Prometheus's counters: for each processor, a Method keeps related counters together,
// and it adds up the processors' counters only when Prometheus asks.
type Methods struct {
	requests, latency, streams, cpu, shared, received, sent, remote *prometheus.Desc

	mu      sync.Mutex // guards methods
	methods []*Method
}

// latencyBounds are the upper bounds of the latency buckets. One more bucket counts longer latencies.
var latencyBounds = [...]time.Duration{
	50 * time.Microsecond, 100 * time.Microsecond, 250 * time.Microsecond, 500 * time.Microsecond,
	1 * time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond,
	10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond,
	1 * time.Second, 2500 * time.Millisecond, 5 * time.Second, 10 * time.Second, 25 * time.Second, 50 * time.Second, 100 * time.Second,
}

// NewMethods creates the metrics of API methods and registers them.
func NewMethods(to prometheus.Registerer) (*Methods, error) {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("crowfoot_"+name, help, append([]string{"method"}, labels...), nil)
	}
	m := &Methods{
		requests: desc("requests_total", "Requests that have ended, by status code.", "code"),
		latency:  desc("request_seconds", "Time from first byte received to last byte sent, without queries of change streams."),
		streams:  desc("change_stream_query_seconds", "Time from first byte received to last byte sent, of queries of change streams, which wait for changes."),
		cpu:      desc("cpu_seconds_total", "CPU time of requests themselves, as measured."),
		shared:   desc("shared_cpu_seconds_total", "Share of requests in the CPU time of what serves all: connections, Go's garbage collection."),
		received: desc("received_bytes_total", "Bytes of requests."),
		sent:     desc("sent_bytes_total", "Bytes of replies."),
		remote:   desc("remote_calls_total", "Calls of the servers of other splits that reads and queries would make: one process serves them all."),
	}
	return m, to.Register(m)
}

// Describe implements prometheus.Collector.
func (m *Methods) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.requests, m.latency, m.streams, m.cpu, m.shared, m.received, m.sent, m.remote} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (m *Methods) Collect(to chan<- prometheus.Metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, method := range m.methods {
		method.collect(m, to)
	}
}

// A Method counts the requests of one API method.
type Method struct {
	name    string
	stripes []methodStripe
	streams latencies // latencies of queries of change streams
}

// methodStripe counts the requests that the processors of one stripe served. Times are in nanoseconds.
type methodStripe struct {
	cpu, shared, received, sent, remote atomic.Int64
	byCode                              [maxCode + 1]atomic.Int64
	latencies                           latencies
	_                                   [stripe.CacheLine]byte
}

// latencies counts requests in buckets of latency.
type latencies struct {
	sum     atomic.Int64                         // sum of the latencies in nanoseconds
	buckets [len(latencyBounds) + 1]atomic.Int64 // one for each of latencyBounds, and one for longer latencies
}

func (l *latencies) add(d time.Duration) {
	l.buckets[bucketOf(d)].Add(1)
	l.sum.Add(int64(d))
}

const maxCode = codes.Unauthenticated

// Method returns the counters of the API method with the given name, such as ExecuteStreamingSql. API methods of
// different services that have the same name share counters. Method returns nil if m is nil.
func (m *Methods) Method(name string) *Method {
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, method := range m.methods {
		if method.name == name {
			return method
		}
	}
	method := &Method{name: name, stripes: make([]methodStripe, stripe.Count)}
	m.methods = append(m.methods, method)
	return method
}

// A Call describes one request that has ended.
type Call struct {
	Code           codes.Code
	Latency        time.Duration
	CPU            time.Duration // CPU time measured for the request itself
	SharedCPU      time.Duration // the request's share of the CPU time that serves all requests; see cpu.Meter.Shared
	Received, Sent int64         // bytes of the request, and of the reply
	RemoteCalls    int64
	ChangeStream   bool // the request is a query of a change stream
}

// Observe counts a request that has ended. A nil Method counts nothing.
func (m *Method) Observe(c Call) {
	if m == nil {
		return
	}
	if c.Code > maxCode {
		c.Code = codes.Unknown
	}
	l := &m.stripes[stripe.Current()]
	l.byCode[c.Code].Add(1)
	if c.ChangeStream {
		m.streams.add(c.Latency)
	} else {
		l.latencies.add(c.Latency)
	}
	l.cpu.Add(int64(c.CPU))
	if c.SharedCPU > 0 {
		l.shared.Add(int64(c.SharedCPU))
	}
	l.received.Add(c.Received)
	l.sent.Add(c.Sent)
	if c.RemoteCalls > 0 {
		l.remote.Add(c.RemoteCalls)
	}
}

// bucketOf returns the index of the bucket for latency d: the first whose bound is at least d.
func bucketOf(d time.Duration) int {
	i := 0
	for i < len(latencyBounds) && d > latencyBounds[i] {
		i++
	}
	return i
}

// sum returns the sum of one counter over all stripes.
func (m *Method) sum(of func(*methodStripe) *atomic.Int64) (n int64) {
	for i := range m.stripes {
		n += of(&m.stripes[i]).Load()
	}
	return n
}

func (m *Method) collect(all *Methods, to chan<- prometheus.Metric) {
	count := func(d *prometheus.Desc, v float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, append([]string{m.name}, labels...)...)
	}
	seconds := func(n int64) float64 { return time.Duration(n).Seconds() }
	called := false
	for code := range maxCode + 1 {
		if n := m.sum(func(l *methodStripe) *atomic.Int64 { return &l.byCode[code] }); n > 0 {
			called = true
			count(all.requests, float64(n), code.String())
		}
	}
	if !called {
		return
	}
	count(all.cpu, seconds(m.sum(func(l *methodStripe) *atomic.Int64 { return &l.cpu })))
	count(all.shared, seconds(m.sum(func(l *methodStripe) *atomic.Int64 { return &l.shared })))
	count(all.received, float64(m.sum(func(l *methodStripe) *atomic.Int64 { return &l.received })))
	count(all.sent, float64(m.sum(func(l *methodStripe) *atomic.Int64 { return &l.sent })))
	count(all.remote, float64(m.sum(func(l *methodStripe) *atomic.Int64 { return &l.remote })))
	of := make([]*latencies, len(m.stripes))
	for i := range m.stripes {
		of[i] = &m.stripes[i].latencies
	}
	m.collectLatencies(all.latency, of, to)
	m.collectLatencies(all.streams, []*latencies{&m.streams}, to)
}

// collectLatencies sends the histogram of latencies to Prometheus, unless it is empty. It computes the count from the
// buckets, so that the count and the buckets agree even if requests are counted meanwhile.
func (m *Method) collectLatencies(d *prometheus.Desc, of []*latencies, to chan<- prometheus.Metric) {
	upTo := make(map[float64]uint64, len(latencyBounds))
	total, sum := uint64(0), time.Duration(0)
	for _, l := range of {
		sum += time.Duration(l.sum.Load())
	}
	for i := range len(latencyBounds) + 1 {
		for _, l := range of {
			total += uint64(l.buckets[i].Load())
		}
		if i < len(latencyBounds) {
			upTo[latencyBounds[i].Seconds()] = total
		}
	}
	if total > 0 {
		to <- prometheus.MustNewConstHistogram(d, total, sum.Seconds(), upTo, m.name)
	}
}
