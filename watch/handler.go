package watch

import (
	"context"
	"errors"
)

// A Handler takes changes. It has taken them for good when it returns nil; then, and only then, the checkpoint moves on.
//
// If it returns an error or panics, it is called again with the same transaction, after a pause that grows to a bound, until it returns nil, the
// context ends, or the error is one of Fatal. The feed waits meanwhile; the others do not. Calls for one feed come one after the other; those of
// different feeds come at the same time, from different goroutines.
//
// A handler may keep what it gets, and must not alter it.
type Handler interface {
	Handle(ctx context.Context, tx *Transaction) error
}

// A BatchHandler takes all transactions that are at hand in one call, for which HandleBatch is then called instead of Handle. This is for handlers that
// send what they get to somewhere and wait for the answer: they can wait for many at once. When HandleBatch returns an error, all of the batch comes again,
// unless the error is one of Fatal.
type BatchHandler interface {
	Handler
	HandleBatch(ctx context.Context, list []*Transaction) error
}

// HandlerFunc is a function that is a Handler.
type HandlerFunc func(ctx context.Context, tx *Transaction) error

// Handle calls f.
func (f HandlerFunc) Handle(ctx context.Context, tx *Transaction) error { return f(ctx, tx) }

// EachChange is a handler of single changes. After an error of f the next call is for the same change. The changes of the transaction before it come again
// only if the whole transaction does: when the source is read again after an error of its own, or the watcher is started again.
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

// Fatal marks an error of a handler that no further call can mend: Run ends with it, and the transaction comes again with the next Run.
func Fatal(err error) error { return &fatalError{err} }

type fatalError struct{ err error }

func (e *fatalError) Error() string { return e.err.Error() }
func (e *fatalError) Unwrap() error { return e.err }

func isFatal(err error) bool {
	var f *fatalError
	return errors.As(err, &f)
}
