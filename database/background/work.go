package background

import (
	"context"
	"sync"
)

// Work starts and stops the background goroutines of a database. They run until End is called, because the database is
// dropped or the server closes all databases.
type Work struct {
	ctx     context.Context
	stop    context.CancelFunc // nil before Begin
	running sync.WaitGroup
	open    sync.RWMutex // WhileOpen holds the read lock; End takes the write lock to wait for WhileOpen
}

// Begin calls each of the given functions in a goroutine of its own. The context of the functions ends when ctx ends or
// End is called.
func (w *Work) Begin(ctx context.Context, all ...func(context.Context)) {
	w.ctx, w.stop = context.WithCancel(ctx)
	for _, work := range all {
		w.Go(work)
	}
}

// Go starts work in one more goroutine. Begin must have been called before.
func (w *Work) Go(work func(context.Context)) {
	w.running.Go(func() { work(w.ctx) })
}

// End cancels the context of all background goroutines and of the functions that WhileOpen runs. It returns when all of
// them have returned.
func (w *Work) End() {
	if w.stop != nil {
		w.stop()
		w.running.Wait()
		w.open.Lock()
		defer w.open.Unlock()
	}
}

// WhileOpen calls the function work, for example to change the schema, and returns the error of the function. The
// context of the function ends when ctx ends or End is called. End waits until the function has returned. If End was
// called before, WhileOpen returns an error and does not call the function.
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

// Token is a lock that one goroutine at a time holds. A goroutine that waits for a Token can give up.
type Token chan struct{}

// NewToken returns a Token that nobody holds.
func NewToken() Token { return make(Token, 1) }

// Acquire waits until nobody holds the token, and then holds it. If ctx ends first, it returns ctx's error.
func (t Token) Acquire(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// TryAcquire takes the token and returns true if nobody holds it. If somebody does, it returns false at once.
func (t Token) TryAcquire() bool {
	select {
	case t <- struct{}{}:
		return true
	default:
		return false
	}
}

// Release gives up the token. The caller must hold it.
func (t Token) Release() { <-t }
