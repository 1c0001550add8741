package server

import (
	"strings"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/crowfoot-db/crowfoot/database"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/txn"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// maxReplicaSelections is the number of replica selections that a request can have at most:
// https://cloud.google.com/spanner/docs/directed-reads#parameters.
const maxReplicaSelections = 10

// checkRequestOptions validates the options that every request may have. The priority must have a known value, but does
// not change how a request runs: Crowfoot has no scheduler that could use it. Any text is a valid tag.
func checkRequestOptions(o *spannerpb.RequestOptions) error {
	if o == nil {
		return nil
	}
	if _, ok := spannerpb.RequestOptions_Priority_name[int32(o.Priority)]; !ok {
		return usererror.InvalidPriority(int32(o.Priority))
	}
	return nil
}

// checkTransactionOptions validates the options of a transaction of any kind.
func checkTransactionOptions(o *spannerpb.TransactionOptions) error {
	if _, ok := spannerpb.TransactionOptions_IsolationLevel_name[int32(o.GetIsolationLevel())]; !ok {
		return usererror.InvalidTransactionOptions("unknown isolation_level")
	}
	repeatable := o.GetIsolationLevel() == spannerpb.TransactionOptions_REPEATABLE_READ
	switch m := o.GetMode().(type) {
	case nil:
		return usererror.InvalidTransactionOptions("one of read_write, partitioned_dml and read_only is required")
	case *spannerpb.TransactionOptions_ReadWrite_:
		if _, ok := spannerpb.TransactionOptions_ReadWrite_ReadLockMode_name[int32(m.ReadWrite.GetReadLockMode())]; !ok {
			return usererror.InvalidTransactionOptions("unknown read_lock_mode")
		}
	case *spannerpb.TransactionOptions_PartitionedDml_:
		if repeatable {
			return usererror.InvalidTransactionOptions("isolation_level REPEATABLE_READ is not allowed for partitioned DML transactions")
		}
	case *spannerpb.TransactionOptions_ReadOnly_:
		if repeatable {
			return usererror.InvalidTransactionOptions("isolation_level REPEATABLE_READ is not allowed for read-only transactions")
		}
		if o.ExcludeTxnFromChangeStreams {
			return usererror.InvalidTransactionOptions("exclude_txn_from_change_streams is not allowed for read-only transactions")
		}
	}
	return nil
}

// boundOf converts the timestamp bound of a read-only transaction. A transaction without a bound reads strongly.
func boundOf(o *spannerpb.TransactionOptions_ReadOnly) (txn.Bound, error) {
	switch b := o.GetTimestampBound().(type) {
	case *spannerpb.TransactionOptions_ReadOnly_ReadTimestamp:
		return timeBound(txn.ReadTimestamp, "read_timestamp", b.ReadTimestamp)
	case *spannerpb.TransactionOptions_ReadOnly_MinReadTimestamp:
		return timeBound(txn.MinReadTimestamp, "min_read_timestamp", b.MinReadTimestamp)
	case *spannerpb.TransactionOptions_ReadOnly_ExactStaleness:
		return stalenessBound(txn.ExactStaleness, "exact_staleness", b.ExactStaleness)
	case *spannerpb.TransactionOptions_ReadOnly_MaxStaleness:
		return stalenessBound(txn.MaxStaleness, "max_staleness", b.MaxStaleness)
	case *spannerpb.TransactionOptions_ReadOnly_Strong:
		if !b.Strong {
			return txn.Bound{}, usererror.InvalidTransactionOptions("strong must be true if it is set")
		}
	}
	return txn.Bound{Kind: txn.Strong}, nil
}

// multiUseBound converts the timestamp bound of a read-only transaction with several reads. These reads share one
// timestamp, so multiUseBound refuses bounds that let each read choose its timestamp.
func multiUseBound(o *spannerpb.TransactionOptions_ReadOnly) (txn.Bound, error) {
	bound, err := boundOf(o)
	if err == nil && (bound.Kind == txn.MinReadTimestamp || bound.Kind == txn.MaxStaleness) {
		return bound, usererror.BoundedStalenessMultiUse()
	}
	return bound, err
}

func timeBound(kind txn.BoundKind, field string, t *timestamppb.Timestamp) (txn.Bound, error) {
	if t.CheckValid() != nil {
		return txn.Bound{}, usererror.InvalidTransactionOptions(field + " is not a valid timestamp")
	}
	return txn.Bound{Kind: kind, Time: t.AsTime()}, nil
}

func stalenessBound(kind txn.BoundKind, field string, d *durationpb.Duration) (txn.Bound, error) {
	if d.CheckValid() != nil {
		return txn.Bound{}, usererror.InvalidTransactionOptions(field + " is not a valid duration")
	}
	if d.AsDuration() < 0 {
		return txn.Bound{}, usererror.NegativeStaleness(d.AsDuration())
	}
	return txn.Bound{Kind: kind, Duration: d.AsDuration()}, nil
}

// checkQueryOptions validates the requested optimizer version and statistics package. Valid ones change nothing,
// because there is only one optimizer.
func checkQueryOptions(o *spannerpb.ExecuteSqlRequest_QueryOptions, db *database.Database) error {
	if o == nil {
		return nil
	}
	if v := o.OptimizerVersion; v != "" && !strings.EqualFold(v, "latest") && !schema.IsOptimizerVersion(v) {
		return usererror.OptimizerVersionUnsupported(v)
	}
	if p := o.OptimizerStatisticsPackage; p != "" && !db.Catalog().HasStatisticsPackage(p) {
		return usererror.StatisticsPackageNotFound(p)
	}
	return nil
}

// checkDirectedRead validates directed_read_options. Valid ones change nothing, because there is only one replica.
func checkDirectedRead(o *spannerpb.DirectedReadOptions, readOnly bool) error {
	if o == nil {
		return nil
	}
	if !readOnly {
		return usererror.DirectedReadInReadWrite()
	}
	include, exclude := o.GetIncludeReplicas().GetReplicaSelections(), o.GetExcludeReplicas().GetReplicaSelections()
	if len(include) > maxReplicaSelections || len(exclude) > maxReplicaSelections {
		return usererror.TooManyReplicaSelections(maxReplicaSelections)
	}
	return nil
}

// maxCommitDelay is the longest delay that a Commit can ask for:
// https://cloud.google.com/spanner/docs/throughput-optimized-writes.
const maxCommitDelay = 500 * time.Millisecond

// commitDelay returns how long a commit may be delayed so that it shares a sync to disk with other commits.
func commitDelay(d *durationpb.Duration) (time.Duration, error) {
	if d == nil {
		return 0, nil
	}
	if d.CheckValid() != nil || d.AsDuration() < 0 || d.AsDuration() > maxCommitDelay {
		return 0, usererror.InvalidCommitDelay(maxCommitDelay)
	}
	return d.AsDuration(), nil
}
