package bulk_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"cloud.google.com/go/spanner"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/crowfoot-db/crowfoot"
	"github.com/crowfoot-db/crowfoot/arrowtype"
	"github.com/crowfoot-db/crowfoot/bulk"
)

const flightDatabase = "projects/p/instances/i/databases/d"

var flightDDL = `CREATE TABLE Every (Id INT64 NOT NULL, Flag BOOL, Single FLOAT32, Double FLOAT64 NOT NULL, Price NUMERIC, Name STRING(25), Data BYTES(MAX), Day DATE,
	Doc JSON, Uid UUID, Tags ARRAY<STRING(MAX)>, Ids ARRAY<UUID>, Upper STRING(MAX) AS (UPPER(Name))) PRIMARY KEY (Id);
CREATE TABLE Stamped (Id INT64 NOT NULL, Stamp TIMESTAMP) PRIMARY KEY (Id)`

const flightRows = 12_000

// flightServer starts a server whose database has rows, takes a snapshot, and then changes the rows.
func flightServer(t *testing.T) (*bulk.Snapshot, context.Context) {
	t.Helper()
	crowfoot.ForTest(t, flightDatabase, strings.Split(flightDDL, ";\n")...)
	ctx := t.Context()
	client, err := spanner.NewClientWithConfig(ctx, flightDatabase, spanner.ClientConfig{DisableNativeMetrics: true})
	check(err)
	t.Cleanup(client.Close)
	write := func(sql string) {
		_, err := client.ReadWriteTransaction(ctx, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
			_, err := tx.Update(ctx, spanner.NewStatement(sql))
			return err
		})
		check(err)
	}
	for from := 0; from < flightRows; from += 4000 {
		write(fmt.Sprintf(`INSERT INTO Every (Id, Flag, Single, Double, Price, Name, Data, Day, Doc, Uid, Tags, Ids)
			SELECT n, IF(MOD(n, 3) = 0, NULL, MOD(n, 2) = 0), CAST(n AS FLOAT32), n / 7, n, CONCAT('name ', CAST(n AS STRING)), IF(MOD(n, 5) = 0, NULL, b'\x00\xff'), DATE_FROM_UNIX_DATE(n), JSON '{"a": 1}',
			CAST(FORMAT('00112233-4455-6677-8899-%%012d', n) AS UUID), ['x', NULL], IF(MOD(n, 2) = 0, NULL, [CAST('00112233-4455-6677-8899-aabbccddeeff' AS UUID)])
			FROM UNNEST(GENERATE_ARRAY(%d, %d)) n`, from, from+3999))
	}
	write("INSERT INTO Stamped (Id, Stamp) VALUES (1, '1999-12-31T23:59:59.123456789Z'), (2, NULL)")
	snapshot, err := bulk.NewSnapshot(ctx, client, spanner.StrongRead())
	check(err)
	t.Cleanup(snapshot.Close)
	write("UPDATE Every SET Name = 'later' WHERE TRUE")
	return snapshot, ctx
}

// dialFlight connects to the server. intercept is called for each stream.
func dialFlight(t *testing.T, intercept grpc.StreamClientInterceptor) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+os.Getenv("SPANNER_EMULATOR_HOST"), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithStreamInterceptor(intercept))
	check(err)
	t.Cleanup(func() { conn.Close() })
	return conn
}

// texts returns the rows of the partitions, each as a line of JSON.
func texts(ctx context.Context, t *testing.T, of *bulk.Rows, partitions []*spanner.Partition) (lines []string) {
	t.Helper()
	for i, p := range partitions {
		check(bulk.EachOf(ctx, of.Partition(p, fmt.Sprint("partition ", i)), func(batch arrow.RecordBatch, _ bulk.Reader) error {
			if batch.NumRows() > bulk.BatchRows || !batch.Schema().Equal(of.Schema()) {
				t.Fatalf("a batch of %d rows of %s", batch.NumRows(), batch.Schema())
			}
			text, err := batch.MarshalJSON()
			for line := range bytes.SplitSeq(bytes.Trim(text, "[]\n"), []byte("\n,")) {
				lines = append(lines, string(line))
			}
			return err
		}))
	}
	return lines
}

// TestFlightRows checks that for tables and queries, Flight SQL returns the same rows as the official client, for each
// value of Options.Timestamps. If a stream breaks, the reader must continue after the rows that it has received. Rows
// with types that Flight SQL does not support must be read by the official client.
func TestFlightRows(t *testing.T) {
	snapshot, ctx := flightServer(t)
	var streams, broken atomic.Int64
	conn := dialFlight(t, func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		s, err := streamer(ctx, desc, cc, method, opts...)
		if n := streams.Add(1); n == 2 {
			return &breakingStream{s, 3, &broken}, err
		}
		return s, err
	})
	table := func(name string, o bulk.Options) *bulk.Rows {
		rows, err := snapshot.Table(ctx, name, o)
		check(err)
		return rows
	}
	query, err := snapshot.Query(ctx, spanner.NewStatement("SELECT Name, Id * 2 AS Twice FROM Every WHERE MOD(Id, 3) = 0"), bulk.Options{})
	check(err)
	sources := []struct {
		rows *bulk.Rows
		want int64 // number of Flight SQL streams: one for each partition, and one more if a stream breaks
	}{
		{table("Every", bulk.Options{}), 4},
		{table("Every", bulk.Options{Timestamps: arrowtype.Text, Columns: []string{"Upper", "Id"}}), 3},
		{table("Stamped", bulk.Options{}), 1},
		{table("Stamped", bulk.Options{Timestamps: arrowtype.Microseconds}), 1},
		{table("Stamped", bulk.Options{Timestamps: arrowtype.Text}), 0},
		{query, 3},
	}
	var partitions [][]*spanner.Partition
	var want [][]string
	for _, s := range sources {
		p, err := s.rows.Partitions(ctx, 3)
		check(err)
		partitions, want = append(partitions, p), append(want, texts(ctx, t, s.rows, p))
	}
	snapshot.UseFlight(conn)
	for i, s := range sources {
		before := streams.Load()
		got := texts(ctx, t, s.rows, partitions[i])
		if strings.Join(got, "\n") != strings.Join(want[i], "\n") {
			t.Errorf("source %d: %d rows, %d by the client", i, len(got), len(want[i]))
		}
		if n := streams.Load() - before; n != s.want {
			t.Errorf("source %d: %d streams of Flight SQL, want %d", i, n, s.want)
		}
	}
	if broken.Load() != 1 {
		t.Errorf("%d streams broke", broken.Load())
	}
}

// breakingStream is a stream that fails after some messages, as if the network broke.
type breakingStream struct {
	grpc.ClientStream
	left   int
	broken *atomic.Int64
}

func (s *breakingStream) RecvMsg(m any) error {
	if _, ok := m.(*flight.FlightData); ok {
		if s.left--; s.left < 0 {
			s.broken.Add(1)
			return status.Error(codes.Unavailable, "the network is gone")
		}
	}
	return s.ClientStream.RecvMsg(m)
}

// TestWithoutFlight checks that the official client reads the rows if the server does not support Flight SQL.
func TestWithoutFlight(t *testing.T) {
	snapshot, ctx := flightServer(t)
	conn, err := grpc.NewClient("passthrough:///"+os.Getenv("SPANNER_EMULATOR_HOST"), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithUnaryInterceptor(func(context.Context, string, any, any, *grpc.ClientConn, grpc.UnaryInvoker, ...grpc.CallOption) error {
			return status.Error(codes.Unimplemented, "unknown service arrow.flight.protocol.FlightService")
		}))
	check(err)
	defer conn.Close()
	snapshot.UseFlight(conn)
	rows, err := snapshot.Table(ctx, "Every", bulk.Options{})
	check(err)
	partitions, err := rows.Partitions(ctx, 1)
	check(err)
	if n := len(texts(ctx, t, rows, partitions)); n != flightRows {
		t.Errorf("%d rows", n)
	}
}
