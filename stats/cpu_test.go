package stats

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
)

// spin works for about a duration of this thread's CPU.
func spin(d time.Duration) (n int) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for end := threadCPU() + d; threadCPU() < end; {
		for range 1000 {
			n++
		}
	}
	return n
}

// TestCPUAddsUp runs more workers than there are processors. Each execution is
// measured while others want its thread, and does some of its work where nobody measures;
// all together are charged what the process used.
func TestCPUAddsUp(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("there is no clock of threads")
	}
	a := NewAccount()
	var mu sync.Mutex
	var charged time.Duration
	stop := make(chan struct{})
	var workers, background sync.WaitGroup
	unmeasured := make(chan struct{}, 64)
	background.Go(func() {
		for range unmeasured {
			spin(50 * time.Microsecond)
		}
	})
	for i := range 8 {
		workers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				c := CPU{Account: a}
				c.Start()
				spinInLaps(&c, i)
				c.Pause()
				time.Sleep(200 * time.Microsecond) // a wait that is known
				unmeasured <- struct{}{}
				c.Resume()
				spin(50 * time.Microsecond)
				used := c.Stop(2)
				mu.Lock()
				charged += used
				mu.Unlock()
			}
		})
	}
	for range 5 { // until it knows the share of a message
		time.Sleep(200 * time.Millisecond)
		a.Tick()
	}
	mu.Lock()
	charged = 0
	mu.Unlock()
	before := processCPU()
	for range 10 {
		time.Sleep(200 * time.Millisecond)
		a.Tick()
	}
	mu.Lock()
	got, want := charged, processCPU()-before
	mu.Unlock()
	close(stop)
	workers.Wait()
	close(unmeasured)
	background.Wait()
	if share := float64(got) / float64(want); share < 0.85 || share > 1.15 {
		t.Errorf("charged %v of %v", got, want)
	} else {
		t.Logf("charged %v of %v", got, want)
	}
}

// spinInLaps works as a request does: some are short, some long enough to be preempted.
func spinInLaps(c *CPU, i int) {
	laps := 1
	if i%4 == 0 {
		laps = 30
	}
	for range laps {
		for n := 0; n < 300_000; n++ {
			sink += n
		}
		c.Lap()
	}
}

var sink int

func TestMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	m, err := NewMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	read := m.Method("Read")
	read.Observe(Call{Latency: time.Millisecond, CPU: 20 * time.Microsecond, Received: 10, Sent: 100, RemoteCalls: 3})
	read.Observe(Call{Code: codes.NotFound, Latency: time.Microsecond, Received: 10})
	m.Method("Commit").Observe(Call{Code: 200})
	want := `crowfoot_cpu_seconds_total{Commit} 0
crowfoot_cpu_seconds_total{Read} 2e-05
crowfoot_received_bytes_total{Commit} 0
crowfoot_received_bytes_total{Read} 20
crowfoot_remote_calls_total{Commit} 0
crowfoot_remote_calls_total{Read} 3
crowfoot_request_seconds{Commit} 1 in 0
crowfoot_request_seconds{Read} 2 in 0.001001
crowfoot_requests_total{NotFound,Read} 1
crowfoot_requests_total{OK,Read} 1
crowfoot_requests_total{Unknown,Commit} 1
crowfoot_sent_bytes_total{Commit} 0
crowfoot_sent_bytes_total{Read} 100
`
	if got := gathered(t, registry); got != want {
		t.Errorf("got:\n%s", got)
	}
	if _, err := NewMetrics(registry); err == nil {
		t.Error("registered twice")
	}
}

// gathered prints the metrics of a registry.
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
