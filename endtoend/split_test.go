package endtoend_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	database "cloud.google.com/go/spanner/admin/database/apiv1"
	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// TestSplitPoints splits a table with the official clients. It checks the split points that the server lists, reads of
// the table's partitions, and the number of remote calls that a query over all splits reports.
func TestSplitPoints(t *testing.T) {
	_, c := client(t)
	ctx := context.Background()
	admin, err := database.NewDatabaseAdminClient(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	request := &databasepb.AddSplitPointsRequest{Database: name, Initiator: "test"}
	expires := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	var rows []*spanner.Mutation
	for k := range int64(40) {
		if k%10 == 0 && k > 0 {
			key := &structpb.ListValue{Values: []*structpb.Value{structpb.NewStringValue(fmt.Sprint(k))}}
			request.SplitPoints = append(request.SplitPoints, &databasepb.SplitPoints{
				Table: "T", Keys: []*databasepb.SplitPoints_Key{{KeyParts: key}}, ExpireTime: timestamppb.New(expires),
			})
		}
		rows = append(rows, spanner.Insert("T", []string{"K", "V"}, []any{k, k}))
	}
	if _, err := c.Apply(ctx, rows); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.AddSplitPoints(ctx, request); err != nil {
		t.Fatal(err)
	}

	var points []string
	err = c.Single().Query(ctx, spanner.NewStatement("SELECT INITIATOR, SPLIT_KEY, EXPIRE_TIME FROM SPANNER_SYS.USER_SPLIT_POINTS")).Do(func(r *spanner.Row) error {
		var initiator, key string
		var at time.Time
		err := r.Columns(&initiator, &key, &at)
		points = append(points, fmt.Sprint(initiator, " ", key, " ", at.Equal(expires)))
		return err
	})
	if err != nil || fmt.Sprint(points) != "[test T(10) true test T(20) true test T(30) true]" {
		t.Errorf("split points %v, %v", points, err)
	}

	snapshot, err := c.BatchReadOnlyTransaction(ctx, spanner.StrongRead())
	if err != nil {
		t.Fatal(err)
	}
	defer snapshot.Close()
	parts, err := snapshot.PartitionRead(ctx, "T", spanner.AllKeys(), []string{"K"}, spanner.PartitionOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var sizes []int
	for _, p := range parts {
		n := 0
		if err := snapshot.Execute(ctx, p).Do(func(*spanner.Row) error { n++; return nil }); err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, n)
	}
	if fmt.Sprint(sizes) != "[10 10 10 10]" {
		t.Errorf("partitions of %v rows", sizes)
	}

	it := c.Single().QueryWithStats(ctx, spanner.Statement{SQL: "SELECT V FROM T WHERE K IN UNNEST(@keys)", Params: map[string]any{"keys": []int64{3, 5, 17, 25, 39}}})
	if err := it.Do(func(*spanner.Row) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if calls := it.QueryStats["remote_server_calls"]; calls != "4" {
		t.Errorf("calls of a query over four splits: %v", calls)
	}
}
