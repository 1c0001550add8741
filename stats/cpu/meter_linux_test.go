package cpu

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
)

// TestMeterStaysOnThread: the goroutine of an execution that is measured stays on its thread, however many goroutines
// compete for threads.
func TestMeterStaysOnThread(t *testing.T) {
	var stop atomic.Bool
	var others sync.WaitGroup
	for range 4 * runtime.GOMAXPROCS(0) {
		others.Go(func() {
			for !stop.Load() {
				spin(1000)
				runtime.Gosched()
			}
		})
	}
	m := Meter{Account: NewAccount()}
	m.Start()
	thread := unix.Gettid()
	for range 100 {
		spin(1000)
		runtime.Gosched()
		if now := unix.Gettid(); now != thread {
			t.Errorf("thread %d, then %d", thread, now)
		}
	}
	m.Stop(Load{})
	stop.Store(true)
	others.Wait()
}
