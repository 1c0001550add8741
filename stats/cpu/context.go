package cpu

import "context"

type meterKey struct{}

// With returns a context that contains the meter m. The execution or task that m measures runs under this context.
func With(ctx context.Context, m *Meter) context.Context {
	return context.WithValue(ctx, meterKey{}, m)
}

// From returns the meter in ctx, or nil if nothing measures the work. Pause and Lap of a nil Meter do nothing.
func From(ctx context.Context) *Meter {
	m, _ := ctx.Value(meterKey{}).(*Meter)
	return m
}

// Waiting prepares for a wait under ctx. The caller calls the function over after the wait. During the wait, the meter
// in ctx pauses, and the goroutine is not locked to a thread. If the execution has a turn (see Turns), another
// execution may use it meanwhile.
func Waiting(ctx context.Context) (over func()) {
	m, t := From(ctx), turnsOf(ctx)
	measured := m != nil && m.running
	switch {
	case t == nil && !measured:
		return func() {}
	case t == nil:
		m.Pause()
		return m.Resume
	}
	m.Pause()
	t.release()
	return func() {
		t.reacquire()
		if measured {
			m.Resume()
		}
	}
}
