package metrics

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// Samples is a Prometheus collector for values that other packages count. It is a function: each scrape calls it, and
// it calls add once for each current value.
type Samples func(add func(Sample))

// A Sample is one value of a metric.
type Sample struct {
	Name   string // without the prefix crowfoot_; the name of a counter ends with _total
	Help   string
	Kind   prometheus.ValueType
	Value  float64
	Labels []string // names and values in turn
}

// Describe implements prometheus.Collector. It describes nothing, because which samples there are is known only when
// they are collected.
func (Samples) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (f Samples) Collect(to chan<- prometheus.Metric) {
	f(func(s Sample) {
		var names, values []string
		for pair := range slices.Chunk(s.Labels, 2) {
			names, values = append(names, pair[0]), append(values, pair[1])
		}
		to <- prometheus.MustNewConstMetric(prometheus.NewDesc("crowfoot_"+s.Name, s.Help, names, nil), s.Kind, s.Value, values...)
	})
}
