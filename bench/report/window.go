package report

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Histograms record latencies from one microsecond to ten minutes, with three significant digits.
const (
	latencyDigits = 3
	MaxLatency    = 10 * time.Minute
)

func NewHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, MaxLatency.Microseconds(), latencyDigits)
}

// Window holds the results of all clients between two updates of the screen.
type Window struct {
	Latency *hdrhistogram.Histogram // valid only until the function that gets the window returns
	Rows    int64
	Elapsed time.Duration
	CPU     time.Duration // CPU time of the server; 0 if the run cannot see its process
	Own     time.Duration // CPU time of the client; 0 if the system does not report it
	Share   float64       // the fraction of the turn that is over at the end of the window, from 0 to 1
}

func (w Window) PerSecond() float64 { return float64(w.Latency.TotalCount()) / w.Elapsed.Seconds() }
