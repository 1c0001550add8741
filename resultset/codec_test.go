package resultset_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"

	"cloud.google.com/go/spanner"
	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/api/iterator"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/crowfoot-db/crowfoot"
	"github.com/crowfoot-db/crowfoot/resultset"
)

// TestContentType checks that requests have the content type of the official clients, the only one that Google's
// servers accept.
func TestContentType(t *testing.T) {
	types := make(chan []string, 1)
	server := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, s grpc.ServerStream) error {
		md, _ := metadata.FromIncomingContext(s.Context())
		types <- md.Get("content-type")
		request := new(spannerpb.ExecuteSqlRequest)
		if err := s.RecvMsg(request); err != nil {
			return err
		}
		return s.SendMsg(&spannerpb.PartialResultSet{Values: []*structpb.Value{structpb.NewStringValue(request.GetSql())}})
	}))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)
	c, err := grpc.NewClient("passthrough:///"+l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(resultset.NewCodec())))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	got := new(spannerpb.PartialResultSet)
	if err := c.Invoke(context.Background(), "/any/Method", &spannerpb.ExecuteSqlRequest{Sql: "SELECT 1"}, got); err != nil {
		t.Fatal(err)
	}
	if list := <-types; len(list) != 1 || list[0] != "application/grpc" {
		t.Errorf("the content type is %q", list)
	}
	if text := got.GetValues()[0].GetStringValue(); text != "SELECT 1" {
		t.Errorf("received %v", got)
	}
}

const database = "projects/p/instances/i/databases/d"

// TestOfficialClient checks that the official client reads, writes and runs transactions with ClientOption in the same
// way as without. It reads rows of all kinds, and values that are split over several messages.
func TestOfficialClient(t *testing.T) {
	crowfoot.ForTest(t, database, "CREATE TABLE T (Id INT64, Text STRING(MAX), List ARRAY<STRING(MAX)>, Number FLOAT64, Flag BOOL) PRIMARY KEY (Id)")
	ctx := context.Background()
	c, err := spanner.NewClientWithConfig(ctx, database, spanner.ClientConfig{}, resultset.ClientOption())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	plain, err := spanner.NewClientWithConfig(ctx, database, spanner.ClientConfig{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(plain.Close)
	_, err = c.ReadWriteTransaction(ctx, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		for i := range 50 {
			long := strings.Repeat("日本", i*1000)
			list := []string{}
			for j := range i * 20 {
				list = append(list, strings.Repeat("x", j))
			}
			m := spanner.InsertOrUpdate("T", []string{"Id", "Text", "List", "Number", "Flag"}, []any{i, long, list, float64(i) / 3, i%2 == 0})
			if err := tx.BufferWrite([]*spanner.Mutation{m}); err != nil {
				return err
			}
		}
		_, err := tx.Update(ctx, spanner.NewStatement("INSERT INTO T (Id) VALUES (100)"))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{
		"SELECT * FROM T ORDER BY Id",
		"SELECT ARRAY(SELECT AS STRUCT * FROM T ORDER BY Id) AS R, [STRUCT(NULL AS A, [TRUE] AS B)] AS S, CAST([] AS ARRAY<INT64>) AS Nothing",
		"SELECT IEEE_DIVIDE(Id, 0), ARRAY(SELECT Text FROM T AS U WHERE U.Id <= T.Id ORDER BY U.Id) FROM T WHERE Id < 40",
		"SELECT Id FROM T WHERE FALSE",
	} {
		got, want := rows(t, c, sql), rows(t, plain, sql)
		if len(got) != len(want) {
			t.Fatalf("%s: %d values, want %d", sql, len(got), len(want))
		}
		for i := range got {
			if !proto.Equal(got[i], want[i]) {
				t.Errorf("%s: value %d is %.100v, want %.100v", sql, i, got[i], want[i])
			}
		}
	}
	if _, err := c.Single().ReadRow(ctx, "T", spanner.Key{7}, []string{"Missing"}); fmt.Sprint(spanner.ErrCode(err)) != "NotFound" {
		t.Errorf("a column that does not exist: %v", err)
	}
}

func rows(t *testing.T, c *spanner.Client, sql string) (list []*structpb.Value) {
	t.Helper()
	it := c.Single().Query(context.Background(), spanner.NewStatement(sql))
	defer it.Stop()
	for {
		row, err := it.Next()
		if err == iterator.Done {
			return list
		}
		if err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
		for i := range row.Size() {
			list = append(list, row.ColumnValue(i))
		}
	}
}
