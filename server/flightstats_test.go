package server

import (
	"context"
	"fmt"
	"testing"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	arrowflight "github.com/apache/arrow-go/v18/arrow/flight"
	"google.golang.org/grpc/codes"
)

// A flightTraffic is a Flight SQL client of a server whose statistics the test reads.
type flightTraffic struct {
	*traffic
	f     *flightClient
	reads int // number of tickets that were read
}

func newFlightTraffic(t *testing.T, headers ...string) *flightTraffic {
	x := newTraffic(t)
	return &flightTraffic{traffic: x, f: x.newFlightClient(headers...)}
}

// fetch reads all endpoints of a FlightInfo and checks the number of rows.
func (x *flightTraffic) fetch(info *arrowflight.FlightInfo, rows int) {
	x.Helper()
	got, err := x.f.read(info)
	x.ok(err)
	if len(got) != rows {
		x.Errorf("%d rows, want %d", len(got), rows)
	}
	x.reads += len(info.Endpoint)
}

// minute waits until the statistics have counted all successful reads of tickets, and then moves the clock by a minute.
func (x *flightTraffic) minute() {
	x.Helper()
	x.ended("DoGet", "OK", float64(x.reads))
	x.traffic.minute()
}

// TestFlightQueryStats: statistics count a query once, at its GetFlightInfo. Reads of its tickets add their cost to
// that execution.
func TestFlightQueryStats(t *testing.T) {
	x := newFlightTraffic(t, "max-partitions", "3")
	const rows = 6000
	x.dmlOnce(x.session, fmt.Sprintf("INSERT INTO Plain (K, V) SELECT n, 'v' FROM UNNEST(GENERATE_ARRAY(1, %d)) n", rows))
	x.minute()
	const sql = "SELECT K FROM Plain WHERE K > 0"
	const row = `EXECUTION_COUNT, CAST(AVG_ROWS AS INT64), CAST(AVG_BYTES AS INT64), CAST(AVG_ROWS_SCANNED AS INT64), ALL_FAILED_EXECUTION_COUNT, STATEMENT_COUNT, QUERY_TYPE,
		REQUEST_TAG, RUN_IN_RW_TRANSACTION_EXECUTION_COUNT, LATENCY_DISTRIBUTION[OFFSET(0)].COUNT, AVG_CPU_SECONDS > 0, AVG_LATENCY_SECONDS > 0`
	last := func(want ...string) {
		t.Helper()
		x.shows("SELECT "+row+" FROM SPANNER_SYS.QUERY_STATS_TOP_MINUTE WHERE STARTS_WITH(TEXT, 'SELECT K') AND INTERVAL_END = (SELECT MAX(INTERVAL_END) FROM SPANNER_SYS.QUERY_STATS_TOP_MINUTE)", want...)
	}
	info, err := x.f.Execute(x.f.ctx, sql)
	x.ok(err)
	if len(info.Endpoint) != 3 {
		t.Fatalf("%d endpoints", len(info.Endpoint))
	}
	x.fetch(info, rows)
	x.minute()
	last("1|6000|48000|6000|0|1|QUERY||0|1|true|true")

	_, err = x.f.Execute(x.f.ctx, sql) // the test never fetches the rows of this query
	x.ok(err)
	x.minute()
	last("1|0|0|0|0|1|QUERY||0|1|true|true")

	// The rows are fetched again in a later minute, in which the query has no execution. An average is a cost divided
	// by the number of executions. Because this number is 0, the columns of averages show the whole cost.
	x.fetch(info, rows)
	x.minute()
	last("0|6000|48000|6000|0|0|QUERY||0|0|true|false")

	x.restart()
	x.f = x.newFlightClient()
	x.fetch(info, rows)
	x.forward(time.Hour)
	x.shows("SELECT EXECUTION_COUNT, CAST(SUM(AVG_ROWS * EXECUTION_COUNT) AS INT64) FROM SPANNER_SYS.QUERY_STATS_TOP_HOUR WHERE TEXT = '"+sql+"' GROUP BY 1", "2|18000")
	x.shows("SELECT READ_QUERY_COUNT FROM SPANNER_SYS.TABLE_OPERATIONS_STATS_HOUR WHERE TABLE_NAME = 'Plain'", "2")
}

// TestFlightFailedQueryStats checks how statistics count failures. A query that GetFlightInfo refuses counts as a
// failed execution. A query that GetFlightInfo accepts counts as successful, even if reading its rows fails afterwards.
func TestFlightFailedQueryStats(t *testing.T) {
	x := newFlightTraffic(t)
	x.plain(3)
	for _, sql := range []string{"SELEC 1", "SELECT K FROM NoTable"} {
		_, err := x.f.Execute(x.f.ctx, sql)
		x.fails(err, codes.InvalidArgument)
		_, err = x.f.GetExecuteSchema(x.f.ctx, sql) // does not run the statement, so it is not counted
		x.fails(err, codes.InvalidArgument)
		_, err = x.f.Prepare(x.f.ctx, sql)
		x.fails(err, codes.InvalidArgument)
	}
	_, err := x.f.request(&spannerpb.ExecuteSqlRequest{Session: x.session, Sql: "SELECT 2", PartitionToken: []byte("forged")})
	x.fails(err, codes.InvalidArgument)
	info, err := x.f.Execute(x.f.ctx, "SELECT 1 / (K - 3) FROM Plain WHERE K >= 3")
	x.ok(err)
	for range 2 {
		_, err = x.f.read(info)
		x.fails(err, codes.OutOfRange)
	}
	x.ended("DoGet", "OutOfRange", 2)
	x.minute()
	x.shows(`SELECT TEXT, EXECUTION_COUNT, ALL_FAILED_EXECUTION_COUNT, AVG_CPU_SECONDS > 0 FROM SPANNER_SYS.QUERY_STATS_TOP_MINUTE ORDER BY TEXT`,
		"SELEC 1|1|1|false", "SELECT 1 / (K - 3) FROM Plain WHERE K >= 3|1|0|true", "SELECT K FROM NoTable|1|1|false")
}

// TestFlightStatsOfRequests checks that statistics count requests of Spanner's API that are sent over Flight in the
// same way as over gRPC. Each partition counts once, with its type and tag, at its GetFlightInfo.
func TestFlightStatsOfRequests(t *testing.T) {
	x := newFlightTraffic(t)
	x.plain(4)
	in := byID(x.begin(x.session, readOnly()))
	tag := &spannerpb.RequestOptions{RequestTag: "mine"}
	read := &spannerpb.ReadRequest{Session: x.session, Transaction: in, Table: "Plain", Columns: []string{"K"}, KeySet: allKeys(), RequestOptions: tag}
	query := &spannerpb.ExecuteSqlRequest{Session: x.session, Transaction: in, Sql: "SELECT K FROM Plain", RequestOptions: tag}
	ofRead, err := x.data.PartitionRead(x.ctx, &spannerpb.PartitionReadRequest{Session: x.session, Transaction: in, Table: "Plain", Columns: read.Columns, KeySet: read.KeySet})
	x.ok(err)
	ofQuery, err := x.data.PartitionQuery(x.ctx, &spannerpb.PartitionQueryRequest{Session: x.session, Transaction: in, Sql: query.Sql})
	x.ok(err)
	for _, partition := range []bool{false, true} {
		if partition {
			read.PartitionToken, query.PartitionToken = ofRead.Partitions[0].PartitionToken, ofQuery.Partitions[0].PartitionToken
		}
		info, err := x.f.info(read)
		x.ok(err)
		x.fetch(info, 4)
		x.fetch(info, 4)
		info, err = x.f.info(query)
		x.ok(err)
		x.fetch(info, 4)
		x.fetch(info, 4)
	}
	rw := x.begin(x.session, readWrite())
	read.Transaction, read.PartitionToken, read.RequestOptions = byID(rw), nil, nil
	query.Transaction, query.PartitionToken, query.RequestOptions = byID(rw), nil, nil
	for _, info := range []func() (*arrowflight.FlightInfo, error){func() (*arrowflight.FlightInfo, error) { return x.f.info(read) }, func() (*arrowflight.FlightInfo, error) { return x.f.info(query) }} {
		of, err := info()
		x.ok(err)
		x.fetch(of, 4)
	}
	_, err = x.data.Rollback(context.Background(), &spannerpb.RollbackRequest{Session: x.session, TransactionId: rw})
	x.ok(err)
	x.minute()
	x.shows(`SELECT READ_TYPE, REQUEST_TAG, EXECUTION_COUNT, AVG_ROWS, AVG_BYTES, RUN_IN_RW_TRANSACTION_EXECUTION_COUNT FROM SPANNER_SYS.READ_STATS_TOP_MINUTE ORDER BY 1, 2`,
		"PARTITIONED_READ|mine|1|8|64|0", "READ||1|4|32|1", "READ|mine|1|8|64|0")
	x.shows(`SELECT QUERY_TYPE, REQUEST_TAG, EXECUTION_COUNT, AVG_ROWS, AVG_BYTES, RUN_IN_RW_TRANSACTION_EXECUTION_COUNT FROM SPANNER_SYS.QUERY_STATS_TOP_MINUTE ORDER BY 1, 2`,
		"PARTITIONED_QUERY|mine|1|8|64|0", "QUERY||1|4|32|1", "QUERY|mine|1|8|64|0")
}
