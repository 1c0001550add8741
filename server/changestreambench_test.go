package server

import (
	"encoding/base64"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/cockroachdb/pebble/v2/vfs"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// singersTable creates the same table that the benchmark in package bench/watchers creates.
const singersTable = `CREATE TABLE Singers (SingerId INT64 NOT NULL, FirstName STRING(200), LastName STRING(200) NOT NULL, BirthDate DATE, Picture BYTES(MAX),
	LastUpdated TIMESTAMP OPTIONS (allow_commit_timestamp=true), Processed BOOL,
	ShardId INT64 AS (CASE WHEN Processed THEN NULL ELSE MOD(FARM_FINGERPRINT(COALESCE(FirstName || ' ', '') || LastName), 19) END) STORED) PRIMARY KEY (SingerId)`

const singersIndex = "CREATE NULL_FILTERED INDEX Idx ON Singers (ShardId, LastUpdated)"

const singersRows = 200 // rows per commit

// BenchmarkWatchedWrites measures commits of 200 rows, on disk but without gRPC, on a table with and without a change
// stream. cpu-us/row is the CPU time of the process per row, including flushes and compactions of the store and garbage
// collection. ratio is the cpu-us/row with a change stream divided by that without one.
func BenchmarkWatchedWrites(b *testing.B) {
	var alone float64
	for _, c := range []struct{ name, stream string }{{"no stream", ""}, {"one stream", "CREATE CHANGE STREAM S FOR Singers"}} {
		b.Run(c.name, func(b *testing.B) {
			schema := []string{singersTable, singersIndex}
			if c.stream != "" {
				schema = append(schema, c.stream)
			}
			h := newHarnessIn(b, vfs.Default, b.TempDir(), Config{Clock: time.Now, Log: slog.New(slog.DiscardHandler)}, schema)
			ses := h.session(true)
			var messages [][]byte
			for n := range 32 {
				message, err := proto.Marshal(singleUse(ses, singersOf(rand.New(rand.NewPCG(1, uint64(n))))...))
				h.ok(err)
				messages = append(messages, message)
			}
			began, number := processTime(b), 0
			for b.Loop() {
				req := new(spannerpb.CommitRequest)
				h.ok(proto.Unmarshal(messages[number/singersRows%len(messages)], req))
				for _, m := range req.Mutations { // gives each row a new key, far from the key before it
					key := uint64(number) * 0x9E3779B97F4A7C15 >> 1
					m.GetInsertOrUpdate().Values[0].Values[0] = structpb.NewStringValue(fmt.Sprint(key))
					number++
				}
				h.ok(h.stream("Commit", req, nil))
			}
			cpu := processTime(b) - began
			perRow := float64(cpu.Nanoseconds()) / 1000 / float64(number)
			b.ReportMetric(perRow, "cpu-us/row")
			if c.stream == "" {
				alone = perRow
			} else {
				b.ReportMetric(perRow/alone, "ratio")
			}
		})
	}
}

// singersOf returns inserts of random rows. As in requests of the official clients, each row is a mutation of its own.
func singersOf(random *rand.Rand) (list []*spannerpb.Mutation) {
	text := func(size int) string {
		b := make([]byte, size)
		for i := range b {
			b[i] = byte(random.Uint32())
		}
		return base64.StdEncoding.EncodeToString(b)
	}
	columns := []string{"SingerId", "FirstName", "LastName", "BirthDate", "Picture", "Processed", "LastUpdated"}
	for range singersRows {
		row := &structpb.ListValue{Values: []*structpb.Value{
			structpb.NewStringValue("0"), structpb.NewStringValue(text(8)), structpb.NewStringValue(text(8)),
			structpb.NewStringValue("1970-02-03"), structpb.NewStringValue(text(random.IntN(1024))), structpb.NewBoolValue(false), structpb.NewStringValue("spanner.commit_timestamp()"),
		}}
		list = append(list, &spannerpb.Mutation{Operation: &spannerpb.Mutation_InsertOrUpdate{
			InsertOrUpdate: &spannerpb.Mutation_Write{Table: "Singers", Columns: columns, Values: []*structpb.ListValue{row}},
		}})
	}
	return list
}

// processTime returns the CPU time that the process has used.
func processTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
