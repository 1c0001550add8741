package txn

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/crowfoot-db/crowfoot/kv"
	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/table"
)

// TestCallbacksHoldNoMutex: when txn calls a function of its caller, it holds none of the mutexes that the package
// comment marks "for moments". So that function can call txn again and lock mutexes of its own.
func TestCallbacksHoldNoMutex(t *testing.T) { synctest.Test(t, testCallbacksHoldNoMutex) }

func testCallbacksHoldNoMutex(t *testing.T) {
	clock := new(fakeClock)
	clock.micros.Store(1_000_000)
	store := openStore(t, vfs.NewMem(), "data")
	oracle, err := NewOracle(store, clock.now)
	if err != nil {
		t.Fatal(err)
	}
	var m *Manager
	var tx *Tx
	called := map[string]int{}
	free := func(what string) {
		called[what]++
		for _, mu := range []*sync.Mutex{&m.locks.mu, &tx.mu, &m.oracle.mu, &m.oracle.reserving, &m.delays.mu} {
			if !mu.TryLock() {
				t.Errorf("%s is called under a mutex", what)
				continue
			}
			mu.Unlock()
		}
	}
	m = NewManager(mvcc.New(store).In(1), oracle, Config{Waited: func(*LockWait) { free("Config.Waited") }})
	ctx := context.Background()
	holder := m.Begin(Options{})
	lockKey(t, holder, "a")
	tx = m.Begin(Options{Waited: func(*LockWait) { free("Options.Waited") }})
	committed := beside(func() (mvcc.Timestamp, error) {
		return tx.Commit(ctx, func(w table.Writer) error {
			free("the function of Commit")
			return w.Put(ctx, key("a"), nil, nil, nil)
		}, CommitOptions{})
	})
	synctest.Wait()
	if err := holder.Rollback(); err != nil {
		t.Fatal(err)
	}
	if o := await(t, committed); o.err != nil {
		t.Fatal(o.err)
	}
	tx.EachWrite(func([]byte) { free("the function of EachWrite") })
	if err := m.ChangeSchema(ctx, nil, func(mvcc.Timestamp, func(kv.Batch) error) error {
		free("the function of ChangeSchema")
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for _, what := range []string{"Config.Waited", "Options.Waited", "the function of Commit", "the function of EachWrite", "the function of ChangeSchema"} {
		if called[what] == 0 {
			t.Errorf("%s was not called", what)
		}
	}
}
