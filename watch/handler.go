package watch

import (
	"context"
	"errors"
)

// A Handler takes changes. When Handle returns nil, the changes count as handled; only then does the checkpoint move
// past them.
//
// If Handle returns an error or panics, it is called again with the same transaction until it returns nil, the context
// ends, or the error is marked with Fatal. The pauses between the calls grow up to a limit. During this time the feed
// waits, but other feeds do not. For one feed, each call begins after the previous one has ended. For different feeds,
// calls run concurrently in different goroutines.
type Handler interface {
	Handle(ctx context.Context, tx *Transaction) error
}

// A BatchHandler takes, in one call, all transactions that are ready: the watcher calls HandleBatch instead of Handle.
// This suits handlers that send changes elsewhere and wait for the answers, since they can wait for many answers at
// once. When HandleBatch returns an error, the whole batch comes again, unless the error is marked with Fatal.
type BatchHandler interface {
	Handler
	HandleBatch(ctx context.Context, list []*Transaction) error
}

// HandlerFunc makes a Handler of a function.
type HandlerFunc func(ctx context.Context, tx *Transaction) error

// Handle calls f.
func (f HandlerFunc) Handle(ctx context.Context, tx *Transaction) error { return f(ctx, tx) }

// EachChange returns a handler that calls f for each change. If f returns an error, f is called again with the same
// change. The changes before it in the transaction come again only if the source delivers the whole transaction again:
// when the source is read again after an error of its own, or when the watcher is started again.
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

// Fatal marks an error of a handler as one that calling the handler again cannot fix. Run returns the error, and the
// transaction comes again in the next Run.
func Fatal(err error) error { return &fatalError{err} }

type fatalError struct{ err error }

func (e *fatalError) Error() string { return e.err.Error() }
func (e *fatalError) Unwrap() error { return e.err }

func isFatal(err error) bool {
	var f *fatalError
	return errors.As(err, &f)
}
