package background

import (
	"context"
	"sync"
)

// Work is the work that a database does besides requests, until the registry closes or the database is dropped.
type Work struct {
	ctx     context.Context
	stop    context.CancelFunc // nil before Begin
	running sync.WaitGroup
	open    sync.RWMutex // see WhileOpen
}

// Begin starts work, which runs until it returns. Its context ends with ctx, or with End.
func (w *Work) Begin(ctx context.Context, all ...func(context.Context)) {
	w.ctx, w.stop = context.WithCancel(ctx)
	for _, work := range all {
		w.Go(work)
	}
}

// Go starts more work, after Begin.
func (w *Work) Go(work func(context.Context)) {
	w.running.Go(func() { work(w.ctx) })
}

// End stops the work, and returns when it has ended.
func (w *Work) End() {
	if w.stop != nil {
		w.stop()
		w.running.Wait()
		w.open.Lock()
		defer w.open.Unlock()
	}
}

// WhileOpen runs work that a request has begun, such as a schema change. The context of the work also ends with that of
// the work in the background. End waits for the work to return.
func (w *Work) WhileOpen(ctx context.Context, work func(context.Context) error) error {
	w.open.RLock()
	defer w.open.RUnlock()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(w.ctx, cancel)()
	if err := w.ctx.Err(); err != nil {
		return err
	}
	return work(ctx)
}

// Token is held by one goroutine at a time. A goroutine that waits for it can give up.
type Token chan struct{}

// NewToken returns a Token that nobody holds.
func NewToken() Token { return make(Token, 1) }

// Acquire waits until nobody holds the token, and then holds it. It fails with ctx's error if ctx ends first.
func (t Token) Acquire(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// TryAcquire is Acquire if nobody holds the token. Else it returns false at once.
func (t Token) TryAcquire() bool {
	select {
	case t <- struct{}{}:
		return true
	default:
		return false
	}
}

// Release ends what Acquire or TryAcquire has begun.
func (t Token) Release() { <-t }
