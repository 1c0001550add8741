package cpu

import (
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// needsThreadClocks skips where CPU time cannot be measured, and where other tests run beside: CI runs the tests that measure CPU time
// in a step of their own, with CROWFOOT_TEST_CPU=1.
func needsThreadClocks(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("there is no clock of threads")
	}
	if os.Getenv("CROWFOOT_TEST_CPU") == "" {
		t.Skip("measures CPU time: set CROWFOOT_TEST_CPU=1 and run nothing else")
	}
}

// TestCPUAddsUp runs more workers than there are processors. Each execution is
// measured while others want its thread, and does some of its work where nobody measures;
// all together are charged what the process used.
func TestCPUAddsUp(t *testing.T) {
	needsThreadClocks(t)
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
				c := Meter{Account: a, Typical: kinds[min(i, 1)]}
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
	needsThreadClocks(t)
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
				c := Meter{Account: a, Typical: typical}
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
func spinInLaps(c *Meter, i, rounds int) {
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

func BenchmarkCPU(b *testing.B) {
	a := NewAccount()
	b.Run("few", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			c := Meter{Account: a}
			c.Start()
			c.Stop(Load{Messages: 2, Rows: 1})
		}
	})
	b.Run("many", func(b *testing.B) {
		a.busy.Store(true)
		defer a.busy.Store(false)
		b.ReportAllocs()
		typical := new(Typical)
		for b.Loop() {
			c := Meter{Account: a, Typical: typical}
			c.Start()
			c.Stop(Load{Messages: 2, Rows: 1})
		}
	})
	b.Run("thread clock", func(b *testing.B) {
		for b.Loop() {
			threadCPU()
		}
	})
	b.Run("lap", func(b *testing.B) {
		c := Meter{Account: a}
		c.Start()
		for b.Loop() {
			c.locked = false
			c.began = time.Since(epoch)
			c.Lap()
		}
		c.Stop(Load{Rows: 1})
	})
}
