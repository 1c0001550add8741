package server

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/structpb"
)

// tagged runs f in a read-write transaction with a tag.
func (x *traffic) tagged(tag string, f func(context.Context, *spanner.ReadWriteTransaction) error) error {
	_, err := x.client.ReadWriteTransactionWithOptions(x.ctx, f, spanner.TransactionOptions{TransactionTag: tag})
	return err
}

func statement(sql string) func(context.Context, *spanner.ReadWriteTransaction) error {
	return func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		_, err := tx.Update(ctx, spanner.NewStatement(sql))
		return err
	}
}

// txnCounts lists the columns of transaction statistics that count attempts.
const txnCounts = `ATTEMPT_COUNT, COMMIT_ATTEMPT_COUNT, COMMIT_ABORT_COUNT, COMMIT_RETRY_COUNT, COMMIT_FAILED_PRECONDITION_COUNT,
	SERIALIZABLE_PESSIMISTIC_TXN_COUNT, SERIALIZABLE_OPTIMISTIC_TXN_COUNT, REPEATABLE_READ_OPTIMISTIC_TXN_COUNT, AVG_PARTICIPANTS`

// TestTxnStats checks every column of the statistics of transactions that commit at the first attempt.
func TestTxnStats(t *testing.T) {
	x := newTraffic(t)
	x.plain(2)
	x.minute()
	_, err := x.client.Apply(x.ctx, []*spanner.Mutation{
		spanner.Insert("Plain", []string{"K", "V"}, []any{3, "ccc"}),
		spanner.Insert("Singers", []string{"SingerId", "Name"}, []any{1, "abc"}),
	}, spanner.TransactionTag("mutations"))
	x.ok(err)
	x.ok(x.tagged("dml", statement("INSERT INTO Plain (K, V) VALUES (4, 'dddd'), (5, 'eeeee')")))
	x.ok(x.tagged("mixed", func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		if _, err := drain(tx.Query(ctx, spanner.NewStatement("SELECT V FROM Plain WHERE K = 1"))); err != nil {
			return err
		}
		if _, err := drain(tx.ReadUsingIndex(ctx, "Singers", "SingersByName", spanner.AllKeys(), []string{"Name"})); err != nil {
			return err
		}
		if err := tx.BufferWrite([]*spanner.Mutation{spanner.Replace("Singers", []string{"SingerId", "Name"}, []any{1, "x"})}); err != nil {
			return err
		}
		return statement("DELETE FROM Plain WHERE K = 2")(ctx, tx)
	}))
	_, err = x.client.ReadWriteTransactionWithOptions(x.ctx, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		return tx.BufferWrite([]*spanner.Mutation{spanner.Update("Plain", []string{"K", "V"}, []any{1, "z"})})
	}, spanner.TransactionOptions{TransactionTag: "repeatable", IsolationLevel: spannerpb.TransactionOptions_REPEATABLE_READ})
	x.ok(err)
	x.minute()
	const end = "2030-01-02T03:06:00Z"
	x.shows(`SELECT INTERVAL_END, TRANSACTION_TAG, ARRAY_TO_STRING(READ_COLUMNS, ','), ARRAY_TO_STRING(WRITE_CONSTRUCTIVE_COLUMNS, ','), ARRAY_TO_STRING(WRITE_DELETE_TABLES, ',')
		FROM SPANNER_SYS.TXN_STATS_TOP_MINUTE WHERE INTERVAL_END = '`+end+`' ORDER BY 2`,
		end+"|dml|Plain._exists|Plain.K,Plain.V|",
		end+"|mixed|Plain.K,Plain.V,SingersByName.Name|Singers.Name,Singers.SingerId|Plain,Singers",
		end+"|mutations||Plain.K,Plain.V,Singers.Name,Singers.SingerId|",
		end+"|repeatable||Plain.K,Plain.V|")
	x.shows("SELECT "+txnCounts+" FROM SPANNER_SYS.TXN_STATS_TOP_MINUTE WHERE INTERVAL_END = '"+end+"' ORDER BY TRANSACTION_TAG",
		"1|1|0|0|0|1|0|0|1", "1|1|0|0|0|1|0|0|1", "1|1|0|0|0|1|0|0|1", "1|1|0|0|0|0|0|1|1")
	// Singers(1, abc) takes 10 bytes, and its index entry 11. Singers(1, x) takes 8 bytes, and its index entry 9. The
	// transaction mixed also deletes two keys: that of the index entry of abc, which has 10 bytes, and that of
	// Plain(2), which has 4.
	x.shows(`SELECT TRANSACTION_TAG, AVG_BYTES, ARRAY(SELECT FORMAT('%s %d %d', o.TABLE_NAME, o.INSERT_OR_UPDATE_COUNT, o.INSERT_OR_UPDATE_BYTES) FROM UNNEST(OPERATIONS_BY_TABLE) o),
		OPERATIONS_BY_TABLE_JSON_STRING FROM SPANNER_SYS.TXN_STATS_TOP_MINUTE WHERE INTERVAL_END = '`+end+`' ORDER BY 1`,
		`dml|23|[Plain 2 23]|[{"TABLE_NAME":"Plain","INSERT_OR_UPDATE_COUNT":2,"INSERT_OR_UPDATE_BYTES":23}]`,
		`mixed|31|[Singers 1 8]|[{"TABLE_NAME":"Singers","INSERT_OR_UPDATE_COUNT":1,"INSERT_OR_UPDATE_BYTES":8}]`,
		`mutations|31|[Plain 1 10,Singers 1 10]|[{"TABLE_NAME":"Plain","INSERT_OR_UPDATE_COUNT":1,"INSERT_OR_UPDATE_BYTES":10},{"TABLE_NAME":"Singers","INSERT_OR_UPDATE_COUNT":1,"INSERT_OR_UPDATE_BYTES":10}]`,
		`repeatable|8|[Plain 1 8]|[{"TABLE_NAME":"Plain","INSERT_OR_UPDATE_COUNT":1,"INSERT_OR_UPDATE_BYTES":8}]`)
	x.shows(`SELECT LOGICAL_AND(AVG_TOTAL_LATENCY_SECONDS >= AVG_COMMIT_LATENCY_SECONDS AND AVG_COMMIT_LATENCY_SECONDS > 0 AND AVG_TOTAL_LATENCY_SECONDS < 60
		AND TOTAL_LATENCY_DISTRIBUTION[OFFSET(0)].COUNT = 1 AND ABS(TOTAL_LATENCY_DISTRIBUTION[OFFSET(0)].MEAN - AVG_TOTAL_LATENCY_SECONDS) < 1e-9
		AND FPRINT = FARM_FINGERPRINT(TRANSACTION_TAG)) FROM SPANNER_SYS.TXN_STATS_TOP_MINUTE WHERE INTERVAL_END = '`+end+"'", "true")
	x.shows("SELECT "+txnCounts+`, AVG_BYTES, TOTAL_LATENCY_DISTRIBUTION[OFFSET(0)].COUNT,
		ARRAY(SELECT FORMAT('%s %d %d', o.TABLE_NAME, o.INSERT_OR_UPDATE_COUNT, o.INSERT_OR_UPDATE_BYTES) FROM UNNEST(OPERATIONS_BY_TABLE) o)
		FROM SPANNER_SYS.TXN_STATS_TOTAL_MINUTE WHERE INTERVAL_END = '`+end+"'", "4|4|0|0|0|3|0|1|1|23.25|4|[Plain 4 41,Singers 2 18]")
}

// TestUntaggedTxn: transactions without a tag that access the same columns are counted together, even if they name the
// columns in different orders.
func TestUntaggedTxn(t *testing.T) {
	x := newTraffic(t)
	for k := range 3 {
		columns, row := []string{"K", "V"}, []any{k, "v"}
		if k == 1 {
			columns, row = []string{"V", "K"}, []any{"v", k}
		}
		_, err := x.client.Apply(x.ctx, []*spanner.Mutation{spanner.Insert("Plain", columns, row)})
		x.ok(err)
	}
	x.ok(x.client.Single().Query(x.ctx, spanner.NewStatement("SELECT 1")).Do(func(*spanner.Row) error { return nil })) // not counted as a transaction
	x.minute()
	x.shows("SELECT TRANSACTION_TAG, ATTEMPT_COUNT, COMMIT_ATTEMPT_COUNT, FPRINT != 0 FROM SPANNER_SYS.TXN_STATS_TOP_MINUTE", "|3|3|true")
}

// TestFailedTxns: statistics count failed transactions by the kind of the failure, and by the request in which it
// happened.
func TestFailedTxns(t *testing.T) {
	x := newTraffic(t)
	x.plain(2)
	x.minute()
	_, err := x.client.Apply(x.ctx, []*spanner.Mutation{spanner.Insert("Plain", []string{"K"}, []any{1})}, spanner.TransactionTag("taken"))
	x.fails(err, codes.AlreadyExists)
	_, err = x.client.Apply(x.ctx, []*spanner.Mutation{spanner.Update("Plain", []string{"K"}, []any{9})}, spanner.TransactionTag("missing"))
	x.fails(err, codes.NotFound)
	_, err = x.client.Apply(x.ctx, []*spanner.Mutation{spanner.Insert("Plain", []string{"K"}, []any{nil})}, spanner.TransactionTag("null"))
	x.fails(err, codes.FailedPrecondition)
	unknown := []*spanner.Mutation{spanner.Insert("Plain", []string{"K", "Nothing"}, []any{7, 1})}
	x.fails(x.tagged("column", func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		if _, err := tx.ReadRow(ctx, "Plain", spanner.Key{1}, []string{"V"}); err != nil {
			return err
		}
		return tx.BufferWrite(unknown)
	}), codes.NotFound)
	// The client sends this mutation as the mutation_key of a BeginTransaction, which refuses it, so no transaction
	// begins.
	_, err = x.client.Apply(x.ctx, unknown, spanner.TransactionTag("not begun"))
	x.fails(err, codes.NotFound)
	changed := errors.New("the caller changed its mind")
	err = x.tagged("given up", func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		if err := statement("UPDATE Plain SET V = 'x' WHERE K = 1")(ctx, tx); err != nil {
			return err
		}
		return changed
	})
	if !errors.Is(err, changed) {
		t.Error(err)
	}
	// The first statement would begin a transaction, but it fails, so no transaction begins. The client then begins a
	// transaction by BeginTransaction, and abandons it.
	x.fails(x.tagged("first", statement("UPDATE Plain SET V = 'x' WHERE Nothing = 1")), codes.InvalidArgument)
	x.minute()
	x.shows("SELECT TRANSACTION_TAG, "+txnCounts+" FROM SPANNER_SYS.TXN_STATS_TOP_MINUTE WHERE INTERVAL_END = '2030-01-02T03:06:00Z' ORDER BY 1",
		"column|1|1|0|0|1|1|0|0|1", "first|1|0|0|0|0|1|0|0|0", "given up|1|0|0|0|0|1|0|0|0", "missing|1|1|0|0|1|1|0|0|1", "null|1|1|0|0|1|1|0|0|1", "taken|1|1|0|0|1|1|0|0|1")
}

// TestAbortedTxns: an older transaction takes the locks of a younger one. The statistics count the abort and the retry.
func TestAbortedTxns(t *testing.T) {
	x := newTraffic(t)
	x.plain(2)
	x.minute()
	// wound makes the younger transaction lose its lock on row 1 to the older one, which commits.
	wound := func(older *spanner.ReadWriteStmtBasedTransaction) {
		t.Helper()
		_, err := older.Update(x.ctx, spanner.NewStatement("UPDATE Plain SET V = 'older' WHERE K = 1"))
		x.ok(err)
		_, err = older.Commit(x.ctx)
		x.ok(err)
	}
	for _, tag := range []string{"statement", "commit"} {
		older, err := spanner.NewReadWriteStmtBasedTransactionWithOptions(x.ctx, x.client, spanner.TransactionOptions{TransactionTag: "older"})
		x.ok(err)
		_, err = older.ReadRow(x.ctx, "Plain", spanner.Key{2}, []string{"V"})
		x.ok(err)
		attempts := 0
		x.ok(x.tagged(tag, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
			if _, err := tx.ReadRow(ctx, "Plain", spanner.Key{1}, []string{"V"}); err != nil {
				return err
			}
			if attempts++; attempts == 1 {
				wound(older)
			}
			if tag == "commit" {
				return tx.BufferWrite([]*spanner.Mutation{spanner.Update("Plain", []string{"K", "V"}, []any{1, "younger"})})
			}
			return statement("UPDATE Plain SET V = 'younger' WHERE K = 1")(ctx, tx)
		}))
		if attempts != 2 {
			t.Errorf("%d attempts", attempts)
		}
	}
	x.minute()
	x.shows("SELECT TRANSACTION_TAG, "+txnCounts+`, TOTAL_LATENCY_DISTRIBUTION[OFFSET(0)].COUNT FROM SPANNER_SYS.TXN_STATS_TOP_MINUTE WHERE INTERVAL_END = '2030-01-02T03:06:00Z' ORDER BY 1`,
		"commit|2|2|1|1|0|2|0|0|1|2", "older|2|2|0|0|0|2|0|0|1|2", "statement|2|1|1|1|0|2|0|0|1|2")
}

// TestBatchWriteStats: statistics count each group of mutations of a BatchWrite as a transaction.
func TestBatchWriteStats(t *testing.T) {
	x := newTraffic(t)
	x.plain(1)
	x.minute()
	var groups []*spanner.MutationGroup
	for k := range 3 { // the row of the second group exists already
		groups = append(groups, &spanner.MutationGroup{Mutations: []*spanner.Mutation{spanner.Insert("Plain", []string{"K", "V"}, []any{k, "v"})}})
	}
	stream := x.client.BatchWriteWithOptions(x.ctx, groups, spanner.BatchWriteOptions{TransactionTag: "groups"})
	defer stream.Stop()
	err := stream.Do(func(*spannerpb.BatchWriteResponse) error { return nil })
	if err != nil && err != io.EOF {
		t.Fatal(err)
	}
	x.minute()
	x.shows("SELECT TRANSACTION_TAG, "+txnCounts+`, OPERATIONS_BY_TABLE[OFFSET(0)].INSERT_OR_UPDATE_COUNT FROM SPANNER_SYS.TXN_STATS_TOP_MINUTE
		WHERE INTERVAL_END = '2030-01-02T03:06:00Z'`, "groups|3|3|0|0|1|3|0|0|1|2")
	x.shows(`SELECT TABLE_NAME, WRITE_COUNT FROM SPANNER_SYS.TABLE_OPERATIONS_STATS_MINUTE WHERE INTERVAL_END = '2030-01-02T03:06:00Z'`, "Plain|2")
}

// TestTagOfCommit: statistics list a transaction under the tag with which it was begun. If it was begun without a tag,
// they list it under the tag of its Commit.
func TestTagOfCommit(t *testing.T) {
	clock := newTestClock()
	h := newHarnessAt(t, clock.now)
	ses := h.session(true)
	clock.forward(time.Minute)
	for _, begun := range []string{"", "begun"} {
		tx, err := h.data.BeginTransaction(h.ctx, &spannerpb.BeginTransactionRequest{
			Session: ses, Options: readWrite(), RequestOptions: &spannerpb.RequestOptions{TransactionTag: begun}})
		h.ok(err)
		commit := commitOf(ses, tx.Id)
		commit.RequestOptions = &spannerpb.RequestOptions{TransactionTag: "committed"}
		commit.Mutations = []*spannerpb.Mutation{{Operation: &spannerpb.Mutation_InsertOrUpdate{InsertOrUpdate: &spannerpb.Mutation_Write{
			Table: "Singers", Columns: []string{"SingerId"}, Values: []*structpb.ListValue{list("1")}}}}}
		_, err = h.data.Commit(h.ctx, commit)
		h.ok(err)
	}
	clock.forward(time.Minute)
	h.shows(ses, "SELECT TRANSACTION_TAG FROM SPANNER_SYS.TXN_STATS_TOP_MINUTE ORDER BY 1", "begun", "committed")
}
