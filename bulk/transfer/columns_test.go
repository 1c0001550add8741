package transfer_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"cloud.google.com/go/spanner"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/crowfoot-db/crowfoot/bulk"
	"github.com/crowfoot-db/crowfoot/bulk/transfer"
	"github.com/crowfoot-db/crowfoot/clienttest"
)

// dialFlight connects to the server that clienttest.Connect has started. If upload is not nil, dialFlight calls it to
// wrap each stream in which the client sends rows.
func dialFlight(t *testing.T, upload func(grpc.ClientStream) grpc.ClientStream) grpc.ClientConnInterface {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+os.Getenv("SPANNER_EMULATOR_HOST"), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, o ...grpc.CallOption) (grpc.ClientStream, error) {
			s, err := streamer(ctx, desc, cc, method, o...)
			if upload != nil && err == nil && strings.HasSuffix(method, "/DoPut") {
				s = upload(s)
			}
			return s, err
		}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// contents returns the rows of a table, as text.
func contents(t *testing.T, client *spanner.Client, table string) (rows []string) {
	t.Helper()
	err := client.Single().Query(t.Context(), spanner.NewStatement("SELECT TO_JSON(t) FROM "+table+" AS t ORDER BY K")).Do(func(r *spanner.Row) error {
		rows = append(rows, r.String())
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// everyRow has rows with values at the limits of every type, and rows with NULLs. The last two rows have the same key
// and different values.
const everyRow = `{"K":1,"B":true,"I":-9223372036854775808,"F":-0.0,"G":3.4028235e38,"N":"-99999999999999999999999999999.999999999","S":"é\u0000","Y":"AP8=","D":"0001-01-01","T":"0001-01-01T00:00:00Z","J":{"b":1.0,"a":[1,null]},"U":"4192bff0-e1e0-43ce-a4db-912808c32493","A":["x",null],"L":[1,-1]}
{"K":2,"B":false,"I":9223372036854775807,"F":"NaN","G":"-Infinity","N":"0.000000001","S":"","Y":"","D":"9999-12-31","T":"9999-12-31T23:59:59.999999999Z","J":null,"A":[],"L":[]}
{"K":3}
{"K":-4,"S":"日本","I":0,"T":"2026-11-22T10:00:00.123456789+01:00"}
{"K":5,"S":"first","I":1}
{"K":5,"S":"again"}
`

// TestColumns checks that rows that are written over Arrow Flight SQL are the same in the table as rows that are
// written as mutations. The rows have columns of every type. The test uses each Mode of an import, and tables with
// generated columns, unique indexes or a CHECK constraint. Both ways of writing must also report the same bad rows.
func TestColumns(t *testing.T) {
	columns := "K INT64, B BOOL, I INT64, F FLOAT64, G FLOAT32, N NUMERIC, S STRING(5), Y BYTES(MAX), D DATE, T TIMESTAMP, J JSON, U UUID, A ARRAY<STRING(MAX)>, L ARRAY<INT64>"
	for _, more := range []string{
		"",
		", W STRING(MAX) DEFAULT ('w'), X INT64 AS (K + I) STORED",
		", X INT64 AS (K * 2)",
		", CHECK (I < 10)",
	} {
		ddl := []string{fmt.Sprintf("CREATE TABLE M (%s%s) PRIMARY KEY (K)", columns, more), fmt.Sprintf("CREATE TABLE C (%s%s) PRIMARY KEY (K DESC)", columns, more)}
		if strings.Contains(more, "K * 2") {
			ddl = append(ddl, "CREATE UNIQUE INDEX MI ON M (S, N) STORING (D)", "CREATE UNIQUE INDEX CI ON C (S, N) STORING (D)")
		}
		client := clienttest.Connect(t, ddl...)
		path := write(t, "t.jsonl", everyRow+`{"K":6,"S":"too long"}
{"I":"x","K":7}
{"K":8,"I":11,"S":"eight"}
`)
		for _, mode := range []transfer.Mode{transfer.InsertOrUpdate, transfer.Insert, transfer.Replace} {
			var uploads atomic.Int64
			conn := dialFlight(t, func(s grpc.ClientStream) grpc.ClientStream { uploads.Add(1); return s })
			asMutations, badMutations, err := load{table: "M", rejects: 20, mode: mode, parallel: 1}.run(t.Context(), t, client, path)
			if err != nil || asMutations.Flight {
				t.Fatal(err, asMutations)
			}
			asColumns, badColumns, err := load{table: "C", rejects: 20, mode: mode, parallel: 1, flightConn: conn}.run(t.Context(), t, client, path)
			if err != nil || !asColumns.Flight || uploads.Load() == 0 {
				t.Fatalf("%v, %+v, %d uploads", err, asColumns, uploads.Load())
			}
			if asColumns.Rows != asMutations.Rows {
				t.Errorf("%s, %s: %d rows, and %d as mutations", more, mode, asColumns.Rows, asMutations.Rows)
			}
			if got, want := contents(t, client, "C"), contents(t, client, "M"); !slices.Equal(got, want) {
				t.Errorf("%s, %s: the table has\n%s\nand as mutations\n%s", more, mode, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			if got, want := reasons(badColumns, "C"), reasons(badMutations, "M"); !slices.Equal(got, want) {
				t.Errorf("%s, %s: bad rows %q, and as mutations %q", more, mode, got, want)
			}
		}
	}
}

// reasons returns, for each bad row, its line number and the beginning of the reason why it is bad. It removes the name
// of the table, so that the results for two tables can be compared.
func reasons(bad []bulk.BadRow, table string) (list []string) {
	for _, b := range bad {
		reason, _, _ := strings.Cut(b.Reason, "`")
		list = append(list, fmt.Sprintf("%d: %.12s", b.Line, strings.ReplaceAll(reason, "Table "+table, "Table")))
	}
	return list
}

// unansweredStream is a stream that uploads rows and whose answer from the server is lost.
type unansweredStream struct{ grpc.ClientStream }

func (s unansweredStream) RecvMsg(m any) error {
	if err := s.ClientStream.RecvMsg(m); err != nil {
		return err
	}
	return status.Error(codes.Unavailable, "the connection is lost")
}

// TestColumnsUnanswered checks that with the mode Insert, rows are not refused as duplicates of themselves. The server
// commits the rows, but its answer is lost, so the client loads them again. A row whose key another program has
// inserted must still be refused.
func TestColumnsUnanswered(t *testing.T) {
	client := clienttest.Connect(t, "CREATE TABLE T (K INT64, S STRING(MAX)) PRIMARY KEY (K)")
	if _, err := client.Apply(t.Context(), []*spanner.Mutation{spanner.Insert("T", []string{"K", "S"}, []any{7, "another's"})}); err != nil {
		t.Fatal(err)
	}
	unanswered := 0
	conn := dialFlight(t, func(s grpc.ClientStream) grpc.ClientStream {
		if unanswered++; unanswered < 3 {
			return unansweredStream{s}
		}
		return s
	})
	for _, c := range []struct {
		rows string
		want int64
		bad  int
	}{{"K,S\n1,a\n2,b\n", 2, 0}, {"K,S\n7,x\n8,y\n", 1, 1}} {
		result, bad, err := load{table: "T", rejects: 10, mode: transfer.Insert, flightConn: conn}.run(t.Context(), t, client, write(t, "t.csv", c.rows))
		if err != nil || result.Rows != c.want || len(bad) != c.bad {
			t.Errorf("%+v, %v, %v", result, bad, err)
		}
	}
	if unanswered < 3 {
		t.Errorf("%d uploads", unanswered)
	}
}

// TestColumnsInManyCommits checks that the server has written none of the rows of a load when it refuses the load.
// Otherwise, when the client sends the rows again as mutations, they would be refused as duplicates of themselves. The
// table has so many indexes that the server would divide the load into several commits if the client did not ask for
// one commit. The last row has the key of another row, so the server refuses the load.
func TestColumnsInManyCommits(t *testing.T) {
	ddl := []string{"CREATE TABLE T (K INT64, A INT64 DEFAULT (1)) PRIMARY KEY (K)"}
	for i := range 40 {
		ddl = append(ddl, fmt.Sprintf("CREATE INDEX I%d ON T (A)", i))
	}
	client := clienttest.Connect(t, ddl...)
	var text strings.Builder
	text.WriteString("K\n")
	for k := range 1200 {
		fmt.Fprintln(&text, k)
	}
	text.WriteString("1199\n")
	result, bad, err := load{table: "T", rejects: 10, mode: transfer.Insert, flightConn: dialFlight(t, nil)}.run(t.Context(), t, client, write(t, "t.csv", text.String()))
	if err != nil || !result.Flight || result.Rows != 1200 || len(bad) != 1 {
		t.Errorf("%+v, %.300v, %v", result, bad, err)
	}
}

// TestNotCrowfoot checks that rows are sent as mutations if the server does not support Flight SQL.
func TestNotCrowfoot(t *testing.T) {
	client := clienttest.Connect(t, "CREATE TABLE T (K INT64) PRIMARY KEY (K)")
	conn, err := grpc.NewClient("passthrough:///"+os.Getenv("SPANNER_EMULATOR_HOST"), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithUnaryInterceptor(func(context.Context, string, any, any, *grpc.ClientConn, grpc.UnaryInvoker, ...grpc.CallOption) error {
			return status.Error(codes.Unimplemented, "unknown service arrow.flight.protocol.FlightService")
		}))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	result, _, err := load{table: "T", flightConn: conn}.run(t.Context(), t, client, write(t, "t.csv", "K\n1\n2\n"))
	if err != nil || result.Flight || result.Rows != 2 {
		t.Errorf("%+v, %v", result, err)
	}
}
