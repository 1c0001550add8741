package bench

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Histograms keep latencies from 1 us to ten minutes, with three significant digits.
const (
	latencyDigits = 3
	latencyMax    = 10 * time.Minute
)

func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, latencyMax.Microseconds(), latencyDigits)
}

// window holds what the clients did between two ticks.
type window struct {
	latency *hdrhistogram.Histogram // valid until the next window
	rows    int64
	elapsed time.Duration
	cpu     time.Duration // CPU time of the server; 0 if the run cannot see its process
	own     time.Duration // CPU time of the client; 0 if the system does not report it
	share   float64       // the part of the turn that is over at the window's end, from 0 to 1
}

func (w window) perSecond() float64 { return float64(w.latency.TotalCount()) / w.elapsed.Seconds() }
