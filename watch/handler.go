package watch

import (
	"context"
	"errors"
)

// A Handler takes changes. When it returns nil, it has taken them for good; only then the checkpoint moves on.
//
// If it returns an error or panics, it is called again with the same transaction until it returns nil, the context ends, or the error is marked
// with Fatal. The pauses between the calls grow up to a limit. The feed waits meanwhile; other feeds do not. Calls for one feed come one after
// the other. Calls for different feeds come concurrently, from different goroutines.
//
// A handler may keep the transactions, but must not modify them.
type Handler interface {
	Handle(ctx context.Context, tx *Transaction) error
}

// A BatchHandler takes all transactions that are ready in one call: the watcher calls HandleBatch instead of Handle. This is for handlers that
// send changes elsewhere and wait for the answer, since they can wait for many at once. When HandleBatch returns an error, the whole batch comes
// again, unless the error is marked with Fatal.
type BatchHandler interface {
	Handler
	HandleBatch(ctx context.Context, list []*Transaction) error
}

// HandlerFunc makes a Handler of a function.
type HandlerFunc func(ctx context.Context, tx *Transaction) error

// Handle calls f.
func (f HandlerFunc) Handle(ctx context.Context, tx *Transaction) error { return f(ctx, tx) }

// EachChange returns a handler that calls f for each change. After an error of f, the next call is for the same change. The earlier changes of
// the transaction come again only if the whole transaction does: when the source is read again after an error of its own, or when the watcher is
// started again.
func EachChange(f func(ctx context.Context, tx *Transaction, c *Change) error) Handler {
	return HandlerFunc(func(ctx context.Context, tx *Transaction) error {
		for ; tx.handled < len(tx.Changes); tx.handled++ {
			if err := f(ctx, tx, &tx.Changes[tx.handled]); err != nil {
				return err
			}
		}
		return nil
	})
}

// Fatal marks an error that calling the handler again cannot fix. Run returns it, and the transaction comes again in the next Run.
func Fatal(err error) error { return &fatalError{err} }

type fatalError struct{ err error }

func (e *fatalError) Error() string { return e.err.Error() }
func (e *fatalError) Unwrap() error { return e.err }

func isFatal(err error) bool {
	var f *fatalError
	return errors.As(err, &f)
}
