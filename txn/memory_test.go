package txn

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/crowfoot-db/crowfoot/memory"
	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/table"
)

// TestLocksAreCharged checks that a transaction is charged once for each of its locks, even if an earlier request for
// the lock was cancelled while it waited.
func TestLocksAreCharged(t *testing.T) { synctest.Test(t, testLocksAreCharged) }

func testLocksAreCharged(t *testing.T) {
	const chunks = 3
	m, _ := manual(t)
	ctx := context.Background()
	budget := memory.NewBudget(1 << 30)
	holder := m.Begin(Options{}) // older than tx, so tx waits for its locks
	tx := m.Begin(Options{Memory: budget})
	for n := range chunks * chargeLocks {
		k := fmt.Sprint(n)
		lockKey(t, holder, k)
		// The request for the lock is cancelled while it waits. Then it is made again, and waits until holder has
		// ended.
		limited, cancel := context.WithCancel(ctx)
		defer cancel()
		for _, ctx := range []context.Context{limited, ctx} {
			waiting := beside(func() (mvcc.Timestamp, error) {
				_, _, err := tx.Get(ctx, key(k), table.LockShared)
				return 0, err
			})
			synctest.Wait()
			if cancel(); ctx != limited {
				_ = holder.Rollback()
				holder = m.Begin(Options{Previous: holder.Age()})
			}
			if o := await(t, waiting); (o.err != nil) != (ctx == limited) {
				t.Fatal(o.err)
			}
		}
	}
	// The budget may have reserved more bytes than the transaction is charged, because the budget rounds up.
	if due := tx.memory.charged; due != chunks*chargeBytes || budget.Usage().Reserved < due {
		t.Errorf("%d locks are charged %d bytes, %d of the budget; want %d", chunks*chargeLocks, due, budget.Usage().Reserved, chunks*chargeBytes)
	}
	if err := tx.Rollback(); err != nil || budget.Usage().Reserved != 0 {
		t.Errorf("after the end %d bytes are charged: %v", budget.Usage().Reserved, err)
	}
}
