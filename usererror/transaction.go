package usererror

import (
	"errors"
	"time"

	"google.golang.org/grpc/codes"
)

// Errors about transactions that requests name, and about options of transactions.

// InvalidTransactionOptions returns the error for transaction options that do not exist, or that contradict each other.
func InvalidTransactionOptions(why string) *Error {
	return newError(codes.InvalidArgument, "Invalid transaction options: %s.", why)
}

// TransactionNotFound reports that no transaction of this session has this id.
func TransactionNotFound(id []byte) *Error {
	return newError(codes.NotFound, "Transaction not found: %x", id[:min(len(id), 64)])
}

// TransactionClosed reports that the server has ended the transaction, because the transaction was idle for too long or
// its session began another transaction.
func TransactionClosed() *Error {
	return newError(codes.FailedPrecondition, "Cannot use the transaction: it has already been closed.")
}

// RollbackAfterCommit returns the error for Rollback of a transaction that has been committed.
func RollbackAfterCommit() *Error {
	return newError(codes.FailedPrecondition, "Cannot rollback a transaction after it has been committed.")
}

// NotReadWrite returns the error for Commit or Rollback of a transaction that is not read-write. The parameter call is
// the text "commit" or "rollback". kind is the transaction's kind, such as "read-only".
func NotReadWrite(call, kind string) *Error {
	return newError(codes.FailedPrecondition, "Cannot %s a %s transaction.", call, kind)
}

// SingleUseWrite returns the error for a read or query with a single-use transaction that is not read-only.
func SingleUseWrite() *Error {
	return newError(codes.InvalidArgument, "Invalid single_use transaction: reads and queries may only use a single-use transaction that is read_only.")
}

// BoundedStalenessMultiUse returns the error for a bounded staleness in a transaction with several reads. All these
// reads must have the same timestamp, but with a bounded staleness each read could choose its own.
func BoundedStalenessMultiUse() *Error {
	return newError(codes.InvalidArgument, "Invalid transaction options: min_read_timestamp and max_staleness are for single-use transactions only.")
}

// InvalidPriority returns the error for a priority that does not exist.
func InvalidPriority(n int32) *Error {
	return newError(codes.InvalidArgument, "Invalid request options: unknown priority %d.", n)
}

// DirectedReadInReadWrite returns the error for directed_read_options in a read-write transaction.
func DirectedReadInReadWrite() *Error {
	return newError(codes.InvalidArgument, "Directed reads can only be performed in a read-only transaction.")
}

// TooManyReplicaSelections returns the error for directed_read_options with more than limit replica selections.
func TooManyReplicaSelections(limit int) *Error {
	return newError(codes.InvalidArgument, "Invalid directed_read_options: at most %d replica selections are allowed.", limit)
}

// InvalidCommitDelay returns the error for a max_commit_delay that is negative or above limit.
func InvalidCommitDelay(limit time.Duration) *Error {
	return newError(codes.InvalidArgument, "Invalid max_commit_delay: it must be between 0 and %d ms.", limit.Milliseconds())
}

// PartitionedSecondStatement returns the error for a second statement in a partitioned DML transaction.
func PartitionedSecondStatement() *Error {
	return newError(codes.InvalidArgument, "A partitioned DML transaction may only execute one statement.")
}

// PartitionedOnlyDML returns the error for a request other than a DML statement in a partitioned DML transaction.
func PartitionedOnlyDML() *Error {
	return newError(codes.InvalidArgument, "A partitioned DML transaction may only execute an UPDATE or DELETE statement.")
}

// UnexpectedMutationKey returns the error for a mutation_key in a request that begins a transaction which is not
// read-write.
func UnexpectedMutationKey() *Error {
	return newError(codes.InvalidArgument, "BeginTransaction: mutation_key is only allowed for read-write transactions.")
}

// InMutationKey converts the error with which Commit would refuse a mutation to the error with which BeginTransaction
// refuses the same mutation as a mutation_key. For a value of the wrong type, Commit returns FAILED_PRECONDITION.
// BeginTransaction returns INVALID_ARGUMENT, because tests of Google's Java client expect that code from Cloud Spanner.
func InMutationKey(err error) error {
	var e *Error
	if !errors.As(err, &e) || e.Code != codes.FailedPrecondition {
		return err
	}
	in := *e
	in.Code = codes.InvalidArgument
	return &in
}

// OutOfOrderSeqno returns the error for a DML request whose seqno is lower than the seqno of an earlier request. last
// is the seqno of the earlier request.
func OutOfOrderSeqno(seqno, last int64) *Error {
	return newError(codes.InvalidArgument, "Out of order seqno: %d was requested after %d.", seqno, last)
}

// ReusedSeqno returns the error for a request with the seqno of an earlier, different request.
func ReusedSeqno(seqno int64) *Error {
	return newError(codes.InvalidArgument, "A different request with seqno %d was executed before in this transaction.", seqno)
}

// IsAborted reports whether the code of err is ABORTED, which tells the client to run its transaction again.
func IsAborted(err error) bool { return err != nil && CodeOf(err) == codes.Aborted }

// SingleUseCommitKind returns the error for a Commit whose single-use transaction is not read-write.
func SingleUseCommitKind() *Error {
	return newError(codes.InvalidArgument, "Invalid single_use_transaction: Commit needs a read_write transaction.")
}

// PartitionTransaction returns the error for PartitionRead or PartitionQuery with a transaction that is not read-only,
// or that is for a single request.
func PartitionTransaction() *Error {
	return newError(codes.InvalidArgument, "Partitioned reads and queries need a read-only transaction that was begun by BeginTransaction or is begun in this request.")
}

// DMLReadOnly returns the error for DML in a read-only transaction.
func DMLReadOnly() *Error {
	return newError(codes.InvalidArgument, "DML statements can only be performed in a read-write or partitioned-dml transaction. Current transaction type is read-only or single-use.")
}

// BatchOutsideReadWrite returns the error for ExecuteBatchDml in a transaction that is not read-write.
func BatchOutsideReadWrite() *Error {
	return newError(codes.InvalidArgument, "ExecuteBatchDml can only be used in a read-write transaction.")
}

// NotDML returns the error for a statement of ExecuteBatchDml that is not DML. index counts from 0. Tests of official
// clients compare the text.
func NotDML(index int, sql string) *Error {
	return newError(codes.InvalidArgument, "Statement %d: '%s' is not valid DML.", index, shorten(sql))
}

// SystemTableInReadWrite returns the error for a query of INFORMATION_SCHEMA or SPANNER_SYS in a read-write
// transaction.
func SystemTableInReadWrite() *Error {
	return newError(codes.InvalidArgument, "Unsupported concurrency mode in query using INFORMATION_SCHEMA or SPANNER_SYS: they can only be read in a read-only transaction.")
}
