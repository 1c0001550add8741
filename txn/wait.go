package txn

import (
	"context"
	"time"

	"github.com/crowfoot-db/crowfoot/stats/cpu"
	"github.com/crowfoot-db/crowfoot/table"
)

// maxWaitHolders is the maximum number of lock holders listed in a LockWait.
const maxWaitHolders = 20

// A LockWait describes a finished wait of a request for a lock.
type LockWait struct {
	Start, End []byte // logical keys; End is empty for a point
	Began      time.Time
	Waited     time.Duration
	Wanted     LockParty
	Held       []LockParty // transactions that blocked the request when the wait began; maxWaitHolders at most
}

// LockParty is a transaction that holds or wants a lock.
type LockParty struct {
	Tag   string // of the transaction
	Owner any
	Mode  table.Lock
}

// newWait describes the wait that r begins. The caller holds the table's mu, and r is not in the table yet.
func (l *lockTable) newWait(r *request) *LockWait {
	w := &LockWait{Start: []byte(r.start), End: []byte(r.end), Began: l.m.clock(), Wanted: r.party()}
	l.each(r, func(o *request) bool {
		if o.blocks(r) {
			w.Held = append(w.Held, o.party())
		}
		return len(w.Held) < maxWaitHolders
	})
	return w
}

func (r *request) party() LockParty {
	return LockParty{Tag: r.tx.Tag(), Owner: r.tx.opts.Owner, Mode: r.mode}
}

// waitFor waits until r is granted, or its transaction or ctx has ended. Then it counts the wait and calls both Waited functions.
func (l *lockTable) waitFor(ctx context.Context, r *request, w *LockWait) error {
	over := cpu.Waiting(ctx)
	err := l.await(ctx, r)
	over()
	w.Waited = l.m.clock().Sub(w.Began)
	r.tx.lockWait.Add(int64(w.Waited))
	l.mu.Lock()
	l.counts.LockWaits++
	l.counts.LockWaitTime += w.Waited
	l.mu.Unlock()
	if l.m.waited != nil {
		l.m.waited(w)
	}
	if r.tx.opts.Waited != nil {
		r.tx.opts.Waited(w)
	}
	return err
}
