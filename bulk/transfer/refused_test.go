package transfer_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"cloud.google.com/go/spanner"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/crowfoot-db/crowfoot/bulk/transfer"
	"github.com/crowfoot-db/crowfoot/clienttest"
)

// commits returns a client that calls through(commit) when it is to commit. The argument commit is a function that
// sends the commit to the server.
func commits(t *testing.T, through func(commit func() error) error) *spanner.Client {
	t.Helper()
	intercept := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, o ...grpc.CallOption) error {
		call := func() error { return invoke(ctx, method, req, reply, cc, o...) }
		if strings.HasSuffix(method, "/Commit") {
			return through(call)
		}
		return call()
	}
	config := spanner.ClientConfig{DisableNativeMetrics: true, CallOptions: transfer.CallOptions()}
	client, err := spanner.NewClientWithConfig(t.Context(), clienttest.Database, config, option.WithGRPCDialOption(grpc.WithUnaryInterceptor(intercept)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// TestUnanswered checks that with the mode Insert, rows are not refused as duplicates of themselves. The server commits
// the rows, but its answer is lost, so the client sends them again. A row whose key another program has inserted must
// still be refused. The rows have values of every type.
func TestUnanswered(t *testing.T) {
	clienttest.Connect(t, `CREATE TABLE T (I INT64, S STRING(MAX), B BOOL, F FLOAT64, G FLOAT32, N NUMERIC, D DATE, T TIMESTAMP, J JSON, U UUID, Y BYTES(MAX), A ARRAY<FLOAT64>)
PRIMARY KEY (I, S DESC, B, F, N, D, T, Y)`)
	unanswered := 0
	client := commits(t, func(commit func() error) error {
		err := commit()
		if unanswered++; err == nil && unanswered < 3 {
			return status.Error(codes.Unavailable, "the connection is lost")
		}
		return err
	})
	another := spanner.Insert("T", []string{"I", "S", "B", "F", "N", "D", "T", "Y", "G"}, []any{int64(7), "", false, 0.5, spanner.NullNumeric{}, spanner.NullDate{}, spanner.NullTime{}, []byte(nil), float32(1)})
	if _, err := client.Apply(t.Context(), []*spanner.Mutation{another}, spanner.ApplyAtLeastOnce()); status.Code(err) != codes.Unavailable {
		t.Fatal(err)
	}
	path := write(t, "t.jsonl", `{"I":"007","S":"é","B":true,"F":-0.0,"G":0.1,"N":"1.50","D":"2026-11-22","T":"2026-11-22T10:00:00+01:00","J":{"b":1.0,"a":[1,null]},"U":"4192BFF0E1E043CEA4DB912808C32493","Y":"AP8=","A":["NaN",null,0.1]}
{"I":1,"F":"NaN"}
{}
{"I":7,"S":"","B":false,"F":0.5,"G":2}
`)
	result, bad, err := load{table: "T", rejects: 10, mode: transfer.Insert}.run(t.Context(), t, client, path)
	if err != nil || result.Rows != 3 || len(bad) != 1 || bad[0].Line != 4 || !strings.Contains(bad[0].Reason, "already exists") {
		t.Errorf("%+v, %v, %v", result, bad, err)
	}
}

// TestTableGone checks that an import ends with an error that names the reason if its table is dropped, or loses a
// column that the import writes. If the table gets a new column with a DEFAULT, the import must continue. No row may be
// reported as bad.
func TestTableGone(t *testing.T) {
	for ddl, want := range map[string]string{
		"DROP TABLE customer":                                          "the database has no table customer",
		"ALTER TABLE customer DROP COLUMN c_comment":                   "table customer was altered during the import: it had c_comment STRING(117) NOT NULL",
		"ALTER TABLE customer ADD COLUMN x INT64 NOT NULL DEFAULT (1)": "",
	} {
		clienttest.Connect(t, customerDDL)
		var first atomic.Bool
		client := commits(t, func(commit func() error) error {
			if first.CompareAndSwap(false, true) {
				clienttest.Alter(t, ddl)
			}
			return commit()
		})
		_, bad, err := load{table: "customer", rejects: 1e6, parallel: 1}.run(t.Context(), t, client, customers(t, 20_000))
		if want == "" && err != nil || want != "" && !strings.Contains(fmt.Sprint(err), want) || len(bad) > 0 {
			t.Errorf("%s: %v, %d bad rows", ddl, err, len(bad))
		}
	}
}
