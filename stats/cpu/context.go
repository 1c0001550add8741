package cpu

import "context"

type meterKey struct{}

// With returns ctx with the meter of the execution or task that runs under it.
func With(ctx context.Context, m *Meter) context.Context {
	return context.WithValue(ctx, meterKey{}, m)
}

// From returns the meter of ctx. It returns nil if nothing measures the work; Pause and Lap of a nil Meter do nothing.
func From(ctx context.Context) *Meter {
	m, _ := ctx.Value(meterKey{}).(*Meter)
	return m
}

// Waiting prepares for a wait under ctx; the caller calls over after the wait. During the wait the meter pauses, the goroutine is
// not locked to a thread, and other executions may take its turn.
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
