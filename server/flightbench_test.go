package server

import (
	"fmt"
	"io"
	"log/slog"
	"syscall"
	"testing"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	flightpb "github.com/apache/arrow-go/v18/arrow/flight/gen/flight"
	"google.golang.org/protobuf/proto"

	"github.com/crowfoot-db/crowfoot/server/rpc"
)

// BenchmarkCustomer compares the server's CPU time per row of TPC-H's table customer over Flight SQL, by StreamingRead
// and by ExecuteStreamingSql, without gRPC. The queries are one that only reads rows and one that also has a condition,
// each on rows and on a columnar copy.
func BenchmarkCustomer(b *testing.B) {
	h := newHarnessWith(b, Config{Clock: time.Now, Log: slog.New(slog.NewTextHandler(io.Discard, nil))}, []string{
		`CREATE TABLE Customer (c_custkey INT64 NOT NULL, c_name STRING(25) NOT NULL, c_address STRING(40) NOT NULL, c_nationkey INT64 NOT NULL, c_phone STRING(15) NOT NULL,
			c_acctbal FLOAT64 NOT NULL, c_mktsegment STRING(10) NOT NULL, c_comment STRING(117) NOT NULL) PRIMARY KEY (c_custkey)`,
	})
	ses := h.session(true)
	const rows, step = 100_000, 5_000
	for from := 0; from < rows; from += step {
		h.dmlOnce(ses, fmt.Sprintf(`INSERT INTO Customer (c_custkey, c_name, c_address, c_nationkey, c_phone, c_acctbal, c_mktsegment, c_comment)
			SELECT n, CONCAT('Customer#', LPAD(CAST(n AS STRING), 9, '0')), SUBSTR(TO_HEX(SHA256(CAST(n AS STRING))), 1, 25), MOD(n, 25), '25-989-741-2988', n * 0.01, 'BUILDING',
			CONCAT(TO_HEX(SHA256(CAST(-n AS STRING))), ' furiously') FROM UNNEST(GENERATE_ARRAY(%d, %d)) n`, from+1, from+step))
	}
	db, err := h.server.registry.Database(testDatabase)
	h.ok(err)
	h.ok(db.UpdateSchema(h.ctx, []string{"ALTER TABLE Customer SET OPTIONS (columnar_policy = 'enabled')"}, nil))
	h.copied("Customer")
	columns := []string{"c_custkey", "c_name", "c_address", "c_nationkey", "c_phone", "c_acctbal", "c_mktsegment", "c_comment"}
	read := &spannerpb.ReadRequest{Session: ses, Table: "Customer", Columns: columns, KeySet: allKeys()}
	get := h.server.dispatcher.Services[1].Find("DoGet")
	f := h.newFlightClient("max-partitions", "1")
	ticket := func(sql string) proto.Message {
		info, err := f.Execute(f.ctx, sql)
		h.ok(err)
		return &flightpb.Ticket{Ticket: info.Endpoint[0].Ticket.Ticket}
	}
	const rowsOnly = "@{SCAN_METHOD=NO_COLUMNAR}"
	spent := map[string]time.Duration{}
	runs := []struct {
		name   string
		method *rpc.Method
		req    proto.Message
	}{
		{"read", h.method("StreamingRead"), read},
		{"flight", get, ticket(rowsOnly + "SELECT * FROM Customer")},
		{"flight-columnar", get, ticket("SELECT * FROM Customer")},
		{"sql", h.method("ExecuteStreamingSql"), &spannerpb.ExecuteSqlRequest{Session: ses, Sql: rowsOnly + "SELECT * FROM Customer WHERE c_acctbal >= 0"}},
		{"sql-columnar", h.method("ExecuteStreamingSql"), &spannerpb.ExecuteSqlRequest{Session: ses, Sql: "SELECT * FROM Customer WHERE c_acctbal >= 0"}},
		{"flight-sql", get, ticket(rowsOnly + "SELECT * FROM Customer WHERE c_acctbal >= 0")},
		{"flight-sql-columnar", get, ticket("SELECT * FROM Customer WHERE c_acctbal >= 0")},
		{"key-sql", h.method("ExecuteStreamingSql"), &spannerpb.ExecuteSqlRequest{Session: ses, Sql: rowsOnly + "SELECT * FROM Customer"}},
		{"key-sql-columnar", h.method("ExecuteStreamingSql"), &spannerpb.ExecuteSqlRequest{Session: ses, Sql: "SELECT * FROM Customer"}},
	}
	out := new(discard)
	b.ReportAllocs()
	for b.Loop() {
		for _, r := range runs {
			before := processCPU()
			h.ok(h.execute(r.method, r.req, out.send))
			spent[r.name] += processCPU() - before
		}
	}
	for _, r := range runs {
		b.ReportMetric(float64(spent[r.name].Nanoseconds())/float64(b.N)/rows, r.name+"-ns/row")
	}
}

// processCPU returns the CPU time that the process has used.
func processCPU() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
