package server

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
	"weak"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
)

func (h *harness) begin(ses string, o *spannerpb.TransactionOptions) []byte {
	h.Helper()
	tx, err := h.data.BeginTransaction(h.ctx, &spannerpb.BeginTransactionRequest{Session: ses, Options: o})
	h.ok(err)
	return tx.Id
}

func commitOf(ses string, id []byte, muts ...*spannerpb.Mutation) *spannerpb.CommitRequest {
	return &spannerpb.CommitRequest{Session: ses, Transaction: &spannerpb.CommitRequest_TransactionId{TransactionId: id}, Mutations: muts}
}

func (h *harness) sql(ses string, sel *spannerpb.TransactionSelector, seqno int64, sql string) (*spannerpb.ResultSet, error) {
	return h.data.ExecuteSql(h.ctx, &spannerpb.ExecuteSqlRequest{Session: ses, Transaction: sel, Sql: sql, Seqno: seqno})
}

func TestInlineBegin(t *testing.T) {
	h := newHarness(t)
	ses := h.session(true)
	rs, err := h.sql(ses, begins(readWrite()), 1, "INSERT INTO Singers (SingerId, Name) VALUES (1, 'Marc')")
	h.ok(err)
	id := rs.Metadata.GetTransaction().GetId()
	if len(id) == 0 || rs.Stats.GetRowCountExact() != 1 {
		t.Fatalf("bad result %v", rs)
	}
	rs, err = h.sql(ses, byID(id), 2, "SELECT Name FROM Singers WHERE SingerId = 1")
	h.ok(err)
	if rs.Metadata.Transaction != nil || len(rs.Rows) != 1 || rs.Rows[0].Values[0].GetStringValue() != "Marc" {
		t.Errorf("bad row %v", rs)
	}
	first, err := h.data.Commit(h.ctx, commitOf(ses, id))
	h.ok(err)
	again, err := h.data.Commit(h.ctx, commitOf(ses, id))
	h.ok(err)
	if !proto.Equal(first, again) {
		t.Errorf("commits differ: %v, %v", first, again)
	}
	_, err = h.data.Rollback(h.ctx, &spannerpb.RollbackRequest{Session: ses, TransactionId: id})
	h.fails(err, codes.FailedPrecondition)
	_, err = h.sql(ses, byID(id), 3, "SELECT 1")
	h.fails(err, codes.FailedPrecondition)
}

// TestFailedBegin: if the first statement of a transaction fails, the transaction has not begun and holds no locks.
func TestFailedBegin(t *testing.T) {
	h := newHarness(t)
	ses := h.session(true)
	h.insert(ses, list("1", "Marc"))
	_, err := h.sql(ses, begins(readWrite()), 1, "INSERT INTO Singers (SingerId) VALUES (1)")
	h.fails(err, codes.AlreadyExists)
	_, err = h.sql(ses, begins(readWrite()), 1, "INSERT INTO Nowhere (SingerId) VALUES (1)")
	h.fails(err, codes.InvalidArgument)
	h.insert(ses, list("1", "Marc again"))
}

func TestReplay(t *testing.T) {
	h := newHarness(t)
	ses := h.session(true)
	id := h.begin(ses, readWrite())
	insert := "INSERT INTO Singers (SingerId, Name) VALUES (1, 'Marc') THEN RETURN Name"
	first, err := h.sql(ses, byID(id), 0, insert)
	h.ok(err)
	again, err := h.sql(ses, byID(id), 0, insert)
	h.ok(err)
	if !proto.Equal(first, again) || len(first.Rows) != 1 || first.Stats.GetRowCountExact() != 1 {
		t.Errorf("replay differs: %v, %v", first, again)
	}
	_, err = h.sql(ses, byID(id), 0, "DELETE FROM Singers WHERE true")
	h.fails(err, codes.InvalidArgument)
	_, err = h.sql(ses, byID(id), 7, "UPDATE Singers SET Name = 'x' WHERE SingerId = 1")
	h.ok(err)
	_, err = h.sql(ses, byID(id), 8, "SELECT nonsense")
	h.fails(err, codes.InvalidArgument)
	_, err = h.sql(ses, byID(id), 5, "UPDATE Singers SET Name = 'y' WHERE SingerId = 1")
	h.fails(err, codes.InvalidArgument)
	_, err = h.data.Commit(h.ctx, commitOf(ses, id))
	if err == nil {
		t.Error("a transaction with statements out of order could be committed")
	}
}

func TestBatchDML(t *testing.T) {
	h := newHarness(t)
	ses := h.session(true)
	req := &spannerpb.ExecuteBatchDmlRequest{
		Session: ses, Transaction: begins(readWrite()), Seqno: 1,
		Statements: []*spannerpb.ExecuteBatchDmlRequest_Statement{
			{Sql: "INSERT INTO Singers (SingerId, Name) VALUES (1, 'a'), (2, 'b')"},
			{Sql: "UPDATE Singers SET Name = 'c' WHERE SingerId = @id", Params: structOf("id", "2")},
			{Sql: "SELECT 1"},
			{Sql: "DELETE FROM Singers WHERE true"},
		},
	}
	reply, err := h.data.ExecuteBatchDml(h.ctx, req)
	h.ok(err)
	if len(reply.ResultSets) != 2 || codes.Code(reply.Status.GetCode()) != codes.InvalidArgument ||
		reply.ResultSets[0].Stats.GetRowCountExact() != 2 || reply.ResultSets[1].Stats.GetRowCountExact() != 1 || reply.ResultSets[1].Metadata != nil {
		t.Fatalf("bad reply %v", reply)
	}
	id := reply.ResultSets[0].Metadata.Transaction.Id
	again := proto.Clone(req).(*spannerpb.ExecuteBatchDmlRequest)
	again.Transaction = byID(id)
	replayed, err := h.data.ExecuteBatchDml(h.ctx, again)
	h.ok(err)
	if !proto.Equal(replayed, reply) {
		t.Errorf("replay differs: %v", replayed)
	}
	_, err = h.data.Commit(h.ctx, commitOf(ses, id))
	h.ok(err)
	rs, err := h.sql(ses, nil, 0, "SELECT Name FROM Singers ORDER BY SingerId")
	h.ok(err)
	if len(rs.Rows) != 2 || rs.Rows[1].Values[0].GetStringValue() != "c" {
		t.Errorf("bad rows %v", rs.Rows)
	}
	_, err = h.data.ExecuteBatchDml(h.ctx, &spannerpb.ExecuteBatchDmlRequest{Session: ses, Transaction: begins(readWrite())})
	h.fails(err, codes.InvalidArgument)
}

// TestBatchOfNoDML: if a statement of a batch is not valid DML, the error gives its number and quotes it.
func TestBatchOfNoDML(t *testing.T) {
	h := newHarness(t)
	ses := h.session(false) // a regular session, so that each transaction ends the previous one
	for _, sql := range []string{"SELECT 1", "UPDDDD Singers", "", "-- nothing", "CALL cancel_query('1')", "CREATE TABLE T (K INT64) PRIMARY KEY (K)", "(UPDATE Singers SET Name = 'x' WHERE true)"} {
		reply, err := h.data.ExecuteBatchDml(h.ctx, &spannerpb.ExecuteBatchDmlRequest{
			Session: ses, Transaction: begins(readWrite()), Seqno: 1,
			Statements: []*spannerpb.ExecuteBatchDmlRequest_Statement{{Sql: "@{PDML_MAX_PARALLELISM=1} DELETE FROM Singers WHERE SingerId = 1"}, {Sql: sql}},
		})
		h.ok(err)
		if want := "Statement 1: '" + sql + "' is not valid DML."; codes.Code(reply.Status.GetCode()) != codes.InvalidArgument || reply.Status.GetMessage() != want || len(reply.ResultSets) != 1 {
			t.Errorf("%v, want %s", reply, want)
		}
	}
}

// TestAbortedCarriesRetryInfo: an older transaction aborts a younger one. The error tells the client when to retry, and
// the retry is as old as the aborted transaction.
func TestAbortedCarriesRetryInfo(t *testing.T) {
	h := newHarness(t)
	ses := h.session(true)
	h.insert(ses, list("1", "a"))
	update := "UPDATE Singers SET Name = 'x' WHERE SingerId = 1"
	older, younger := h.begin(ses, readWrite()), h.begin(ses, readWrite())
	_, err := h.sql(ses, byID(younger), 1, update)
	h.ok(err)
	_, err = h.sql(ses, byID(older), 1, update)
	h.ok(err)
	var trailer metadata.MD
	_, err = h.data.Commit(h.ctx, commitOf(ses, younger), grpc.Trailer(&trailer))
	h.fails(err, codes.Aborted)
	var retry *errdetails.RetryInfo
	for _, d := range status.Convert(err).Details() {
		if r, ok := d.(*errdetails.RetryInfo); ok {
			retry = r
		}
	}
	if retry.GetRetryDelay().AsDuration() <= 0 {
		t.Errorf("no RetryInfo in the details of %v", err)
	}
	fromTrailer := new(errdetails.RetryInfo)
	if values := trailer.Get("google.rpc.retryinfo-bin"); len(values) != 1 || proto.Unmarshal([]byte(values[0]), fromTrailer) != nil || !proto.Equal(fromTrailer, retry) {
		t.Errorf("no RetryInfo in the trailer %v", trailer)
	}
	_, err = h.data.Rollback(h.ctx, &spannerpb.RollbackRequest{Session: ses, TransactionId: younger})
	h.ok(err)
	// The retry has the age of the aborted transaction, so it wins against a transaction that began before the retry.
	third := h.begin(ses, readWrite())
	retryOptions := readWrite()
	retryOptions.GetReadWrite().MultiplexedSessionPreviousTransactionId = younger
	retried := h.begin(ses, retryOptions)
	_, err = h.data.Commit(h.ctx, commitOf(ses, older))
	h.ok(err)
	_, err = h.sql(ses, byID(third), 1, update)
	h.ok(err)
	_, err = h.sql(ses, byID(retried), 1, update)
	h.ok(err)
	_, err = h.data.Commit(h.ctx, commitOf(ses, retried))
	h.ok(err)
	_, err = h.data.Commit(h.ctx, commitOf(ses, third))
	h.fails(err, codes.Aborted)
}

// TestOneActiveTransaction: a new transaction of a regular session ends the previous one.
func TestOneActiveTransaction(t *testing.T) {
	h := newHarness(t)
	ses := h.session(false)
	first := h.begin(ses, readWrite())
	second := h.begin(ses, readWrite())
	_, err := h.data.Commit(h.ctx, commitOf(ses, first))
	h.fails(err, codes.FailedPrecondition)
	_, err = h.data.Commit(h.ctx, commitOf(ses, second))
	h.ok(err)
	_, err = h.data.Commit(h.ctx, commitOf(h.session(false), second))
	h.fails(err, codes.NotFound)
}

func TestReadOnlyTransaction(t *testing.T) {
	h := newHarness(t)
	ses := h.session(true)
	h.insert(ses, list("1", "before"))
	tx, err := h.data.BeginTransaction(h.ctx, &spannerpb.BeginTransactionRequest{Session: ses, Options: readOnly()})
	h.ok(err)
	if tx.ReadTimestamp == nil {
		t.Error("no read timestamp")
	}
	h.insert(ses, list("1", "after"))
	rs, err := h.sql(ses, byID(tx.Id), 0, "SELECT Name FROM Singers")
	h.ok(err)
	if got := rs.Rows[0].Values[0].GetStringValue(); got != "before" {
		t.Errorf("the snapshot moved: %s", got)
	}
	_, err = h.sql(h.session(true), byID(tx.Id), 0, "SELECT 1")
	h.fails(err, codes.NotFound)
	_, err = h.sql(ses, byID(tx.Id), 0, "DELETE FROM Singers WHERE true")
	h.fails(err, codes.InvalidArgument)
	_, err = h.data.Commit(h.ctx, commitOf(ses, tx.Id))
	h.fails(err, codes.FailedPrecondition)
	_, err = h.data.Rollback(h.ctx, &spannerpb.RollbackRequest{Session: ses, TransactionId: tx.Id})
	h.fails(err, codes.FailedPrecondition)
}

func TestTransactionOptionsAreChecked(t *testing.T) {
	h := newHarness(t)
	ses := h.session(true)
	ro := func(o *spannerpb.TransactionOptions_ReadOnly) *spannerpb.TransactionOptions {
		return &spannerpb.TransactionOptions{Mode: &spannerpb.TransactionOptions_ReadOnly_{ReadOnly: o}}
	}
	bounded := ro(&spannerpb.TransactionOptions_ReadOnly{TimestampBound: &spannerpb.TransactionOptions_ReadOnly_MaxStaleness{MaxStaleness: durationpb.New(time.Second)}})
	negative := ro(&spannerpb.TransactionOptions_ReadOnly{TimestampBound: &spannerpb.TransactionOptions_ReadOnly_ExactStaleness{ExactStaleness: durationpb.New(-time.Second)}})
	repeatable := ro(&spannerpb.TransactionOptions_ReadOnly{})
	repeatable.IsolationLevel = spannerpb.TransactionOptions_REPEATABLE_READ
	for name, o := range map[string]*spannerpb.TransactionOptions{"none": nil, "no mode": {}, "bounded": bounded, "negative": negative, "repeatable": repeatable} {
		_, err := h.data.BeginTransaction(h.ctx, &spannerpb.BeginTransactionRequest{Session: ses, Options: o})
		if status.Code(err) != codes.InvalidArgument {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := h.sql(ses, &spannerpb.TransactionSelector{Selector: &spannerpb.TransactionSelector_SingleUse{SingleUse: readWrite()}}, 0, "SELECT 1")
	h.fails(err, codes.InvalidArgument)
	_, err = h.sql(ses, &spannerpb.TransactionSelector{Selector: &spannerpb.TransactionSelector_SingleUse{SingleUse: bounded}}, 0, "SELECT 1")
	h.ok(err)
	late := singleUse(ses)
	late.MaxCommitDelay = durationpb.New(time.Second)
	_, err = h.data.Commit(h.ctx, late)
	h.fails(err, codes.InvalidArgument)
	tagged := singleUse(ses)
	tagged.RequestOptions = &spannerpb.RequestOptions{TransactionTag: "é"} // the server accepts any tag
	_, err = h.data.Commit(h.ctx, tagged)
	h.ok(err)
}

func TestPartitionedDML(t *testing.T) {
	h := newHarness(t)
	ses := h.session(true)
	h.insert(ses, list("1", "a"), list("2", "b"))
	id := h.begin(ses, &spannerpb.TransactionOptions{Mode: &spannerpb.TransactionOptions_PartitionedDml_{PartitionedDml: &spannerpb.TransactionOptions_PartitionedDml{}}})
	_, err := h.sql(ses, byID(id), 1, "SELECT 1")
	h.fails(err, codes.InvalidArgument)
	rs, err := h.sql(ses, byID(id), 1, "UPDATE Singers SET Name = 'z' WHERE true")
	h.ok(err)
	if rs.Stats.GetRowCountLowerBound() != 2 {
		t.Errorf("bad stats %v", rs.Stats)
	}
	h.insert(ses, list("3", "c"))
	rs, err = h.sql(ses, byID(id), 1, "UPDATE Singers SET Name = 'z' WHERE true") // sent again, as after a lost reply
	h.ok(err)
	if rs.Stats.GetRowCountLowerBound() != 2 {
		t.Errorf("bad stats %v of the statement that was sent again", rs.Stats)
	}
	h.shows(ses, "SELECT Name FROM Singers WHERE SingerId = 3", "c")
	_, err = h.sql(ses, byID(id), 2, "UPDATE Singers SET Name = 'z' WHERE true")
	h.fails(err, codes.InvalidArgument)
	_, err = h.data.Commit(h.ctx, commitOf(ses, id))
	h.fails(err, codes.FailedPrecondition)
}

// TestPartitionedDMLGoesOn: if a partitioned DML statement failed half-way and is sent again in its transaction, it
// changes no row twice.
func TestPartitionedDMLGoesOn(t *testing.T) {
	h := newHarness(t)
	ses := h.session(true)
	const rows = 1500
	var all []*structpb.ListValue
	for i := range rows {
		all = append(all, list(fmt.Sprint(i), "a"))
	}
	all[1200] = list("1200", "bad")
	h.insert(ses, all...)
	id := h.begin(ses, &spannerpb.TransactionOptions{Mode: &spannerpb.TransactionOptions_PartitionedDml_{PartitionedDml: &spannerpb.TransactionOptions_PartitionedDml{}}})
	const update = "UPDATE Singers SET Name = IF(Name = 'bad', CAST(DIV(1, 0) AS STRING), Name || '+') WHERE true"
	_, err := h.sql(ses, byID(id), 1, update)
	h.fails(err, codes.OutOfRange)
	repair := &spannerpb.Mutation{Operation: &spannerpb.Mutation_Update{Update: &spannerpb.Mutation_Write{
		Table: "Singers", Columns: []string{"SingerId", "Name"}, Values: []*structpb.ListValue{list("1200", "a")}}}}
	_, err = h.data.Commit(h.ctx, singleUse(ses, repair))
	h.ok(err)
	rs, err := h.sql(ses, byID(id), 1, update)
	h.ok(err)
	if n := rs.Stats.GetRowCountLowerBound(); n != rows {
		t.Errorf("%d rows", n)
	}
	h.shows(ses, "SELECT Name, COUNT(*) FROM Singers GROUP BY Name", fmt.Sprintf("a+|%d", rows))
}

// TestEndedTransactionKeepsLittle: when a transaction has ended in any way, the server remembers it without the replies
// to its statements, because these can be large.
func TestEndedTransactionKeepsLittle(t *testing.T) {
	h := newHarness(t)
	ses := h.session(true)
	_, err := h.data.Commit(h.ctx, singleUse(ses, insertOf("Wide", "Id A", "1 "+strings.Repeat("x", 1<<20))))
	h.ok(err)
	const large = "UPDATE Wide SET B = 'b' WHERE Id = 1 THEN RETURN A"
	for name, end := range map[string]func(id []byte){
		"committed": func(id []byte) {
			_, err := h.data.Commit(h.ctx, commitOf(ses, id))
			h.ok(err)
		},
		"rolled back": func(id []byte) {
			_, err := h.data.Rollback(h.ctx, &spannerpb.RollbackRequest{Session: ses, TransactionId: id})
			h.ok(err)
		},
		"aborted": func(id []byte) {
			h.alter("ALTER TABLE Wide ADD COLUMN N INT64")
			_, err := h.sql(ses, byID(id), 2, "SELECT 1")
			h.fails(err, codes.Aborted)
		},
		"failed": func(id []byte) {
			_, err := h.sql(ses, byID(id), 2, "INSERT INTO Wide (Id) VALUES (1)")
			h.fails(err, codes.AlreadyExists)
		},
	} {
		id := h.begin(ses, readWrite())
		rs, err := h.sql(ses, byID(id), 1, large)
		h.ok(err)
		if len(rs.Rows) != 1 {
			t.Fatalf("%s: %d rows", name, len(rs.Rows))
		}
		key, _ := readWriteKey(id)
		remembered := h.server.data.transactions.get(key)
		open, _ := remembered.current()
		if n := len(open.replays.bySeqno[1].dml.rows); n < 1<<20 {
			t.Fatalf("%s: an open transaction keeps %d bytes of its answer", name, n)
		}
		kept := weak.Make(open)
		open = nil
		end(id)
		for kept.Value() != nil && h.ctx.Err() == nil { // the request that ended the transaction may still be finishing
			runtime.GC()
		}
		if kept.Value() != nil {
			t.Errorf("%s: the answers are kept", name)
		}
		// Only a committed transaction may be forgotten, because the store has its outcome.
		if after := h.server.data.transactions.get(key); after != remembered && name != "committed" {
			t.Errorf("%s: it is forgotten", name)
		}
	}
}

// TestMutationKey: BeginTransaction refuses a mutation_key that Commit would refuse as a mutation. If a value has the
// wrong type for its column, BeginTransaction returns INVALID_ARGUMENT, but Commit FAILED_PRECONDITION, both as in
// Cloud Spanner.
func TestMutationKey(t *testing.T) {
	h := newHarness(t)
	ses := h.session(true)
	inserts := func(table, column string, values ...any) *spannerpb.Mutation {
		return &spannerpb.Mutation{Operation: &spannerpb.Mutation_Insert{Insert: &spannerpb.Mutation_Write{
			Table: table, Columns: []string{"SingerId", column}, Values: []*structpb.ListValue{list(values...)},
		}}}
	}
	deletes := func(key any) *spannerpb.Mutation {
		return &spannerpb.Mutation{Operation: &spannerpb.Mutation_Delete_{Delete: &spannerpb.Mutation_Delete{
			Table: "Singers", KeySet: &spannerpb.KeySet{Keys: []*structpb.ListValue{list(key)}},
		}}}
	}
	for _, c := range []struct {
		name          string
		key           *spannerpb.Mutation
		begin, commit codes.Code
	}{
		{"a row", inserts("Singers", "Name", "1", "a"), codes.OK, codes.OK},
		{"a deletion", deletes("1"), codes.OK, codes.OK},
		{"no operation", &spannerpb.Mutation{}, codes.InvalidArgument, codes.InvalidArgument},
		{"a table that is not there", inserts("Nothing", "Name", "1", "a"), codes.NotFound, codes.NotFound},
		{"a column that is not there", inserts("Singers", "Nothing", "1", "a"), codes.NotFound, codes.NotFound},
		{"too few values", inserts("Singers", "Name", "1"), codes.InvalidArgument, codes.InvalidArgument},
		{"a number for a STRING", inserts("Singers", "Name", "1", 1.5), codes.InvalidArgument, codes.FailedPrecondition},
		{"a word for an INT64", deletes("one"), codes.InvalidArgument, codes.FailedPrecondition},
	} {
		_, begin := h.data.BeginTransaction(h.ctx, &spannerpb.BeginTransactionRequest{Session: ses, Options: readWrite(), MutationKey: c.key})
		_, commit := h.data.Commit(h.ctx, commitOf(ses, h.begin(ses, readWrite()), c.key))
		if status.Code(begin) != c.begin || status.Code(commit) != c.commit {
			t.Errorf("%s: BeginTransaction %v, Commit %v", c.name, begin, commit)
		}
		if begin != nil && commit != nil && status.Convert(begin).Message() != status.Convert(commit).Message() {
			t.Errorf("%s: BeginTransaction %v, Commit %v", c.name, begin, commit)
		}
	}
	_, err := h.data.BeginTransaction(h.ctx, &spannerpb.BeginTransactionRequest{Session: ses, Options: readOnly(), MutationKey: inserts("Singers", "Name", "1", "a")})
	h.fails(err, codes.InvalidArgument)
}
