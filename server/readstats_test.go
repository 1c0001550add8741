package server

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/civil"
	"cloud.google.com/go/spanner"
	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/server/rpc"
)

// TestReadStats checks every column of the statistics of reads, in the TOP and the TOTAL table.
func TestReadStats(t *testing.T) {
	x := newTraffic(t)
	_, err := x.client.Apply(x.ctx, []*spanner.Mutation{
		spanner.Insert("Singers", []string{"SingerId", "Name", "Born", "Photo"}, []any{1, "é", civil.Date{Year: 2000, Month: 1, Day: 1}, make([]byte, 10)}),
		spanner.Insert("Singers", []string{"SingerId", "Name"}, []any{2, "bb"}),
		spanner.Insert("Singers", []string{"SingerId"}, []any{3}),
	})
	x.ok(err)
	x.minute()
	// A read of an existing key, a range and a missing key counts as one execution. The rows that it returns have three
	// INT64 values, an é of 2 bytes, two other letters, a DATE, and 10 bytes of BYTES.
	all := []string{"SingerId", "Name", "Born", "Photo"}
	keys := spanner.KeySets(spanner.Key{1}, spanner.KeyRange{Start: spanner.Key{2}, End: spanner.Key{3}, Kind: spanner.ClosedClosed}, spanner.Key{9})
	for range 2 {
		x.rows(3, x.client.Single().Read(x.ctx, "Singers", keys, all))
	}
	// The statistics count this read with the others, because they ignore the order of the columns.
	x.rows(1, x.client.Single().Read(x.ctx, "Singers", spanner.Key{3}, []string{"Born", "Name", "SingerId", "Photo"}))
	x.rows(3, x.client.Single().ReadUsingIndex(x.ctx, "Singers", "SingersByName", spanner.AllKeys(), []string{"Name", "Born"}))
	_, err = x.client.Single().ReadRow(x.ctx, "Singers", spanner.Key{9}, []string{"SingerId"})
	x.fails(err, codes.NotFound) // only the client sees an error, because it wants a row: the read itself succeeds
	_, err = x.client.ReadWriteTransaction(x.ctx, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		_, err := drain(tx.Read(ctx, "Singers", spanner.Key{2}, []string{"Name"}))
		return err
	})
	x.ok(err)
	x.minute()
	const end = "2030-01-02T03:06:00Z"
	x.shows(`SELECT INTERVAL_END, ARRAY_TO_STRING(READ_COLUMNS, ','), EXECUTION_COUNT, AVG_ROWS * EXECUTION_COUNT, AVG_BYTES * EXECUTION_COUNT, AVG_CPU_SECONDS > 0,
		AVG_LOCKING_DELAY_SECONDS, AVG_CLIENT_WAIT_SECONDS, AVG_LEADER_REFRESH_DELAY_SECONDS, REQUEST_TAG, RUN_IN_RW_TRANSACTION_EXECUTION_COUNT, READ_TYPE,
		AVG_DISK_IO_COST FROM SPANNER_SYS.READ_STATS_TOP_MINUTE ORDER BY 2`,
		end+"|Singers.Born,Singers.Name,Singers.Photo,Singers._exists|3|7|92|true|0|0|0||0|READ|0",
		end+"|Singers.Name|1|1|2|true|0|0|0||1|READ|0",
		end+"|Singers._exists|1|0|0|true|0|0|0||0|READ|0",
		end+"|SingersByName.Born,SingersByName.Name|1|3|8|true|0|0|0||0|READ|0")
	x.shows(`SELECT INTERVAL_END, EXECUTION_COUNT, AVG_ROWS * EXECUTION_COUNT, AVG_BYTES * EXECUTION_COUNT, RUN_IN_RW_TRANSACTION_EXECUTION_COUNT, AVG_CPU_SECONDS > 0,
		AVG_LOCKING_DELAY_SECONDS, AVG_CLIENT_WAIT_SECONDS FROM SPANNER_SYS.READ_STATS_TOTAL_MINUTE`, end+"|6|11|102|1|true|0|0")
	x.shows(`SELECT a.FPRINT = b.FPRINT FROM SPANNER_SYS.READ_STATS_TOP_MINUTE a, SPANNER_SYS.READ_STATS_TOP_MINUTE b
		WHERE a.READ_COLUMNS[OFFSET(0)] < b.READ_COLUMNS[OFFSET(0)]`, "false", "false", "false", "false", "false", "false")
	x.forward(time.Hour)
	x.shows(`SELECT INTERVAL_END, EXECUTION_COUNT FROM SPANNER_SYS.READ_STATS_TOTAL_10MINUTE`, "2030-01-02T03:10:00Z|6")
	x.shows(`SELECT INTERVAL_END, EXECUTION_COUNT FROM SPANNER_SYS.READ_STATS_TOTAL_HOUR`, "2030-01-02T04:00:00Z|6")
}

// TestClientWait: statistics show how long the messages of a reply waited for the client. The first message does not
// wait, because it always fits into the client's window.
func TestClientWait(t *testing.T) {
	x := newTraffic(t)
	var muts []*spanner.Mutation
	for k := range 8 {
		muts = append(muts, spanner.Insert("Plain", []string{"K", "V"}, []any{k, strings.Repeat("v", 1<<20)}))
	}
	_, err := x.client.Apply(x.ctx, muts)
	x.ok(err)
	messages := 0
	x.ok(x.stream("StreamingRead", &spannerpb.ReadRequest{Session: x.session, Table: "Plain", Columns: []string{"V"}, KeySet: allKeys()}, func(m any) error {
		messages++
		x.clock.forward(time.Second)
		m.(*rpc.Frame).Release()
		return nil
	}))
	x.minute()
	x.shows(`SELECT EXECUTION_COUNT, AVG_ROWS, AVG_BYTES, CAST(AVG_CLIENT_WAIT_SECONDS AS INT64) FROM SPANNER_SYS.READ_STATS_TOP_MINUTE`,
		fmt.Sprintf("1|8|8388608|%d", messages-1))
}

// TestSystemTablesAreReadOnly: statistics can be read only by SQL, and not in a read-write transaction.
func TestSystemTablesAreReadOnly(t *testing.T) {
	x := newTraffic(t)
	const table = "SPANNER_SYS.QUERY_STATS_TOP_MINUTE"
	_, err := x.client.ReadWriteTransaction(x.ctx, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		_, err := drain(tx.Query(ctx, spanner.NewStatement("SELECT * FROM "+table)))
		return err
	})
	x.fails(err, codes.InvalidArgument)
	if !strings.Contains(err.Error(), "Unsupported concurrency mode in query using INFORMATION_SCHEMA or SPANNER_SYS") {
		t.Error(err)
	}
	_, err = drain(x.client.Single().Read(x.ctx, table, spanner.AllKeys(), []string{"TEXT"}))
	x.fails(err, codes.NotFound)
	_, err = x.client.Apply(x.ctx, []*spanner.Mutation{spanner.Insert(table, []string{"TEXT"}, []any{"x"})})
	x.fails(err, codes.NotFound)
	_, err = x.client.ReadWriteTransaction(x.ctx, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		_, err := tx.Update(ctx, spanner.NewStatement("DELETE FROM "+table+" WHERE TRUE"))
		return err
	})
	x.fails(err, codes.InvalidArgument)
	ro := x.client.ReadOnlyTransaction()
	defer ro.Close()
	x.rows(0, ro.Query(x.ctx, spanner.NewStatement("SELECT * FROM "+table)))
	x.rows(0, x.client.Single().WithTimestampBound(spanner.ExactStaleness(time.Millisecond)).Query(x.ctx, spanner.NewStatement("SELECT * FROM "+table)))
}
