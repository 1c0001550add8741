package cpu

import (
	"context"
	"slices"
	"sync"
)

// Turns limits how many long computations run at the same time: each computation needs a turn, and there is a fixed
// number of turns. Without a limit, each of many computations would hold its locks until all of them are done, and
// brief executions would wait for a processor.
type Turns struct {
	mu      sync.Mutex
	free    int
	waiting []chan struct{} // each channel is closed when its execution gets a turn
	again   int             // how many channels at the front of t.waiting belong to executions that had a turn before
}

// NewTurns returns Turns that let atOnce executions compute at the same time.
func NewTurns(atOnce int) *Turns { return &Turns{free: atOnce} }

type turnsKey struct{}

// Acquire waits until the caller gets a turn. Callers get turns in the order of their calls. The caller computes under
// slotCtx, and then calls end, which gives the turn back. While work under slotCtx waits (see Waiting), other
// executions may use the turn. If ctx ends first, Acquire returns ctx.Err().
func (t *Turns) Acquire(ctx context.Context) (slotCtx context.Context, end func(), err error) {
	if got := t.queue(false); got != nil {
		over := Waiting(ctx)
		defer over()
		select {
		case <-got:
		case <-ctx.Done():
			t.leave(got)
			return nil, nil, ctx.Err()
		}
	}
	return context.WithValue(ctx, turnsKey{}, t), t.release, nil
}

// turnsOf returns the Turns from which the execution of ctx has its turn, or nil if the execution has no turn.
func turnsOf(ctx context.Context) *Turns {
	t, _ := ctx.Value(turnsKey{}).(*Turns)
	return t
}

// reacquire waits for a turn for an execution that gave its turn back during a wait. Such an execution gets a turn
// before executions that had none, because it may hold locks.
func (t *Turns) reacquire() {
	if got := t.queue(true); got != nil {
		<-got
	}
}

// queue takes a free turn and returns nil. If no turn is free, it returns a channel that is closed when the caller gets
// a turn. again says that the caller had a turn before.
func (t *Turns) queue(again bool) (got chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.free > 0 {
		t.free--
		return nil
	}
	got = make(chan struct{})
	if again {
		t.waiting = slices.Insert(t.waiting, t.again, got)
		t.again++
	} else {
		t.waiting = append(t.waiting, got)
	}
	return got
}

// release gives the turn to the first execution that waits. If none waits, the turn becomes free.
func (t *Turns) release() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.waiting) == 0 {
		t.free++
		return
	}
	close(t.waiting[0])
	t.waiting = slices.Delete(t.waiting, 0, 1)
	t.again = max(0, t.again-1)
}

// leave ends the wait of an execution that was cancelled and had no turn before. got is the channel that queue has
// returned to it.
func (t *Turns) leave(got chan struct{}) {
	t.mu.Lock()
	i := slices.Index(t.waiting, got)
	if i >= 0 {
		t.waiting = slices.Delete(t.waiting, i, i+1)
	}
	t.mu.Unlock()
	if i < 0 { // release has closed the channel in the meantime, so this execution has a turn that it must pass on
		t.release()
	}
}
