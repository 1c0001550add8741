package server

import (
	"context"
	"testing"
	"time"

	"cloud.google.com/go/spanner"

	"github.com/crowfoot-db/crowfoot/stats/live"
)

// contended is how long a transaction waits for a lock, by the test's clock. It is shorter than the idle time after
// which a transaction loses its locks.
const contended = 5 * time.Second

// contend runs two functions, each in a transaction of its own. The function held runs in the older transaction and
// takes locks. Then the function wanted runs in the younger transaction and must wait for these locks.
func (x *traffic) contend(held, wanted func(context.Context, *spanner.ReadWriteTransaction) error) {
	x.Helper()
	locked := make(chan struct{})
	older := make(chan error, 1)
	go func() {
		older <- x.tagged("older", func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
			if err := held(ctx, tx); err != nil {
				return err
			}
			close(locked)
			x.awaitLockWait()
			x.clock.forward(contended)
			return nil
		})
	}()
	<-locked
	x.ok(x.tagged("younger", wanted))
	x.ok(<-older)
}

// TestLockStats checks that the statistics name, for each kind of request that waits, the lock and the transaction that
// holds it.
func TestLockStats(t *testing.T) {
	x := newTraffic(t)
	x.plain(3)
	_, err := x.client.Apply(x.ctx, []*spanner.Mutation{spanner.Insert("Singers", []string{"SingerId", "Name"}, []any{1, "abc"})})
	x.ok(err)
	update, read := statement("UPDATE Plain SET V = 'x' WHERE K = 2"), func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		_, err := drain(tx.Read(ctx, "Plain", spanner.Key{2}, []string{"V"}))
		return err
	}
	for _, c := range []struct {
		name         string
		held, wanted func(context.Context, *spanner.ReadWriteTransaction) error
		key, samples string
	}{
		{"write, write", update, update, "Plain(2)", "Plain.V Exclusive older,Plain.V Exclusive younger"},
		{"write, read", update, read, "Plain(2)", "Plain.V Exclusive older,Plain.V ReaderShared younger"},
		{"read, write", read, update, "Plain(2)", "Plain.V Exclusive younger,Plain.V ReaderShared older"},
		{"write, scan", update, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
			_, err := drain(tx.Query(ctx, spanner.NewStatement("SELECT COUNT(*) FROM Plain")))
			return err
		}, "Plain(+)", "Plain.V Exclusive older,Plain._exists ReaderShared younger"},
		{"delete, insert", statement("DELETE FROM Plain WHERE K = 2"), func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
			return tx.BufferWrite([]*spanner.Mutation{spanner.Insert("Plain", []string{"K", "V"}, []any{2, "x"})})
		}, "Plain(2)", "Plain.K Exclusive younger,Plain.V Exclusive younger,Plain._exists Exclusive older"},
		{"parent, child", statement("UPDATE Singers SET Name = 'b' WHERE SingerId = 1"), func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
			return tx.BufferWrite([]*spanner.Mutation{spanner.Insert("Albums", []string{"SingerId", "AlbumId"}, []any{1, 1})})
		}, "Singers(1)", "Singers.Name Exclusive older,Singers._exists ReaderShared younger"},
		{"commit timestamp in the key", statement("INSERT INTO Log (Time, Line) VALUES (PENDING_COMMIT_TIMESTAMP(), 'x')"), func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
			_, err := drain(tx.Query(ctx, spanner.NewStatement("SELECT COUNT(*) FROM Log")))
			return err
		}, "Log(+)", "Log.Line WriterSharedTimestamp older,Log.Time WriterSharedTimestamp older,Log._exists ReaderShared younger"},
		{"index", statement("UPDATE Singers SET Name = 'c' WHERE SingerId = 1"), func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
			_, err := drain(tx.ReadUsingIndex(ctx, "Singers", "SingersByName", spanner.AllKeys(), []string{"Name", "SingerId"}))
			return err
		}, "SingersByName(+)", "SingersByName.Name Exclusive older,SingersByName.Name ReaderShared younger,SingersByName.SingerId ReaderShared younger"},
	} {
		t.Run(c.name, func(t *testing.T) {
			x.minute()
			x.contend(c.held, c.wanted)
			x.minute()
			const newest = " WHERE INTERVAL_END = (SELECT MAX(INTERVAL_END) FROM SPANNER_SYS.LOCK_STATS_TOTAL_MINUTE)"
			x.shows(`SELECT CAST(ROW_RANGE_START_KEY AS STRING), LOCK_WAIT_SECONDS BETWEEN 5 AND 6,
				ARRAY_TO_STRING(ARRAY(SELECT CONCAT(l.COLUMN, ' ', l.LOCK_MODE, ' ', l.TRANSACTION_TAG) FROM UNNEST(SAMPLE_LOCK_REQUESTS) l), ','),
				ARRAY_LENGTH(JSON_QUERY_ARRAY(PARSE_JSON(SAMPLE_LOCK_REQUESTS_JSON_STRING))) = ARRAY_LENGTH(SAMPLE_LOCK_REQUESTS)
				FROM SPANNER_SYS.LOCK_STATS_TOP_MINUTE`+newest, c.key+"|true|"+c.samples+"|true")
			x.shows(`SELECT t.TOTAL_LOCK_WAIT_SECONDS = s.LOCK_WAIT_SECONDS FROM SPANNER_SYS.LOCK_STATS_TOTAL_MINUTE t JOIN SPANNER_SYS.LOCK_STATS_TOP_MINUTE s
				USING (INTERVAL_END) WHERE INTERVAL_END = (SELECT MAX(INTERVAL_END) FROM SPANNER_SYS.LOCK_STATS_TOTAL_MINUTE)`, "true")
		})
	}
}

// TestLockingDelay: a wait for a lock appears in the statistics of the read that waited, and in the timeline of its
// transaction.
func TestLockingDelay(t *testing.T) {
	x := newTraffic(t)
	x.plain(2)
	x.contend(statement("UPDATE Plain SET V = 'x' WHERE K = 2"), func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		_, err := drain(tx.Read(ctx, "Plain", spanner.Key{2}, []string{"V"}))
		return err
	})
	x.minute()
	x.shows(`SELECT AVG_LOCKING_DELAY_SECONDS BETWEEN 5 AND 6, RUN_IN_RW_TRANSACTION_EXECUTION_COUNT FROM SPANNER_SYS.READ_STATS_TOP_MINUTE`, "true|1")
	list := x.database().Live().Timelines("younger")
	if len(list) != 1 || len(list[0].Events) != 3 {
		t.Fatalf("timelines: %+v", list)
	}
	// The test finds events by their kinds, because their order varies: a read is recorded when its handler returns,
	// which can be after the commit.
	events := map[live.EventKind]live.Event{}
	for _, e := range list[0].Events {
		events[e.Kind] = e
	}
	wait, read := events[live.EventLock], events[live.EventRead]
	if _, commit := events[live.EventCommit]; !commit || wait.What != "Plain(2)" || wait.Duration == 0 || read.LockWait != wait.Duration {
		t.Errorf("events: %+v", list[0].Events)
	}
}
