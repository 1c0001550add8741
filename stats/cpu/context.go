package cpu

import "context"

type meterKey struct{}

// With is ctx with the meter of the execution, or of the task, that runs under it.
func With(ctx context.Context, m *Meter) context.Context {
	return context.WithValue(ctx, meterKey{}, m)
}

// From is the meter of what runs under ctx. It is nil if nothing is measured; Pause and Lap of a nil Meter do nothing.
func From(ctx context.Context) *Meter {
	m, _ := ctx.Value(meterKey{}).(*Meter)
	return m
}

// Waiting is called before a wait, and the function that it returns after it: in between the meter of what runs under ctx pauses, its
// goroutine holds no thread, and others have its turn.
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
	t.give()
	return func() {
		t.takeAgain()
		if measured {
			m.Resume()
		}
	}
}
