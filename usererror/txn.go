package usererror

import (
	"time"

	"google.golang.org/grpc/codes"
)

// aborted makes an error with the code ABORTED, which tells the client to run the whole transaction again. The
// parameter after is how long the client should wait first.
func aborted(after time.Duration, format string, args ...any) *Error {
	e := newError(codes.Aborted, format, args...)
	e.RetryAfter = after
	return e
}

// Wounded reports that an older transaction needed a lock that this transaction held or waited for.
func Wounded(after time.Duration) *Error {
	return aborted(after, "Transaction was aborted. It was wounded by a higher priority transaction due to conflict.")
}

// Conflict reports that another transaction has changed data which this transaction has read or is about to write. Only
// optimistic and repeatable-read transactions get this error.
func Conflict(after time.Duration) *Error {
	return aborted(after, "Transaction was aborted: data that it read or writes was changed by another transaction.")
}

// IdleTransaction reports that the transaction had no request for too long, and that another transaction then took its
// locks. The parameter idle is how long a transaction may go without a request before others may take its locks.
func IdleTransaction(idle, after time.Duration) *Error {
	return aborted(after, "Transaction was aborted: it had been idle for more than %v and another transaction needed its locks.", idle)
}

// SchemaChanged reports that a schema change altered a table, or another schema object, that the transaction has read
// or written. Apache Beam recognises the error by this text.
func SchemaChanged(after time.Duration) *Error {
	return aborted(after, "Transaction aborted. Database schema probably changed during transaction, retry may succeed.")
}

// SnapshotExpired reports that a read-write transaction has run for so long that the versions which it reads may have
// been deleted.
func SnapshotExpired(after time.Duration) *Error {
	return aborted(after, "Transaction was aborted: it is older than the version retention period of the database.")
}

// TransactionLost reports that the transaction was not committed, but that the server no longer knows how it ended.
// Either it was open when the server restarted, or it ended long ago.
func TransactionLost(after time.Duration) *Error {
	return aborted(after, "Transaction was aborted: it was open when the server was restarted, or has ended without a commit.")
}

// CommitCalled returns the error for a read or write in a transaction whose Commit has begun.
func CommitCalled() *Error {
	return newError(codes.FailedPrecondition, "Cannot start a read or query within a transaction after Commit() or Rollback() has been called.")
}

// TransactionCommitted returns the error for a read, write or rollback in a transaction that has been committed.
func TransactionCommitted() *Error {
	return newError(codes.FailedPrecondition, "This transaction has already been committed.")
}

// TransactionRolledBack returns the error for a read, write or commit in a transaction that has been rolled back.
func TransactionRolledBack() *Error {
	return newError(codes.FailedPrecondition, "Cannot commit, read or write in a transaction that has been rolled back.")
}

// StalenessExceeded returns the error for a read at a timestamp whose versions may have been deleted. earliest is the
// earliest timestamp that can be read.
func StalenessExceeded(read, earliest time.Time) *Error {
	return newError(codes.FailedPrecondition, "Read-only transaction timestamp %s has exceeded the maximum timestamp staleness: the earliest version kept is of %s.",
		read.Format(time.RFC3339Nano), earliest.Format(time.RFC3339Nano))
}

// SchemaCollected reports that the version of the schema which a request needs has just been deleted. earliest is the
// earliest timestamp that can be read.
func SchemaCollected(earliest time.Time) *Error {
	return newError(codes.FailedPrecondition, "The schema of this request has exceeded the maximum timestamp staleness: the earliest version kept is of %s.",
		earliest.Format(time.RFC3339Nano))
}

// NegativeStaleness returns the error for a timestamp bound with a negative duration.
func NegativeStaleness(d time.Duration) *Error {
	return newError(codes.InvalidArgument, "Staleness must be non-negative, found: %v.", d)
}
