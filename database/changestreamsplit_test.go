package database

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/crowfoot-db/crowfoot/changestream"
	"github.com/crowfoot-db/crowfoot/database/split"
	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// livingPartitions returns the number of partitions of a stream that are open now.
func livingPartitions(a *aged, stream string) (n int) {
	a.t.Helper()
	now := a.oracle.Now()
	r, err := a.db.streams.Read(context.Background(), changestream.Query{Stream: a.db.Catalog().ChangeStream(stream), Start: now, End: mvcc.Latest, Heartbeat: time.Second})
	if err != nil {
		a.t.Fatal(err)
	}
	for {
		ok, err := r.Next()
		if err != nil {
			a.t.Fatal(err)
		}
		if !ok {
			return n
		}
		v := new(structpb.Value)
		if err := proto.Unmarshal(r.Record(), v); err != nil {
			a.t.Fatal(err)
		}
		lists := v.GetListValue().Values[0].GetListValue().Values
		for _, record := range lists[2].GetListValue().Values {
			n += len(record.GetListValue().Values[2].GetListValue().Values)
		}
	}
}

// TestPartitionsFollowSplits checks that a stream has one partition for each split of the tables that it watches. The
// number must stay right when split points are added and expire, when a stream is created or altered, and when a table
// is dropped.
func TestPartitionsFollowSplits(t *testing.T) {
	a := newAged(t, "CREATE TABLE T (K INT64) PRIMARY KEY (K)", "CREATE TABLE U (K INT64) PRIMARY KEY (K)", "CREATE CHANGE STREAM S FOR T")
	want := func(when, stream string, n int) {
		t.Helper()
		if got := livingPartitions(a, stream); got != n {
			t.Errorf("%s: %d partitions of %s, want %d", when, got, stream, n)
		}
	}
	point := func(table string, k int64, lives time.Duration) split.Point {
		return split.Point{Table: a.db.Catalog().Table(table), Key: []value.Value{value.OfInt64(k)}, Expires: a.clock().Add(lives)}
	}
	alter := func(statements ...string) {
		t.Helper()
		if err := a.db.UpdateSchema(context.Background(), statements, nil); err != nil {
			t.Fatal(err)
		}
	}
	want("at first", "S", 1)
	if err := a.db.AddSplitPoints([]split.Point{point("T", 10, time.Hour), point("T", 20, 2*time.Hour), point("U", 10, 3*time.Hour)}); err != nil {
		t.Fatal(err)
	}
	want("with two points of T", "S", 3)
	alter("CREATE CHANGE STREAM Every FOR ALL")
	want("made behind the points", "Every", 4)
	alter("ALTER CHANGE STREAM S SET FOR U")
	want("altered", "S", 2)
	alter("ALTER CHANGE STREAM S SET FOR T")
	a.now.Add((90 * time.Minute).Microseconds())
	a.splitOnce(context.Background())
	want("a point has expired", "S", 2)
	alter("DROP CHANGE STREAM S", "DROP TABLE T")
	want("a table is gone", "Every", 2)
	if _, err := a.db.streams.Read(context.Background(), changestream.Query{Stream: a.db.Catalog().ChangeStream("Every")}); usererror.CodeOf(err) != codes.OutOfRange {
		t.Errorf("before the stream was made: %v", err)
	}
}

// TestSizeBoundsSurvive checks that partitions that were split because of the size of their table stay apart when the
// schema changes after a restart, although nothing has measured the table's size since the restart.
func TestSizeBoundsSurvive(t *testing.T) {
	a := newAged(t, "CREATE TABLE T (K INT64) PRIMARY KEY (K)", "CREATE CHANGE STREAM S FOR T")
	layout := table.TableLayout(a.db.Catalog().Table("T"))
	middle := layout.AppendKey(nil, []value.Value{value.OfInt64(10)})
	// Reshape splits the stream's partition as if the table had grown large.
	if err := a.db.streams.Reshape(a.db.Catalog().ChangeStream("S").ID, func() [][]byte { return [][]byte{middle} }); err != nil {
		t.Fatal(err)
	}
	a.reopenOn(a.store)
	if err := a.db.UpdateSchema(context.Background(), []string{"CREATE TABLE U (K INT64) PRIMARY KEY (K)"}, nil); err != nil {
		t.Fatal(err)
	}
	if n := livingPartitions(a, "S"); n != 2 {
		t.Errorf("%d partitions after a schema change, want 2", n)
	}
	a.splitOnce(context.Background())
	if n := livingPartitions(a, "S"); n != 1 {
		t.Errorf("%d partitions of a table that is not large, want 1", n)
	}
}

// TestStreamsOfDroppedDatabase checks that the store keeps no records of a dropped stream, nor of the streams of a
// dropped database.
func TestStreamsOfDroppedDatabase(t *testing.T) {
	b := create(t, "CREATE TABLE T (K INT64, V INT64) PRIMARY KEY (K)", "CREATE CHANGE STREAM S FOR T", "CREATE CHANGE STREAM U FOR T")
	if err := b.insert("T", [2]int64{1, 1}); err != nil {
		t.Fatal(err)
	}
	kept := records(t, b.store, "changestream/")
	b.alter("DROP CHANGE STREAM U")
	if left := records(t, b.store, "changestream/"); 2*left != kept || left == 0 {
		t.Errorf("of %d keys of two streams one has %d", kept, left)
	}
	if err := dropDatabase(b.Registry); err != nil {
		t.Fatal(err)
	}
	if left := records(t, b.store, "changestream/"); left != 0 {
		t.Errorf("%d keys are left", left)
	}
}
