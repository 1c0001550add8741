package usererror

import (
	"errors"
	"time"

	"google.golang.org/grpc/codes"
)

// Errors about the transactions that requests name and the options they give.

// InvalidTransactionOptions: options of a transaction that do not exist, or contradict each other.
func InvalidTransactionOptions(why string) *Error {
	return newError(codes.InvalidArgument, "Invalid transaction options: %s.", why)
}

// TransactionNotFound: no transaction of this session has this id.
func TransactionNotFound(id []byte) *Error {
	return newError(codes.NotFound, "Transaction not found: %x", id[:min(len(id), 64)])
}

// TransactionClosed: a later transaction of its session, or long idleness, has ended the transaction.
func TransactionClosed() *Error {
	return newError(codes.FailedPrecondition, "Cannot use the transaction: it has already been closed.")
}

// RollbackAfterCommit: Rollback of a transaction that is committed.
func RollbackAfterCommit() *Error {
	return newError(codes.FailedPrecondition, "Cannot rollback a transaction after it has been committed.")
}

// NotReadWrite: Commit or Rollback of a transaction of another kind.
func NotReadWrite(call, kind string) *Error {
	return newError(codes.FailedPrecondition, "Cannot %s a %s transaction.", call, kind)
}

// SingleUseWrite: a read or query with a single-use transaction that is not read-only.
func SingleUseWrite() *Error {
	return newError(codes.InvalidArgument, "Invalid single_use transaction: reads and queries may only use a single-use transaction that is read_only.")
}

// BoundedStalenessMultiUse: a bounded staleness in a transaction of several reads. Only a single read can choose its timestamp.
func BoundedStalenessMultiUse() *Error {
	return newError(codes.InvalidArgument, "Invalid transaction options: min_read_timestamp and max_staleness are for single-use transactions only.")
}

// InvalidPriority: a priority that does not exist.
func InvalidPriority(n int32) *Error {
	return newError(codes.InvalidArgument, "Invalid request options: unknown priority %d.", n)
}

// DirectedReadInReadWrite: directed_read_options in a read-write transaction.
func DirectedReadInReadWrite() *Error {
	return newError(codes.InvalidArgument, "Directed reads can only be performed in a read-only transaction.")
}

// TooManyReplicaSelections: directed_read_options over the limit.
func TooManyReplicaSelections(limit int) *Error {
	return newError(codes.InvalidArgument, "Invalid directed_read_options: at most %d replica selections are allowed.", limit)
}

// InvalidCommitDelay: max_commit_delay out of range.
func InvalidCommitDelay(limit time.Duration) *Error {
	return newError(codes.InvalidArgument, "Invalid max_commit_delay: it must be between 0 and %d ms.", limit.Milliseconds())
}

// PartitionedSecondStatement: a second statement in a partitioned DML transaction.
func PartitionedSecondStatement() *Error {
	return newError(codes.InvalidArgument, "A partitioned DML transaction may only execute one statement.")
}

// PartitionedOnlyDML: a partitioned DML transaction used for something else.
func PartitionedOnlyDML() *Error {
	return newError(codes.InvalidArgument, "A partitioned DML transaction may only execute an UPDATE or DELETE statement.")
}

// UnexpectedMutationKey: mutation_key for a transaction that is not read-write.
func UnexpectedMutationKey() *Error {
	return newError(codes.InvalidArgument, "BeginTransaction: mutation_key is only allowed for read-write transactions.")
}

// InMutationKey is err, with which Commit refuses a mutation, of a mutation_key. A value that is not its column's is INVALID_ARGUMENT in BeginTransaction, as
// tests of Google's Java client expect of Cloud Spanner.
func InMutationKey(err error) error {
	var e *Error
	if !errors.As(err, &e) || e.Code != codes.FailedPrecondition {
		return err
	}
	in := *e
	in.Code = codes.InvalidArgument
	return &in
}

// OutOfOrderSeqno: DML with a lower seqno than one before it.
func OutOfOrderSeqno(seqno, last int64) *Error {
	return newError(codes.InvalidArgument, "Out of order seqno: %d was requested after %d.", seqno, last)
}

// ReusedSeqno: another statement with the same seqno.
func ReusedSeqno(seqno int64) *Error {
	return newError(codes.InvalidArgument, "A different request with seqno %d was executed before in this transaction.", seqno)
}

// IsAborted says whether err tells the client to run its transaction again.
func IsAborted(err error) bool { return err != nil && CodeOf(err) == codes.Aborted }

// SingleUseCommitKind: Commit with a single-use transaction that cannot write.
func SingleUseCommitKind() *Error {
	return newError(codes.InvalidArgument, "Invalid single_use_transaction: Commit needs a read_write transaction.")
}

// PartitionTransaction: PartitionRead or PartitionQuery in another transaction than a read-only one of several requests.
func PartitionTransaction() *Error {
	return newError(codes.InvalidArgument, "Partitioned reads and queries need a read-only transaction that was begun by BeginTransaction or is begun in this request.")
}

// DMLReadOnly: DML in a read-only transaction.
func DMLReadOnly() *Error {
	return newError(codes.InvalidArgument, "DML statements can only be performed in a read-write or partitioned-dml transaction. Current transaction type is read-only or single-use.")
}

// BatchOutsideReadWrite: ExecuteBatchDml in a transaction of another kind.
func BatchOutsideReadWrite() *Error {
	return newError(codes.InvalidArgument, "ExecuteBatchDml can only be used in a read-write transaction.")
}

// NotDML: a statement of ExecuteBatchDml, counted from 0, that is a query, or no statement at all. Clients' tests match on the text.
func NotDML(index int, sql string) *Error {
	return newError(codes.InvalidArgument, "Statement %d: '%s' is not valid DML.", index, shorten(sql))
}

// SystemTableInReadWrite: INFORMATION_SCHEMA or SPANNER_SYS in a read-write transaction.
func SystemTableInReadWrite() *Error {
	return newError(codes.InvalidArgument, "Unsupported concurrency mode in query using INFORMATION_SCHEMA or SPANNER_SYS: they can only be read in a read-only transaction.")
}
