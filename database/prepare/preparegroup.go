package prepare

import (
	"context"
	"sync"

	"github.com/crowfoot-db/crowfoot/stats/cpu"
)

// prepareGroup lets one of many concurrent requests with the same text prepare the text, while the others wait for the
// result. The zero value is ready to use.
//
// The preparing request works on its own goroutine, so that the CPU time is charged to it
// (golang.org/x/sync/singleflight would start another goroutine for callers who wait with a context). If the context of
// the preparing request ends, only that request fails, and one of the waiting requests prepares the text.
type prepareGroup struct {
	mu    sync.Mutex
	byKey map[string]*prepareCall
}

// prepareCall is one preparation of a text. Waiting requests may read s, err and gone once done is closed.
type prepareCall struct {
	done chan struct{}
	s    *Statement
	err  error
	gone bool // the preparing request failed because its context ended, or it panicked
}

// do calls prepare for a key and returns the result. If another request is preparing the key, it waits for that result
// instead.
func (f *prepareGroup) do(ctx context.Context, key string, prepare func() (*Statement, error)) (*Statement, error) {
	for {
		under, first := f.join(key)
		if first {
			return f.lead(ctx, key, under, prepare)
		}
		if err := under.wait(ctx); err != nil {
			return nil, err
		}
		if !under.gone {
			return under.s, under.err
		}
	}
}

// wait waits until the preparation has ended, or ctx ends.
func (f *prepareCall) wait(ctx context.Context) error {
	defer cpu.Waiting(ctx)()
	select {
	case <-f.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// join returns the running preparation of a key. If there is none, it adds one and returns first = true; the caller
// must then call lead.
func (f *prepareGroup) join(key string) (under *prepareCall, first bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if under = f.byKey[key]; under != nil {
		return under, false
	}
	under = &prepareCall{done: make(chan struct{})}
	if f.byKey == nil {
		f.byKey = map[string]*prepareCall{}
	}
	f.byKey[key] = under
	return under, true
}

// lead calls the function prepare, stores the result in the prepareCall, and wakes the requests that wait for the
// result. It wakes them even if the function panics.
func (f *prepareGroup) lead(ctx context.Context, key string, under *prepareCall, prepare func() (*Statement, error)) (*Statement, error) {
	under.gone = true
	defer func() {
		f.mu.Lock()
		delete(f.byKey, key)
		f.mu.Unlock()
		close(under.done)
	}()
	under.s, under.err = prepare()
	under.gone = under.err != nil && ctx.Err() != nil
	return under.s, under.err
}
