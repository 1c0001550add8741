package cpu

import (
	"context"
	"slices"
	"sync"
)

// Turns lets few executions compute at once, of those that would compute for long. If many did, each would hold what it has locked for as long as all
// take together, and brief executions would wait behind them for a processor.
type Turns struct {
	mu      sync.Mutex
	free    int
	waiting []chan struct{} // each is closed when it has got its turn
	again   int             // how many of waiting, the first, had a turn before
}

// NewTurns returns turns for so many executions at once.
func NewTurns(atOnce int) *Turns { return &Turns{free: atOnce} }

type turnsKey struct{}

// Take waits for a turn, in the order of the calls, and returns a context for what is computed in it and a function that ends it. While what runs under
// the context waits (Waiting), others have the turn.
func (t *Turns) Take(ctx context.Context) (turn context.Context, end func(), err error) {
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
	return context.WithValue(ctx, turnsKey{}, t), t.give, nil
}

// turnsOf are those that what runs under ctx has a turn of; nil if it has none.
func turnsOf(ctx context.Context) *Turns {
	t, _ := ctx.Value(turnsKey{}).(*Turns)
	return t
}

// takeAgain waits for the turn of an execution that had one. It goes before those that had none: it may hold locks.
func (t *Turns) takeAgain() {
	if got := t.queue(true); got != nil {
		<-got
	}
}

// queue returns nil if there was a turn, and otherwise what will be closed when there is one.
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

// give hands a turn on.
func (t *Turns) give() {
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

// leave ends the wait of one that had no turn before.
func (t *Turns) leave(got chan struct{}) {
	t.mu.Lock()
	i := slices.Index(t.waiting, got)
	if i >= 0 {
		t.waiting = slices.Delete(t.waiting, i, i+1)
	}
	t.mu.Unlock()
	if i < 0 { // it was given a turn meanwhile
		t.give()
	}
}
