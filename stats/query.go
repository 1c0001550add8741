package stats

import (
	"time"

	"github.com/crowfoot-db/crowfoot/value"
)

// Outcome says how an execution ended.
type Outcome uint8

const (
	Succeeded Outcome = iota
	Failed
	Cancelled // cancelled by a user, or the client has disconnected
	TimedOut
)

// QueryKind distinguishes executions of the same SQL text that statistics count in different rows.
type QueryKind uint8

const (
	PlainQuery       QueryKind = iota
	PartitionedQuery           // the request has a partition token
	// PartitionedDML is counted only if it succeeds. Its row has the QUERY_TYPE PARTITIONED_QUERY. The row's
	// fingerprint is that of the SQL text, even if the request has a tag:
	// https://cloud.google.com/spanner/docs/introspection/query-statistics.
	PartitionedDML
)

// A Query is one execution of a statement, or of a batch of DML.
type Query struct {
	Text        Text
	Tag         string // tag of the request
	Kind        QueryKind
	Outcome     Outcome
	InReadWrite bool
	// Continues says that an earlier request has counted the execution, and this request only reads further rows of it.
	// The cost of this request is added to the execution, whether the request succeeds or fails.
	Continues bool
	// Statements is the number of statements of a batch; 0 means 1.
	Statements int64

	End             time.Time
	Latency         time.Duration // from the first byte received to the last byte sent
	CPU             time.Duration
	PlanTime        time.Duration // 0 if the plan came from the cache
	FilesystemDelay time.Duration

	Rows, Bytes               int64 // returned to the client
	RowsScanned               int64
	RowsWritten, BytesWritten int64
	RowsSpooled               int64
	RemoteCalls               int64
	MemoryPeak                int64   // the most memory that the execution used at one time, in bytes
	MemoryShare               float64 // MemoryPeak as a percentage of the memory limit of a query
	DiskIOCost                float64

	// Accesses are the accesses of the plan to tables and indexes.
	Accesses []*Access
}

// Indexes of tally.sums in the statistics of queries. A sum that is shown as an average adds up only successful
// executions; the sums with Failed in their names add up only failed ones.
const (
	queryCount = iota
	queryFailed
	queryCancelled
	queryTimedOut
	queryLatency
	queryFailedLatency
	queryCPU
	queryFailedCPU
	queryRows
	queryBytes
	queryScanned
	queryBytesWritten
	queryRowsWritten
	queryStatements
	queryInReadWrite
	queryMemoryPeak
	queryMemoryShare
	queryPlanTime
	queryFilesystemDelay
	queryRemoteCalls
	querySpooled
	queryDiskIO
	querySums
)

func queryWeight(t *tally) int64 { return t.sums[queryCPU] + t.sums[queryFailedCPU] }

func succeeded(t *tally) int64 { return t.sums[queryCount] - t.sums[queryFailed] }

// Query counts an execution. It does not keep q after it returns.
func (c *Collector) Query(q *Query) {
	if c.cfg.Off || q.Kind == PartitionedDML && q.Outcome != Succeeded {
		return
	}
	tag, kind := Tag(q.Tag), q.Kind
	fp := fingerprintOf(tag, q.Text.Fingerprint)
	if kind == PartitionedDML {
		fp, kind = q.Text.Fingerprint, PartitionedQuery
	}
	s := c.enter()
	defer s.mu.Unlock()
	open := s.at(c, q.End)
	b := open.board(queries)
	key := subjectKey(fp, uint8(kind))
	t := b.tallies[key]
	if t == nil {
		t = b.add(key, subject{fingerprint: fp, kind: uint8(kind), name: q.Text.SQL, tag: tag})
	}
	if q.Continues {
		q.addCost(t)
		return
	}
	q.count(t)
	open.operate(q.Accesses)
}

func (q *Query) count(t *tally) {
	t.sums[queryCount]++
	t.sums[queryStatements] += max(q.Statements, 1)
	if q.InReadWrite {
		t.sums[queryInReadWrite]++
	}
	if q.Outcome != Succeeded {
		q.countFailed(t)
		return
	}
	t.sums[queryLatency] += int64(q.Latency)
	t.distribution().Observe(q.Latency)
	q.addCost(t)
}

// addCost adds the cost of a request that belongs to a successful execution. The memory of several requests is added
// up, because they may run at the same time.
func (q *Query) addCost(t *tally) {
	t.sums[queryCPU] += int64(q.CPU)
	t.sums[queryRows] += q.Rows
	t.sums[queryBytes] += q.Bytes
	t.sums[queryScanned] += q.RowsScanned
	t.sums[queryBytesWritten] += q.BytesWritten
	t.sums[queryRowsWritten] += q.RowsWritten
	t.sums[queryMemoryPeak] += q.MemoryPeak
	t.sums[queryMemoryShare] += int64(q.MemoryShare * millionth)
	t.sums[queryPlanTime] += int64(q.PlanTime)
	t.sums[queryFilesystemDelay] += int64(q.FilesystemDelay)
	t.sums[queryRemoteCalls] += q.RemoteCalls
	t.sums[querySpooled] += q.RowsSpooled
	t.sums[queryDiskIO] += int64(q.DiskIOCost * millionth)
}

func (q *Query) countFailed(t *tally) {
	t.sums[queryFailed]++
	t.sums[queryFailedLatency] += int64(q.Latency)
	t.sums[queryFailedCPU] += int64(q.CPU)
	switch q.Outcome {
	case Cancelled:
		t.sums[queryCancelled]++
	case TimedOut:
		t.sums[queryTimedOut]++
	}
}

var queryColumns = []column{
	intervalEnd,
	nameColumn("TEXT"),
	top(column{name: "TEXT_TRUNCATED", typ: value.BoolType, of: func(r row) value.Value { return value.OfBool(r.subject.truncated) }}),
	fingerprintColumn("TEXT_FINGERPRINT"),
	sum("EXECUTION_COUNT", queryCount),
	average("AVG_LATENCY_SECONDS", queryLatency, nanos, succeeded),
	average("AVG_ROWS", queryRows, ones, succeeded),
	average("AVG_BYTES", queryBytes, ones, succeeded),
	average("AVG_ROWS_SCANNED", queryScanned, ones, succeeded),
	average("AVG_CPU_SECONDS", queryCPU, nanos, succeeded),
	sum("CANCELLED_OR_DISCONNECTED_EXECUTION_COUNT", queryCancelled),
	sum("TIMED_OUT_EXECUTION_COUNT", queryTimedOut),
	sum("ALL_FAILED_EXECUTION_COUNT", queryFailed),
	average("ALL_FAILED_AVG_LATENCY_SECONDS", queryFailedLatency, nanos, func(t *tally) int64 { return t.sums[queryFailed] }),
	tagColumn("REQUEST_TAG"),
	average("AVG_BYTES_WRITTEN", queryBytesWritten, ones, succeeded),
	average("AVG_ROWS_WRITTEN", queryRowsWritten, ones, succeeded),
	top(sum("STATEMENT_COUNT", queryStatements)),
	distributionColumn("LATENCY_DISTRIBUTION"),
	sum("RUN_IN_RW_TRANSACTION_EXECUTION_COUNT", queryInReadWrite),
	text("QUERY_TYPE", func(s *subject) string {
		if QueryKind(s.kind) == PartitionedQuery {
			return "PARTITIONED_QUERY"
		}
		return "QUERY"
	}),
	average("AVG_MEMORY_PEAK_USAGE_BYTES", queryMemoryPeak, ones, succeeded),
	average("AVG_MEMORY_USAGE_PERCENTAGE", queryMemoryShare, millionth, succeeded),
	average("AVG_QUERY_PLAN_CREATION_TIME_SECS", queryPlanTime, nanos, succeeded),
	average("AVG_FILESYSTEM_DELAY_SECS", queryFilesystemDelay, nanos, succeeded),
	average("AVG_REMOTE_SERVER_CALLS", queryRemoteCalls, ones, succeeded),
	average("AVG_ROWS_SPOOLED", querySpooled, ones, succeeded),
	average("AVG_DISK_IO_COST", queryDiskIO, millionth, succeeded),
	distributionText("LATENCY_DISTRIBUTION_JSON_STRING"),
}
