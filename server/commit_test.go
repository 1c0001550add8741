package server

import (
	"io"
	"strconv"
	"testing"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/crowfoot-db/crowfoot/stats/cpu"
)

func TestCommit(t *testing.T) {
	h := newHarness(t)
	ses := h.session(true)
	req := singleUse(ses, insertSingers(list("1", "a")), insertSingers(list("2", "b")))
	req.ReturnCommitStats = true
	reply, err := h.data.Commit(h.ctx, req)
	h.ok(err)
	if reply.CommitTimestamp == nil || reply.CommitStats.GetMutationCount() == 0 {
		t.Errorf("bad reply %v", reply)
	}
	for name, c := range map[string]struct {
		mut  *spannerpb.Mutation
		code codes.Code
	}{
		"no operation":   {&spannerpb.Mutation{}, codes.InvalidArgument},
		"no table":       {insertInto("Nowhere", "SingerId"), codes.NotFound},
		"system table":   {insertInto("INFORMATION_SCHEMA.TABLES", "TABLE_NAME"), codes.NotFound},
		"no column":      {insertInto("Singers", "Nothing"), codes.NotFound},
		"column twice":   {insertInto("Singers", "SingerId", "SingerId"), codes.InvalidArgument},
		"values missing": {&spannerpb.Mutation{Operation: &spannerpb.Mutation_Insert{Insert: &spannerpb.Mutation_Write{Table: "Singers", Columns: []string{"SingerId"}, Values: []*structpb.ListValue{{}}}}}, codes.InvalidArgument},
		"bad value":      {insertSingers(list("one", "a")), codes.FailedPrecondition},
		"row exists":     {&spannerpb.Mutation{Operation: &spannerpb.Mutation_Insert{Insert: insertSingers(list("1", "a")).GetInsertOrUpdate()}}, codes.AlreadyExists},
		"range": {&spannerpb.Mutation{Operation: &spannerpb.Mutation_Delete_{Delete: &spannerpb.Mutation_Delete{Table: "Singers",
			KeySet: &spannerpb.KeySet{Ranges: []*spannerpb.KeyRange{{}}}}}}, codes.InvalidArgument},
	} {
		if _, err := h.data.Commit(h.ctx, singleUse(ses, c.mut)); status.Code(err) != c.code {
			t.Errorf("%s: want %v, got %v", name, c.code, err)
		}
	}
	_, err = h.data.Commit(h.ctx, &spannerpb.CommitRequest{Session: ses})
	h.fails(err, codes.InvalidArgument)
	_, err = h.data.Commit(h.ctx, commitOf(ses, []byte("nonsense")))
	h.fails(err, codes.NotFound)
}

func insertInto(table string, columns ...string) *spannerpb.Mutation {
	row := &structpb.ListValue{}
	for range columns {
		row.Values = append(row.Values, structpb.NewStringValue("9"))
	}
	return &spannerpb.Mutation{Operation: &spannerpb.Mutation_Insert{Insert: &spannerpb.Mutation_Write{Table: table, Columns: columns, Values: []*structpb.ListValue{row}}}}
}

func TestBatchWrite(t *testing.T) {
	h := newHarness(t)
	ses := h.session(true)
	stream, err := h.data.BatchWrite(h.ctx, &spannerpb.BatchWriteRequest{Session: ses, MutationGroups: []*spannerpb.BatchWriteRequest_MutationGroup{
		{Mutations: []*spannerpb.Mutation{insertSingers(list("1", "a"))}},
		{Mutations: []*spannerpb.Mutation{insertSingers(list("2", "b")), insertInto("Nowhere", "K")}},
		{},
		{Mutations: []*spannerpb.Mutation{insertSingers(list("3", "c"))}},
	}})
	h.ok(err)
	got := map[int32]codes.Code{}
	for {
		reply, err := stream.Recv()
		if err == io.EOF {
			break
		}
		h.ok(err)
		for _, i := range reply.Indexes {
			got[i] = codes.Code(reply.Status.GetCode())
			if (reply.CommitTimestamp != nil) != (got[i] == codes.OK) {
				t.Errorf("group %d: %v", i, reply)
			}
		}
	}
	want := map[int32]codes.Code{0: codes.OK, 1: codes.NotFound, 2: codes.InvalidArgument, 3: codes.OK}
	for i, code := range want {
		if got[i] != code {
			t.Errorf("group %d: want %v, got %v", i, code, got[i])
		}
	}
	rs, err := h.sql(ses, nil, 0, "SELECT SingerId FROM Singers ORDER BY SingerId")
	h.ok(err)
	if len(rs.Rows) != 2 {
		t.Errorf("bad rows %v", rs.Rows)
	}
}

// TestMutationsAfterDML: a Commit applies its mutations after the writes of the transaction's statements.
func TestMutationsAfterDML(t *testing.T) {
	h := newHarness(t)
	ses := h.session(true)
	rs, err := h.sql(ses, begins(readWrite()), 1, "INSERT INTO Singers (SingerId, Name) VALUES (1, 'dml'), (2, 'dml')")
	h.ok(err)
	req := commitOf(ses, rs.Metadata.Transaction.Id, insertSingers(list("2", "mutation")))
	req.ReturnCommitStats = true
	reply, err := h.data.Commit(h.ctx, req)
	h.ok(err)
	if reply.CommitStats.GetMutationCount() < 4 {
		t.Errorf("bad stats %v", reply)
	}
	rs, err = h.sql(ses, nil, 0, "SELECT Name FROM Singers ORDER BY SingerId")
	h.ok(err)
	if rs.Rows[0].Values[0].GetStringValue() != "dml" || rs.Rows[1].Values[0].GetStringValue() != "mutation" {
		t.Errorf("bad rows %v", rs.Rows)
	}
}

// TestManyRowsTakeTurns checks that commits of many rows do not block other commits while they wait for a lock, even if
// more commits wait than the server lets run at the same time.
func TestManyRowsTakeTurns(t *testing.T) {
	h := newHarness(t)
	ses := h.session(true)
	rows := func(first int) (list []*structpb.ListValue) {
		for i := range manyRows {
			list = append(list, singer(first+i))
		}
		return list
	}
	h.insert(ses, singer(0))
	holder, err := h.data.ExecuteSql(h.ctx, &spannerpb.ExecuteSqlRequest{Session: ses, Transaction: begins(readWrite()), Seqno: 1,
		Sql: "UPDATE Singers SET Name = 'held' WHERE SingerId = 0"})
	h.ok(err)
	waiting := turnsPerProcessor*cpu.Processors() + 1
	ended := make(chan error, waiting)
	for i := range waiting {
		go func() {
			_, err := h.data.Commit(h.ctx, singleUse(ses, insertSingers(append([]*structpb.ListValue{singer(0)}, rows((i+1)*manyRows)...)...)))
			ended <- err
		}()
	}
	db := h.database()
	eventually(func() bool { return db.Transactions().Metrics().Waiting == waiting })
	h.insert(ses, rows((waiting+1)*manyRows)...)
	_, err = h.data.Rollback(h.ctx, &spannerpb.RollbackRequest{Session: ses, TransactionId: holder.Metadata.Transaction.Id})
	h.ok(err)
	for range waiting {
		h.ok(<-ended)
	}
	h.shows(ses, "SELECT COUNT(*) FROM Singers", strconv.Itoa((waiting+1)*manyRows+1))
}

func singer(id int) *structpb.ListValue { return list(strconv.Itoa(id), "x") }
