// Package metrics counts how the API is used, by method, for Prometheus.
//
// Imports of this module: stats/stripe.
package metrics

import (
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/stats/stripe"
)

// Methods is how the API is used, by method, for Prometheus. Counting is ours, since it happens in every request:
// a Method keeps what belongs together in one place for each processor, and it is summed up when it is asked for.
type Methods struct {
	requests, latency, cpu, received, sent, remote *prometheus.Desc

	mu      sync.Mutex // guards methods
	methods []*Method
}

// Latencies are counted in buckets up to firstBucket, twice that and so on, up to 105 s.
const (
	firstBucket    = 50 * time.Microsecond
	latencyBuckets = 22
)

// NewMethods makes the metrics and registers them.
func NewMethods(to prometheus.Registerer) (*Methods, error) {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("crowfoot_"+name, help, append([]string{"method"}, labels...), nil)
	}
	m := &Methods{
		requests: desc("requests_total", "Requests that have ended, by status code.", "code"),
		latency:  desc("request_seconds", "Time from first byte received to last byte sent."),
		cpu:      desc("cpu_seconds_total", "CPU time of requests, with their share of what the process used for all."),
		received: desc("received_bytes_total", "Bytes of requests."),
		sent:     desc("sent_bytes_total", "Bytes of replies."),
		remote:   desc("remote_calls_total", "Calls of the servers of other splits that reads and queries would make: one process serves them all."),
	}
	return m, to.Register(m)
}

// Describe implements prometheus.Collector.
func (m *Methods) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.requests, m.latency, m.cpu, m.received, m.sent, m.remote} {
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
}

// methodStripe is what requests on one processor were. Times are in nanoseconds.
type methodStripe struct {
	cpu, latency, received, sent, remote atomic.Int64
	byCode                               [maxCode + 1]atomic.Int64
	buckets                              [latencyBuckets + 1]atomic.Int64 // the last of what is longer
	_                                    [stripe.CacheLine]byte
}

const maxCode = codes.Unauthenticated

// Method is the method of a name, such as ExecuteStreamingSql: several services may have one. Nil if there are no metrics.
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
	if c.Code > maxCode {
		c.Code = codes.Unknown
	}
	l := &m.stripes[stripe.Current()]
	l.byCode[c.Code].Add(1)
	l.buckets[bucketOf(c.Latency)].Add(1)
	l.latency.Add(int64(c.Latency))
	l.cpu.Add(int64(max(c.CPU, 0)))
	l.received.Add(c.Received)
	l.sent.Add(c.Sent)
	if c.RemoteCalls > 0 {
		l.remote.Add(c.RemoteCalls)
	}
}

// bucketOf is the first bucket whose bound is d or above.
func bucketOf(d time.Duration) int {
	return min(bits.Len64(uint64(max(d-1, 0)/firstBucket)), latencyBuckets)
}

// sum adds up a counter of all stripes.
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
	for code := range maxCode + 1 {
		if n := m.sum(func(l *methodStripe) *atomic.Int64 { return &l.byCode[code] }); n > 0 {
			count(all.requests, float64(n), code.String())
		}
	}
	count(all.cpu, seconds(m.sum(func(l *methodStripe) *atomic.Int64 { return &l.cpu })))
	count(all.received, float64(m.sum(func(l *methodStripe) *atomic.Int64 { return &l.received })))
	count(all.sent, float64(m.sum(func(l *methodStripe) *atomic.Int64 { return &l.sent })))
	count(all.remote, float64(m.sum(func(l *methodStripe) *atomic.Int64 { return &l.remote })))
	m.collectLatency(all.latency, to)
}

// collectLatency gives the histogram. Its count is that of its buckets, so that it agrees with itself while requests go on.
func (m *Method) collectLatency(d *prometheus.Desc, to chan<- prometheus.Metric) {
	upTo := make(map[float64]uint64, latencyBuckets)
	total := uint64(0)
	for i := range latencyBuckets + 1 {
		total += uint64(m.sum(func(l *methodStripe) *atomic.Int64 { return &l.buckets[i] }))
		if i < latencyBuckets {
			upTo[(firstBucket << i).Seconds()] = total
		}
	}
	sum := time.Duration(m.sum(func(l *methodStripe) *atomic.Int64 { return &l.latency })).Seconds()
	to <- prometheus.MustNewConstHistogram(d, total, sum, upTo, m.name)
}
