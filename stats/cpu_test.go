package stats

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
)

// TestCPUAddsUp runs more workers than there are processors. Each execution is
// measured while others want its thread, and does some of its work where nobody measures;
// all together are charged what the process used.
func TestCPUAddsUp(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("there is no clock of threads")
	}
	t.Run("few and long", func(t *testing.T) { addUp(t, 300_000, 200*time.Microsecond) })
	t.Run("many and short", func(t *testing.T) { addUp(t, 30_000, 0) })
}

// addUp runs executions that spin for a number of rounds (or many times that, in laps) and wait in between.
func addUp(t *testing.T, rounds int, wait time.Duration) {
	a := NewAccount()
	kinds := [2]*Typical{new(Typical), new(Typical)}
	var charged atomic.Int64
	stop := make(chan struct{})
	var workers, background sync.WaitGroup
	unmeasured := make(chan struct{}, 64)
	background.Go(func() {
		for range unmeasured {
			spinRounds(rounds)
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
				c := CPU{Account: a, Typical: kinds[min(i, 1)]}
				c.Start()
				spinInLaps(&c, i, rounds)
				c.Pause()
				time.Sleep(wait) // a wait that is known
				unmeasured <- struct{}{}
				c.Resume()
				spinRounds(rounds)
				charged.Add(int64(c.Stop(Load{Messages: 2, Rows: 1})))
			}
		})
	}
	ticks := func(n int) {
		for range n {
			time.Sleep(200 * time.Millisecond)
			a.Tick()
		}
	}
	ticks(5) // until it knows the share of a message
	share := 0.0
	for range 3 { // a machine whose load changes meanwhile gets another chance
		charged.Store(0)
		before := processCPU()
		ticks(10)
		got, want := time.Duration(charged.Load()), processCPU()-before
		share = float64(got) / float64(want)
		t.Logf("charged %v of %v, sampled: %t", got, want, a.busy.Load())
		if share >= 0.85 && share <= 1.15 {
			break
		}
	}
	close(stop)
	workers.Wait()
	close(unmeasured)
	background.Wait()
	if share < 0.85 || share > 1.15 {
		t.Errorf("charged %g of what the process used", share)
	}
}

// TestCPUMeasures compares what is measured of workers, without any share of the rest, with the truth: each has a
// thread of its own all its life, whose clock is its own.
func TestCPUMeasures(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("there is no clock of threads")
	}
	t.Run("all", func(t *testing.T) { measure(t, nil, 100_000) })
	t.Run("sampled", func(t *testing.T) { measure(t, new(Typical), 30_000) })
}

func measure(t *testing.T, typical *Typical, rounds int) {
	a := NewAccount()
	var measured, used atomic.Int64
	stop := make(chan struct{})
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				before := threadCPU()
				c := CPU{Account: a, Typical: typical}
				c.Start()
				spinRounds(rounds + rounds*(i%5)) // of one kind, but not alike
				c.Stop(Load{Rows: 1})
				used.Add(int64(threadCPU() - before))
				measured.Add(int64(c.Measured()))
			}
		})
	}
	for range 15 {
		time.Sleep(100 * time.Millisecond)
		a.Tick()
	}
	close(stop)
	workers.Wait()
	got, want := time.Duration(measured.Load()), time.Duration(used.Load())
	t.Logf("measured %v of %v, sampled: %t", got, want, a.busy.Load())
	if share := float64(got) / float64(want); share < 0.85 || share > 1.15 {
		t.Errorf("measured %v of %v", got, want)
	}
}

// spinInLaps works as a request does: most are short, some long enough to be preempted.
func spinInLaps(c *CPU, i, rounds int) {
	laps := 1
	if i == 0 {
		laps = 30
	}
	for range laps {
		spinRounds(rounds)
		c.Lap()
	}
}

func spinRounds(rounds int) {
	n := 0
	for i := range rounds {
		n += i
	}
	sink.Store(int64(n))
}

var sink atomic.Int64

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
	if m.Method("Read") != read {
		t.Error("a method is two")
	}
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

// TestLatencyBuckets: a latency is in the first bucket whose bound it does not exceed, as Prometheus has it.
func TestLatencyBuckets(t *testing.T) {
	for i := range latencyBuckets {
		bound := firstBucket << i
		if got := bucketOf(bound); got != i {
			t.Errorf("%v is in bucket %d, want %d", bound, got, i)
		}
		if got := bucketOf(bound + 1); got != i+1 {
			t.Errorf("%v is in bucket %d, want %d", bound+1, got, i+1)
		}
	}
	for d, want := range map[time.Duration]int{-time.Second: 0, 0: 0, 1: 0, time.Hour: latencyBuckets} {
		if got := bucketOf(d); got != want {
			t.Errorf("%v is in bucket %d, want %d", d, got, want)
		}
	}
}
