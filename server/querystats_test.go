package server

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/server/status"
)

// wholeQueryRow lists those columns of query statistics whose values the test can compute.
const wholeQueryRow = `INTERVAL_END, TEXT, TEXT_TRUNCATED, EXECUTION_COUNT, AVG_ROWS, AVG_BYTES, AVG_ROWS_SCANNED,
	CANCELLED_OR_DISCONNECTED_EXECUTION_COUNT, TIMED_OUT_EXECUTION_COUNT, ALL_FAILED_EXECUTION_COUNT, REQUEST_TAG, AVG_BYTES_WRITTEN, AVG_ROWS_WRITTEN,
	STATEMENT_COUNT, RUN_IN_RW_TRANSACTION_EXECUTION_COUNT, QUERY_TYPE, AVG_MEMORY_USAGE_PERCENTAGE, AVG_FILESYSTEM_DELAY_SECS,
	AVG_ROWS_SPOOLED, AVG_DISK_IO_COST`

// TestQueryStats checks every column of a query's statistics, in the TOP and the TOTAL table.
func TestQueryStats(t *testing.T) {
	x := newTraffic(t)
	x.plain(3)
	const sql = "SELECT K, V FROM Plain WHERE K < @end"
	stmt := spanner.Statement{SQL: sql, Params: map[string]any{"end": 3}}
	for range 2 {
		x.rows(2, x.client.Single().Query(x.ctx, stmt))
	}
	_, err := x.client.ReadWriteTransaction(x.ctx, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		_, err := drain(tx.Query(ctx, stmt))
		return err
	})
	x.ok(err)
	x.minute()
	const end = "2030-01-02T03:05:00Z"
	// Together, the two rows of the result have two INT64 values of 8 bytes and three letters: 19 bytes.
	x.shows("SELECT "+wholeQueryRow+" FROM SPANNER_SYS.QUERY_STATS_TOP_MINUTE", end+"|"+sql+"|false|3|2|19|2|0|0|0||0|0|3|1|QUERY|0|0|0|0")
	x.shows(`SELECT TEXT_FINGERPRINT = FARM_FINGERPRINT(TEXT), AVG_LATENCY_SECONDS > 0, AVG_LATENCY_SECONDS < 60, AVG_CPU_SECONDS > 0, AVG_CPU_SECONDS < 60,
		AVG_QUERY_PLAN_CREATION_TIME_SECS > 0, ALL_FAILED_AVG_LATENCY_SECONDS, LATENCY_DISTRIBUTION[OFFSET(0)].COUNT,
		ABS(LATENCY_DISTRIBUTION[OFFSET(0)].MEAN - AVG_LATENCY_SECONDS) < 1e-9, SPANNER_SYS.DISTRIBUTION_PERCENTILE(LATENCY_DISTRIBUTION[OFFSET(0)], 99) > 0,
		INT64(PARSE_JSON(LATENCY_DISTRIBUTION_JSON_STRING).COUNT)
		FROM SPANNER_SYS.QUERY_STATS_TOP_MINUTE`, "true|true|true|true|true|true|0|3|true|true|3")
	x.shows(`SELECT INTERVAL_END, EXECUTION_COUNT, AVG_ROWS, AVG_BYTES, AVG_ROWS_SCANNED, ALL_FAILED_EXECUTION_COUNT, RUN_IN_RW_TRANSACTION_EXECUTION_COUNT,
		AVG_ROWS_WRITTEN, AVG_CPU_SECONDS > 0, AVG_LATENCY_SECONDS > 0, LATENCY_DISTRIBUTION[OFFSET(0)].COUNT
		FROM SPANNER_SYS.QUERY_STATS_TOTAL_MINUTE WHERE INTERVAL_END = '`+end+"'", end+"|3|2|19|2|0|1|0|true|true|3")
}

// TestQueryIntervals: an interval of a minute, ten minutes or an hour is shown once it has ended.
func TestQueryIntervals(t *testing.T) {
	x := newTraffic(t) // the clock shows 3:04
	x.rows(1, x.client.Single().Query(x.ctx, spanner.NewStatement("SELECT 1")))
	ends := func(suffix string, want ...string) {
		t.Helper()
		x.shows("SELECT INTERVAL_END, EXECUTION_COUNT FROM SPANNER_SYS.QUERY_STATS_TOP_"+suffix+" WHERE TEXT = 'SELECT 1'", want...)
	}
	ends("MINUTE")
	x.minute()
	ends("MINUTE", "2030-01-02T03:05:00Z|1")
	ends("10MINUTE")
	x.rows(1, x.client.Single().Query(x.ctx, spanner.NewStatement("SELECT 1")))
	x.forward(5 * time.Minute)
	ends("MINUTE", "2030-01-02T03:06:00Z|1", "2030-01-02T03:05:00Z|1")
	ends("10MINUTE", "2030-01-02T03:10:00Z|2")
	ends("HOUR")
	x.forward(50 * time.Minute)
	ends("HOUR", "2030-01-02T04:00:00Z|2")
}

// An expiring is a context that has a deadline, which passes when the test calls expire.
type expiring struct {
	context.Context
	done chan struct{}
}

func newExpiring(parent context.Context) *expiring {
	return &expiring{parent, make(chan struct{})}
}

func (e *expiring) expire()                           { close(e.done) }
func (e *expiring) Done() <-chan struct{}             { return e.done }
func (e *expiring) Deadline() (at time.Time, ok bool) { return time.Time{}, false }
func (e *expiring) Err() error {
	select {
	case <-e.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// TestFailedQueries: failures of each kind are counted, and averages do not include failed queries.
func TestFailedQueries(t *testing.T) {
	x := newTraffic(t)
	x.plain(2)
	query := func(ctx context.Context, sql string) error {
		_, err := drain(x.client.Single().Query(ctx, spanner.NewStatement(sql)))
		return err
	}
	x.fails(query(x.ctx, "SELECT 1 / (K - 2) FROM Plain"), codes.OutOfRange)
	x.fails(query(x.ctx, "SELEC 1"), codes.InvalidArgument)
	x.fails(query(x.ctx, "SELECT * FROM NoTable"), codes.InvalidArgument)
	x.fails(query(x.ctx, "DELETE FROM Plain WHERE TRUE"), codes.InvalidArgument) // the transaction is read-only
	const long = "SELECT COUNT(*) FROM UNNEST(GENERATE_ARRAY(1, 100000)) a, UNNEST(GENERATE_ARRAY(1, 1000000)) b"
	late := newExpiring(x.ctx)
	go func() { x.awaitQuery(long); late.expire() }()
	err := x.executeIn(late, x.method("ExecuteStreamingSql"), &spannerpb.ExecuteSqlRequest{Session: x.harness.session(true), Sql: long}, nil)
	if status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("a query whose time is over: %v", err)
	}
	left, leave := context.WithCancel(x.ctx)
	go func() { x.awaitQuery(long); leave() }()
	x.fails(query(left, long), codes.Canceled)
	x.ended("ExecuteStreamingSql", "Canceled", 1)
	x.minute()
	const columns = `EXECUTION_COUNT, ALL_FAILED_EXECUTION_COUNT, CANCELLED_OR_DISCONNECTED_EXECUTION_COUNT, TIMED_OUT_EXECUTION_COUNT, AVG_LATENCY_SECONDS,
		ALL_FAILED_AVG_LATENCY_SECONDS > 0, AVG_CPU_SECONDS, AVG_ROWS, LATENCY_DISTRIBUTION[OFFSET(0)].COUNT`
	x.shows("SELECT TEXT, "+columns+" FROM SPANNER_SYS.QUERY_STATS_TOP_MINUTE ORDER BY TEXT",
		"DELETE FROM Plain WHERE TRUE|1|1|0|0|0|true|0|0|0",
		"SELEC 1|1|1|0|0|0|true|0|0|0",
		"SELECT * FROM NoTable|1|1|0|0|0|true|0|0|0",
		"SELECT 1 / (K - 2) FROM Plain|1|1|0|0|0|true|0|0|0",
		long+"|2|2|1|1|0|true|0|0|0")
	x.shows("SELECT "+columns+" FROM SPANNER_SYS.QUERY_STATS_TOTAL_MINUTE WHERE INTERVAL_END = '2030-01-02T03:05:00Z'", "6|6|1|1|0|true|0|0|0")
}

// TestDMLStats checks the rows and bytes that statistics show for DML. A row of Plain has 4 bytes of key, 3 bytes of
// value, and one byte for each letter of V. The row of Singers with the name abc has 10 bytes, and its entry in the
// index has 11 bytes.
func TestDMLStats(t *testing.T) {
	x := newTraffic(t)
	x.plain(3)
	x.minute() // so the statements that follow run in the minute that begins at 3:05
	run := func(tag, sql string) (rows int64) {
		t.Helper()
		_, err := x.client.ReadWriteTransactionWithOptions(x.ctx, func(ctx context.Context, tx *spanner.ReadWriteTransaction) (err error) {
			rows, err = tx.Update(ctx, spanner.NewStatement(sql))
			return err
		}, spanner.TransactionOptions{TransactionTag: tag})
		x.ok(err)
		return rows
	}
	run("insert", "INSERT INTO Plain (K, V) VALUES (4, 'aaaa'), (5, 'aaaaa')")
	run("update", "UPDATE Plain SET V = 'b' WHERE V >= 'b'")
	run("delete", "DELETE FROM Plain WHERE K = 5")
	run("index", "INSERT INTO Singers (SingerId, Name) VALUES (1, 'abc')")
	_, err := x.client.ReadWriteTransaction(x.ctx, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		_, err := drain(tx.Query(ctx, spanner.NewStatement("UPDATE Plain SET V = 'cc' WHERE K = 4 THEN RETURN K, V")))
		return err
	})
	x.ok(err)
	x.minute()
	x.shows(`SELECT TEXT, EXECUTION_COUNT, AVG_ROWS, AVG_BYTES, AVG_ROWS_SCANNED, AVG_ROWS_WRITTEN, AVG_BYTES_WRITTEN, RUN_IN_RW_TRANSACTION_EXECUTION_COUNT,
		AVG_CPU_SECONDS > 0 FROM SPANNER_SYS.QUERY_STATS_TOP_MINUTE WHERE INTERVAL_END = '2030-01-02T03:06:00Z' AND TEXT NOT LIKE '%SPANNER_SYS%' ORDER BY TEXT`,
		"DELETE FROM Plain WHERE K = 5|1|0|0|1|1|4|1|true",
		"INSERT INTO Plain (K, V) VALUES (4, 'aaaa'), (5, 'aaaaa')|1|0|0|0|2|23|1|true",
		"INSERT INTO Singers (SingerId, Name) VALUES (1, 'abc')|1|0|0|0|1|21|1|true",
		"UPDATE Plain SET V = 'b' WHERE V >= 'b'|1|0|0|5|3|24|1|true",
		"UPDATE Plain SET V = 'cc' WHERE K = 4 THEN RETURN K, V|1|1|10|1|1|9|1|true")
	// A transaction with one statement has written as many bytes as that statement.
	x.shows(`SELECT t.TRANSACTION_TAG, t.AVG_BYTES = q.AVG_BYTES_WRITTEN FROM SPANNER_SYS.TXN_STATS_TOP_MINUTE t, SPANNER_SYS.QUERY_STATS_TOP_MINUTE q
		WHERE t.INTERVAL_END = q.INTERVAL_END AND (STARTS_WITH(LOWER(q.TEXT), t.TRANSACTION_TAG) AND q.TEXT NOT LIKE '%RETURN%' AND q.TEXT NOT LIKE '%Singers%'
			OR t.TRANSACTION_TAG = 'index' AND q.TEXT LIKE '%Singers%') AND t.TRANSACTION_TAG != '' ORDER BY 1`,
		"delete|true", "index|true", "insert|true", "update|true")
}

// TestBatchStats checks that statistics count a batch as one execution of several statements. If equal statements
// follow each other, the text of the batch must contain them only once.
func TestBatchStats(t *testing.T) {
	x := newTraffic(t)
	x.plain(2)
	batch := func(want codes.Code, statements ...string) {
		t.Helper()
		var list []spanner.Statement
		for _, sql := range statements {
			list = append(list, spanner.NewStatement(sql))
		}
		_, err := x.client.ReadWriteTransaction(x.ctx, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
			_, err := tx.BatchUpdate(ctx, list)
			return err
		})
		x.fails(err, want)
	}
	const update, insert = "UPDATE Plain SET V = V WHERE K <= 2", "INSERT INTO Plain (K) VALUES (2)"
	batch(codes.OK, update, update, "DELETE FROM Plain WHERE K = 1")
	batch(codes.AlreadyExists, update, insert, update)
	x.minute()
	x.shows(`SELECT TEXT, EXECUTION_COUNT, STATEMENT_COUNT, AVG_ROWS_SCANNED, AVG_ROWS_WRITTEN, ALL_FAILED_EXECUTION_COUNT, RUN_IN_RW_TRANSACTION_EXECUTION_COUNT,
		TEXT_FINGERPRINT = FARM_FINGERPRINT(TEXT) FROM SPANNER_SYS.QUERY_STATS_TOP_MINUTE ORDER BY TEXT`,
		update+";"+"DELETE FROM Plain WHERE K = 1|1|3|5|5|0|1|true",
		update+";"+insert+";"+update+"|1|3|0|0|1|1|true")
}

// TestPartitionedDMLStats: statistics count a partitioned DML statement as one execution if it succeeds, and not at all
// if it fails. The row of the statement has the fingerprint of the statement's text, although the request has a tag.
func TestPartitionedDMLStats(t *testing.T) {
	x := newTraffic(t)
	x.plain(4)
	tagged := spanner.QueryOptions{RequestTag: "app=x"}
	const sql = "UPDATE Plain SET V = 'w' WHERE K > 1"
	n, err := x.client.PartitionedUpdateWithOptions(x.ctx, spanner.NewStatement(sql), tagged)
	x.ok(err)
	if n != 3 {
		t.Errorf("%d rows", n)
	}
	_, err = x.client.PartitionedUpdateWithOptions(x.ctx, spanner.NewStatement("UPDATE Plain SET V = CAST(1/(K-4) AS STRING) WHERE TRUE"), tagged)
	x.fails(err, codes.OutOfRange)
	x.minute()
	x.shows(`SELECT TEXT, EXECUTION_COUNT, AVG_ROWS_SCANNED, AVG_ROWS_WRITTEN, AVG_BYTES_WRITTEN > 0, REQUEST_TAG, QUERY_TYPE,
		TEXT_FINGERPRINT = FARM_FINGERPRINT(TEXT), RUN_IN_RW_TRANSACTION_EXECUTION_COUNT FROM SPANNER_SYS.QUERY_STATS_TOP_MINUTE`,
		sql+"|1|3|3|true|app=x|PARTITIONED_QUERY|true|0")
}

// TestPartitionedQueryStats: statistics count each partition of a query as an execution, in a row of the kind
// PARTITIONED_QUERY.
func TestPartitionedQueryStats(t *testing.T) {
	x := newTraffic(t)
	x.plain(5)
	tx, err := x.client.BatchReadOnlyTransaction(x.ctx, spanner.StrongRead())
	x.ok(err)
	defer tx.Close()
	const sql = "SELECT K FROM Plain"
	parts, err := tx.PartitionQuery(x.ctx, spanner.NewStatement(sql), spanner.PartitionOptions{})
	x.ok(err)
	reads, err := tx.PartitionRead(x.ctx, "Plain", spanner.AllKeys(), []string{"K"}, spanner.PartitionOptions{})
	x.ok(err)
	for _, p := range append(parts, reads...) {
		_, err := drain(tx.Execute(x.ctx, p))
		x.ok(err)
	}
	x.rows(5, x.client.Single().Query(x.ctx, spanner.NewStatement(sql)))
	x.rows(5, x.client.Single().Read(x.ctx, "Plain", spanner.AllKeys(), []string{"K"}))
	x.minute()
	x.shows(`SELECT TEXT, QUERY_TYPE, EXECUTION_COUNT, AVG_ROWS * EXECUTION_COUNT FROM SPANNER_SYS.QUERY_STATS_TOP_MINUTE ORDER BY QUERY_TYPE`,
		fmt.Sprint(sql, "|PARTITIONED_QUERY|", len(parts), "|5"), sql+"|QUERY|1|5")
	x.shows(`SELECT READ_TYPE, EXECUTION_COUNT, AVG_ROWS * EXECUTION_COUNT FROM SPANNER_SYS.READ_STATS_TOP_MINUTE ORDER BY READ_TYPE`,
		fmt.Sprint("PARTITIONED_READ|", len(reads), "|5"), "READ|1|5")
	x.shows(`SELECT READ_QUERY_COUNT FROM SPANNER_SYS.TABLE_OPERATIONS_STATS_MINUTE`, fmt.Sprint(2+len(parts)+len(reads)))
}

// TestTags: executions with the same tag share a row of the statistics. Statistics show a long or unusual tag in a
// changed form. The fingerprint of the row is the hash of the tag as statistics show it.
func TestTags(t *testing.T) {
	x := newTraffic(t)
	x.plain(1)
	long := strings.Repeat("t", 60)
	for _, tag := range []string{"app=cart", "_app=cart", long, long + "u", "caf\u00e9\n"} {
		x.rows(1, x.client.Single().QueryWithOptions(x.ctx, spanner.NewStatement("SELECT 1"), spanner.QueryOptions{RequestTag: tag}))
		x.rows(1, x.client.Single().ReadWithOptions(x.ctx, "Plain", spanner.AllKeys(), []string{"K"}, &spanner.ReadOptions{RequestTag: tag}))
		_, err := x.client.ReadWriteTransactionWithOptions(x.ctx, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
			return tx.BufferWrite([]*spanner.Mutation{spanner.InsertOrUpdate("Plain", []string{"K"}, []any{1})})
		}, spanner.TransactionOptions{TransactionTag: tag})
		x.ok(err)
	}
	x.minute()
	want := []string{"app=cart|2|true", "caf__|1|true", long[:50] + "|2|true"}
	x.shows("SELECT REQUEST_TAG, EXECUTION_COUNT, TEXT_FINGERPRINT = FARM_FINGERPRINT(REQUEST_TAG) FROM SPANNER_SYS.QUERY_STATS_TOP_MINUTE ORDER BY 1", want...)
	x.shows("SELECT REQUEST_TAG, EXECUTION_COUNT, FPRINT = FARM_FINGERPRINT(REQUEST_TAG) FROM SPANNER_SYS.READ_STATS_TOP_MINUTE ORDER BY 1", want...)
	x.shows("SELECT TRANSACTION_TAG, ATTEMPT_COUNT, FPRINT = FARM_FINGERPRINT(TRANSACTION_TAG) FROM SPANNER_SYS.TXN_STATS_TOP_MINUTE WHERE TRANSACTION_TAG != '' ORDER BY 1", want...)
}

// TestLongText: statistics show only the beginning of a long statement, but compute the fingerprint from the whole
// statement.
func TestLongText(t *testing.T) {
	x := newTraffic(t)
	long := "SELECT 1 -- " + strings.Repeat("é", 500_000)
	x.rows(1, x.client.Single().Query(x.ctx, spanner.NewStatement(long+"x")))
	x.rows(1, x.client.Single().Query(x.ctx, spanner.NewStatement(long+"y")))
	x.minute()
	const shown = 64 << 10
	x.shows("SELECT BYTE_LENGTH(TEXT), TEXT_TRUNCATED, STARTS_WITH(TEXT, 'SELECT 1 -- é'), EXECUTION_COUNT FROM SPANNER_SYS.QUERY_STATS_TOP_MINUTE",
		fmt.Sprint(shown, "|true|true|1"), fmt.Sprint(shown, "|true|true|1"))
	x.rows(1, x.client.Single().Query(x.ctx, spanner.Statement{
		SQL: "SELECT 1 FROM SPANNER_SYS.QUERY_STATS_TOP_MINUTE WHERE TEXT_FINGERPRINT = FARM_FINGERPRINT(@text)", Params: map[string]any{"text": long + "x"}}))
}
