package txn

import (
	"context"
	"runtime"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/table"
)

// awaitWaiting returns once n requests wait for locks.
func awaitWaiting(m *Manager, n int) {
	for m.Metrics().Waiting != n {
		runtime.Gosched()
	}
}

func lockKey(t *testing.T, tx *Tx, k string) {
	t.Helper()
	if _, _, err := tx.Get(context.Background(), key(k), table.LockExclusive); err != nil {
		t.Fatal(err)
	}
}

func TestMetrics(t *testing.T) {
	m, clock := manual(t)
	ctx := context.Background()
	old, young := m.Begin(Options{}), m.Begin(Options{})
	lockKey(t, old, "a")
	lockKey(t, old, "b")
	waits := beside(func() (mvcc.Timestamp, error) {
		_, _, err := young.Get(ctx, key("a"), table.LockExclusive)
		return 0, err
	})
	awaitWaiting(m, 1)
	if got := m.Metrics(); got != (Metrics{Locks: 2, Waiting: 1}) {
		t.Errorf("with one request waiting: %+v", got)
	}
	clock.advance(IdleLimit / 2)
	if err := old.Rollback(); err != nil {
		t.Fatal(err)
	}
	if o := await(t, waits); o.err != nil {
		t.Fatal(o.err)
	}
	want := Metrics{Locks: 1, LockWaits: 1, LockWaitTime: IdleLimit / 2}
	if got := m.Metrics(); got != want {
		t.Errorf("after the wait: %+v", got)
	}

	_, _, err := m.Begin(Options{Background: true}).Get(ctx, key("a"), table.LockShared)
	wantCode(t, err, codes.Aborted)
	want.Aborts[AbortGaveWay]++
	lockKey(t, m.Begin(Options{Previous: old.Age()}), "a")
	want.Aborts[AbortWounded]++
	clock.advance(IdleLimit)
	lockKey(t, m.Begin(Options{}), "a")
	want.Aborts[AbortIdle]++
	optimistic := m.Begin(Options{Isolation: RepeatableRead})
	lockKey(t, optimistic, "c")
	commitOne(t, m, "c", "1")
	_, err = optimistic.Commit(ctx, func(w table.Writer) error { return w.Put(ctx, key("d"), nil, nil, nil) }, CommitOptions{})
	wantCode(t, err, codes.Aborted)
	want.Aborts[AbortConflict]++
	if got := m.Metrics(); got.Aborts != want.Aborts || got.Locks != 1 {
		t.Errorf("aborts are %+v, want %+v", got, want)
	}
}
