package server

import (
	"fmt"
	"testing"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/crowfoot-db/crowfoot/server/result/resulttest"
)

func TestPartitions(t *testing.T) {
	h := newHarness(t)
	ses := h.session(true)
	var rows []*structpb.ListValue
	for i := range 500 {
		rows = append(rows, list(fmt.Sprint(i), fmt.Sprintf("name %d", i)))
	}
	h.insert(ses, rows...)
	id := h.begin(ses, readOnly())
	h.insert(ses, list("501", "too late"))

	read := &spannerpb.PartitionReadRequest{Session: ses, Transaction: byID(id), Table: "Singers", Columns: []string{"SingerId"}, KeySet: allKeys()}
	reads, err := h.data.PartitionRead(h.ctx, read)
	h.ok(err)
	seen := map[string]int{}
	for _, p := range reads.Partitions {
		got := h.partial(h.data.StreamingRead(h.ctx, &spannerpb.ReadRequest{
			Session: ses, Transaction: byID(id), Table: "Singers", Columns: []string{"SingerId"}, KeySet: allKeys(),
			PartitionToken: p.PartitionToken, DataBoostEnabled: true,
		}))
		for _, v := range resulttest.Assemble(got) {
			seen[v.GetStringValue()]++
		}
	}
	wantOnce(t, "PartitionRead", seen, len(rows))
	if len(reads.Partitions) < 2 {
		t.Errorf("want several partitions, got %d", len(reads.Partitions))
	}

	sql := "SELECT SingerId FROM Singers WHERE SingerId >= @from"
	queries, err := h.data.PartitionQuery(h.ctx, &spannerpb.PartitionQueryRequest{Session: ses, Transaction: byID(id), Sql: sql, Params: structOf("from", "100")})
	h.ok(err)
	clear(seen)
	for _, p := range queries.Partitions {
		got := h.partial(h.data.ExecuteStreamingSql(h.ctx, &spannerpb.ExecuteSqlRequest{
			Session: ses, Transaction: byID(id), Sql: sql, Params: structOf("from", "100"), PartitionToken: p.PartitionToken,
		}))
		for _, v := range resulttest.Assemble(got) {
			seen[v.GetStringValue()]++
		}
	}
	wantOnce(t, "PartitionQuery", seen, 400)

	token := reads.Partitions[0].PartitionToken
	for name, req := range map[string]*spannerpb.ReadRequest{
		"columns":     {Session: ses, Transaction: byID(id), Table: "Singers", Columns: []string{"Name"}, KeySet: allKeys(), PartitionToken: token},
		"transaction": {Session: ses, Transaction: byID(h.begin(ses, readOnly())), Table: "Singers", Columns: []string{"SingerId"}, KeySet: allKeys(), PartitionToken: token},
		"limit":       {Session: ses, Transaction: byID(id), Table: "Singers", Columns: []string{"SingerId"}, KeySet: allKeys(), PartitionToken: token, Limit: 1},
		"garbage":     {Session: ses, Transaction: byID(id), Table: "Singers", Columns: []string{"SingerId"}, KeySet: allKeys(), PartitionToken: token[1:]},
		"data boost":  {Session: ses, Transaction: byID(id), Table: "Singers", Columns: []string{"SingerId"}, KeySet: allKeys(), DataBoostEnabled: true},
	} {
		if _, err := h.data.Read(h.ctx, req); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, bad := range []string{"SELECT SingerId FROM Singers ORDER BY Data", "SELECT COUNT(*) FROM Singers", "DELETE FROM Singers WHERE true"} {
		_, err := h.data.PartitionQuery(h.ctx, &spannerpb.PartitionQueryRequest{Session: ses, Transaction: byID(id), Sql: bad})
		h.fails(err, codes.InvalidArgument)
	}
	_, err = h.data.PartitionQuery(h.ctx, &spannerpb.PartitionQueryRequest{Session: ses, Sql: sql, Params: structOf("from", "1")})
	h.fails(err, codes.InvalidArgument)
}

func wantOnce(t *testing.T, what string, seen map[string]int, rows int) {
	t.Helper()
	if len(seen) != rows {
		t.Errorf("%s: want %d rows, got %d", what, rows, len(seen))
	}
	for key, n := range seen {
		if n != 1 {
			t.Errorf("%s: row %s is in %d partitions", what, key, n)
		}
	}
}
