package cpu

import (
	"context"
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

// needsThreadClocks skips the test on systems where threads have no CPU clock.
func needsThreadClocks(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("threads have no clock")
	}
}

// alone skips the test unless CROWFOOT_TEST_CPU=1 says that nothing else runs on the machine. It is for tests that
// compare measured with used CPU time: on a busy machine equal executions use different CPU time, because other
// processes push their data out of the processor's caches.
func alone(t *testing.T) {
	t.Helper()
	needsThreadClocks(t)
	if os.Getenv("CROWFOOT_TEST_CPU") == "" {
		t.Skip("measures CPU time: set CROWFOOT_TEST_CPU=1 and run nothing else")
	}
}

// spin computes for about as many nanoseconds as the parameter rounds says.
func spin(rounds int) {
	n := 0
	for i := range rounds {
		n += i
	}
	sink.Store(int64(n))
}

var sink atomic.Int64

// onOneThread runs f on a thread of its own, and returns the CPU time of that thread, with which tests compare meters.
func onOneThread(f func()) (used time.Duration) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked, so that the thread ends with the goroutine
		before := threadCPU()
		f()
		used = threadCPU() - before
	}()
	<-done
	return used
}

// within fails the test if measured differs from used by a tenth or more.
func within(t *testing.T, measured, used time.Duration) {
	t.Helper()
	if share := measured.Seconds() / used.Seconds(); share < 0.9 || share > 1.1 {
		t.Errorf("measured %v of %v", measured, used)
	}
}

// TestMeterLong: a long execution is measured to its end, even on a busy server, where brief executions of its kind are
// charged the typical time.
func TestMeterLong(t *testing.T) {
	alone(t)
	a := NewAccount()
	a.busy.Store(true)
	kind := new(Typical)
	kind.learn(10*time.Microsecond, 1)
	for _, rows := range []int64{1, 1_000_000} {
		for _, sampled := range []bool{false, true} {
			var own time.Duration
			used := onOneThread(func() {
				m := Meter{Account: a}
				m.Start()
				m.sampled = sampled
				m.Is(kind)
				spin(50_000_000)
				own = m.Stop(Load{Messages: 2, Rows: rows})
			})
			within(t, own, used)
		}
	}
	if mean := kind.of(1); mean != 10*time.Microsecond {
		t.Errorf("a long execution taught what brief ones take: %v", mean)
	}
}

// TestMeterPause: work between Pause and Resume is not measured, whichever goroutine does it.
func TestMeterPause(t *testing.T) {
	alone(t)
	var own, paused time.Duration
	used := onOneThread(func() {
		m := Meter{Account: NewAccount()}
		m.Start()
		spin(20_000_000)
		m.Pause()
		before := threadCPU()
		spin(20_000_000)
		paused = threadCPU() - before
		m.Resume()
		spin(20_000_000)
		own = m.Stop(Load{})
	})
	within(t, own, used-paused)
}

// TestMeterBrief: brief executions of different lengths are together charged the CPU time that they use, although only
// a few of them are measured. The test subtracts the CPU time of the meter itself and of the race detector, which it
// measures with empty executions. It adds up five runs, because single runs vary by a few percent.
func TestMeterBrief(t *testing.T) {
	alone(t)
	var measured, truth time.Duration
	for range 5 {
		own, used := briefExecutions(t, 20_000)
		nothing, meters := briefExecutions(t, 0)
		measured, truth = measured+own-nothing, truth+used-meters
	}
	t.Logf("measured of used: %.2f", measured.Seconds()/truth.Seconds())
	within(t, measured, truth)
}

// TestFewExecutionsAreMeasured: if two calls of Tick follow each other quickly, a few executions between them do not
// make the server busy.
func TestFewExecutionsAreMeasured(t *testing.T) {
	a := NewAccount()
	for range 100 {
		for range 3 {
			m := Meter{Account: a}
			if m.Start(); m.Weight() != 1 {
				t.Fatalf("an execution has the weight %d", m.Weight())
			}
			m.Stop(Load{Messages: 1})
		}
		a.Tick()
	}
}

// briefExecutions runs executions one after the other on a busy server. The parameter rounds is how many nanoseconds
// the shortest of them compute. It returns the CPU time that the executions are charged, and the CPU time that their
// thread used.
func briefExecutions(t *testing.T, rounds int) (own, used time.Duration) {
	const executions = 20_000
	a := NewAccount()
	a.busy.Store(true)
	kind := new(Typical)
	measured := 0
	used = onOneThread(func() {
		for i := range executions {
			m := Meter{Account: a}
			m.Start()
			m.Is(kind)
			rows := int64(1 + i%5)
			spin(rounds * int(rows))
			own += m.Stop(Load{Messages: 2, Rows: rows})
			if m.rough == 0 {
				measured++
			}
		}
	})
	t.Logf("%d of %d measured", measured, executions)
	return own, used
}

// TestMeterBriefBound: no execution is charged more CPU time than the time it took.
func TestMeterBriefBound(t *testing.T) {
	a := NewAccount()
	a.busy.Store(true)
	kind := new(Typical)
	kind.learn(time.Hour, 1)
	for range 100 {
		m := Meter{Account: a, Typical: kind}
		began := time.Now()
		m.Start()
		m.sampled = false
		if own := m.Stop(Load{Rows: 1}); own > time.Since(began) {
			t.Fatalf("charged %v of %v", own, time.Since(began))
		}
	}
}

// TestChargesAddUp checks that the charges of executions that share an average add up to the time that these executions
// took, although none is charged more than its own time. The cases are executions of two and of three rows, executions
// that become faster, and executions that are faster and slower by turns.
func TestChargesAddUp(t *testing.T) {
	const us = time.Microsecond
	for name, took := range map[string]func(i int) (passed time.Duration, rows int64){
		"rows":   func(i int) (time.Duration, int64) { return time.Duration(2+i%2) * 10 * us, int64(2 + i%2) },
		"faster": func(i int) (time.Duration, int64) { return time.Duration(40-i/1000*4) * us, 1 },
		"both":   func(i int) (time.Duration, int64) { return time.Duration(20+i/2000%2*10) * us, 1 },
	} {
		kind := new(Typical)
		var charged, all time.Duration
		for i := range 10_000 {
			passed, rows := took(i)
			if i%(sampleEvery+1) == 0 { // sampleEvery+1 is odd, so executions with even and with odd i are measured
				kind.learn(passed, rows)
				continue
			}
			own := kind.charge(passed, rows)
			if own > passed {
				t.Fatalf("%s: charged %v of %v", name, own, passed)
			}
			charged, all = charged+own, all+passed
		}
		if share := charged.Seconds() / all.Seconds(); share < 0.97 || share > 1.03 {
			t.Errorf("%s: charged %.3f of what they took", name, share)
		}
	}
}

// TestMeterNoKind: an execution is measured if it has no kind, or if no execution of its kind was measured before.
func TestMeterNoKind(t *testing.T) {
	needsThreadClocks(t)
	a := NewAccount()
	a.busy.Store(true)
	for _, kind := range []*Typical{nil, new(Typical)} {
		m := Meter{Account: a, Typical: kind}
		m.Start()
		m.sampled = false
		spin(1000)
		if own := m.Stop(Load{Rows: 3}); own <= 0 {
			t.Errorf("charged %v", own)
		}
		if kind != nil && !kind.isKnown() {
			t.Error("nothing was learned of it")
		}
	}
}

// TestShares: executions together are charged exactly the CPU time that is in the account's pool, even if there are
// more of them than in the last tick.
func TestShares(t *testing.T) {
	a := NewAccount()
	a.fill(int64(10*time.Millisecond), 100)
	var drawn time.Duration
	for range 150 { // more executions than in the last tick
		drawn += a.draw(messageParts)
	}
	if drawn != 10*time.Millisecond {
		t.Errorf("drew %v of 10ms", drawn)
	}
	a.fill(-int64(5*time.Millisecond), 100) // as when a long execution reports time that it used in earlier ticks
	a.fill(int64(8*time.Millisecond), 100)
	drawn = 0
	for range 150 {
		drawn += a.draw(messageParts)
	}
	if drawn != 3*time.Millisecond {
		t.Errorf("drew %v of 3ms", drawn)
	}
}

// TestLateSending: the CPU time of the first tick without executions is charged to later ones, because the process
// sends the last replies in that tick. The CPU time of later ticks is not charged.
func TestLateSending(t *testing.T) {
	needsThreadClocks(t)
	a := NewAccount()
	a.count(100 * messageParts)
	a.Tick()
	for i, dealtOut := range []bool{true, false, false} {
		before := a.pool.Load()
		spin(100_000)
		a.Tick()
		if grown := a.pool.Load() > before; grown != dealtOut {
			t.Errorf("tick %d after the executions: the pool has grown: %v", i+1, grown)
		}
	}
}

// TestLap: Lap reports the CPU time of a long execution while it runs, and the execution's share of unmeasured CPU time
// grows with it.
func TestLap(t *testing.T) {
	needsThreadClocks(t)
	a := NewAccount()
	m := Meter{Account: a}
	m.Start()
	m.Lap() // reports nothing, because it is called too early
	if n := a.read().measured; n != 0 {
		t.Errorf("counted %v", n)
	}
	for m.SoFar() < 3*lapEvery {
		spin(1000)
	}
	m.Lap()
	if n := a.read().measured; n < lapEvery {
		t.Errorf("counted %v", n)
	}
	before := m.parts
	own := m.Stop(Load{Messages: 2})
	if n := a.read().measured; n != own {
		t.Errorf("counted %v of %v", n, own)
	}
	if before == 0 || a.read().parts != (&Load{Messages: 2}).parts(own) {
		t.Errorf("%d parts, then %d", before, a.read().parts)
	}
}

// TestTask: the CPU time of a task is measured, and is not shared out among executions.
func TestTask(t *testing.T) {
	alone(t)
	a := NewAccount()
	task := a.Task("collection")
	used := onOneThread(func() {
		task.Do(context.Background(), func(ctx context.Context) {
			spin(20_000_000)
			m := From(ctx)
			m.Pause()
			m.Resume()
			m.Lap()
			spin(20_000_000)
		})
	})
	within(t, task.Used(), used)
	if r := a.read(); r.background != task.Used() || r.measured != 0 || r.parts != 0 {
		t.Errorf("%+v", r)
	}
	if a.Task("collection") != task || len(a.Tasks()) != 1 {
		t.Error("a task is two")
	}
}

// TestWaiting: a meter pauses while its execution waits, and resumes afterwards. A wait inside another wait changes
// nothing.
func TestWaiting(t *testing.T) {
	m := Meter{Account: NewAccount()}
	ctx := With(context.Background(), &m)
	m.Start()
	over := Waiting(ctx)
	if m.running {
		t.Error("measured while it waits")
	}
	Waiting(ctx)()
	if m.running {
		t.Error("measured while it still waits")
	}
	over()
	if !m.running {
		t.Error("not measured after the wait")
	}
	m.Stop(Load{})
	Waiting(context.Background())()
}

// TestNothingMeasured: the methods of a meter do nothing if its account measures nothing, or if the meter is nil.
func TestNothingMeasured(t *testing.T) {
	m := Meter{Account: NoAccount()}
	m.Start()
	m.Pause()
	m.Resume()
	m.Lap()
	if own := m.Stop(Load{Messages: 2}); own != 0 || m.Shared() != 0 || m.Weight() != 0 {
		t.Errorf("charged %v and %v, for %d", own, m.Shared(), m.Weight())
	}
	none := From(context.Background())
	none.Pause()
	none.Lap()
	ran := false
	NoAccount().Task("collection").Do(context.Background(), func(context.Context) { ran = true })
	if !ran {
		t.Error("the task did not run")
	}
}

func BenchmarkMeter(b *testing.B) {
	a := NewAccount()
	run := func(b *testing.B, kind *Typical) {
		b.ReportAllocs()
		for b.Loop() {
			m := Meter{Account: a, Typical: kind}
			m.Start()
			m.Stop(Load{Messages: 2, Rows: 1})
		}
	}
	b.Run("few", func(b *testing.B) { run(b, new(Typical)) })
	b.Run("many", func(b *testing.B) {
		a.busy.Store(true)
		defer a.busy.Store(false)
		run(b, new(Typical))
	})
	b.Run("thread clock", func(b *testing.B) {
		for b.Loop() {
			threadCPU()
		}
	})
	b.Run("lap", func(b *testing.B) {
		m := Meter{Account: a}
		m.Start()
		for b.Loop() {
			m.began = time.Since(epoch)
			m.Lap()
		}
		m.Stop(Load{Rows: 1})
	})
}

// TestSpentWaits checks that Spent may measure a function that blocks, as the preparation of a statement does. While
// the function blocks, the meter of its request is paused, so it does not count CPU time that other goroutines use on
// the same thread.
func TestSpentWaits(t *testing.T) {
	needsThreadClocks(t)
	m := &Meter{Account: NewAccount(), sampled: true}
	m.Start()
	defer m.Pause()
	ctx := With(t.Context(), m)
	var other time.Duration
	spent := Spent(ctx, func() {
		over := Waiting(ctx)
		if m.running {
			t.Error("the meter runs during the wait")
		}
		other = onOneThread(func() { spin(1_000_000) })
		over()
	})
	if spent < 0 || spent > m.SoFar() {
		t.Errorf("%v were spent of %v, besides %v of another goroutine", spent, m.SoFar(), other)
	}
}
