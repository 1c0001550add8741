package txn

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"time"
	"unsafe"

	"github.com/tidwall/btree"

	"github.com/crowfoot-db/crowfoot/stats/cpu"
	"github.com/crowfoot-db/crowfoot/table"
)

// IdleLimit is how long a transaction may go without a request. After that, other transactions may abort it to take
// its locks:
// https://cloud.google.com/spanner/docs/transactions#idle_transactions.
const IdleLimit = 10 * time.Second

// recheck is the interval at which a waiting request checks whether a transaction that blocks it has become idle.
const recheck = 50 * time.Millisecond

// lockTable holds the locks of a database, and the requests that wait for locks. A lock is on a point (one logical key,
// which need not exist) or on a range. Shared locks are compatible with each other. So are the locks that transactions
// take to write keys with a pending commit timestamp (table.LockWriterSharedTimestamp). An exclusive lock is compatible
// with no other lock.
//
// Conflicts are resolved by age (wound-wait): a transaction waits for older ones, and aborts younger ones that hold a
// lock it wants. An aborted transaction loses its locks at once, because it can never commit. A read that is running at
// that moment notices the abort after it has read (Tx.check). A transaction past its point of no return is not aborted:
// other transactions wait for it, and it waits for no lock. So a transaction waits only for older transactions, or for
// one that ends without waiting. Hence there is no deadlock. Waiting requests are granted in order of age, oldest
// first, and a younger request does not overtake an older one that it conflicts with. So the oldest transaction always
// gets its locks. Since a retry keeps its age, each transaction becomes the oldest sooner or later. A background
// transaction counts as younger than all others, and is aborted instead of waiting.
//
// One mutex guards the table. To lock a point takes one look-up in a small ordered map. If the table were split into
// shards, finding the shard would already cost more than that look-up.
type lockTable struct {
	m  *Manager
	mu sync.Mutex

	points btree.Map[string, *request] // by key: the linked list of requests for the point
	ranges rangeTree
	// waiting lists the requests not yet granted, oldest transaction first.
	waiting []*request
	// counts.Locks counts every request in the table, granted or waiting; counts.Waiting is not used. See
	// Manager.Metrics.
	counts Metrics
}

// request is a request for a lock, and the lock once it is granted.
type request struct {
	tx      *Tx
	start   string // the start of the range [start, end), or the point if end is empty
	end     string
	mode    table.Lock // the mode of the lock: LockShared, LockExclusive or LockWriterSharedTimestamp
	granted bool
	ready   chan struct{} // closed when the lock is granted or tx has ended; nil if it was granted at once
	next    *request      // the next request for the same point
	// run, if not nil, holds the keys that the request locks, always exclusively. [start, end) is then the smallest
	// range that contains them.
	run *table.Run
}

func (r *request) isPoint() bool { return r.end == "" }

// overlaps reports whether two requests have a key in common. It ignores their modes.
func (r *request) overlaps(o *request) bool {
	var common bool // the points or ranges have a key in common; runs are not looked at yet
	switch {
	case r.isPoint() && o.isPoint():
		common = r.start == o.start
	case r.isPoint():
		common = o.start <= r.start && r.start < o.end
	case o.isPoint():
		common = r.start <= o.start && o.start < r.end
	default:
		common = r.start < o.end && o.start < r.end
	}
	switch {
	case !common:
		return false
	case r.run != nil:
		return r.runIntersects(o)
	case o.run != nil:
		return o.runIntersects(r)
	}
	return true
}

// runIntersects reports whether o's point, range or run contains any key of r's run.
func (r *request) runIntersects(o *request) bool {
	i := r.run.From(0, unsafe.Slice(unsafe.StringData(o.start), len(o.start)))
	if i == r.run.Len() {
		return false
	}
	switch key := r.run.Key(i); {
	case o.isPoint():
		return string(key) == o.start
	case o.run == nil:
		return string(key) < o.end
	}
	for j := 0; i < r.run.Len() && j < o.run.Len(); {
		switch bytes.Compare(r.run.Key(i), o.run.Key(j)) {
		case 0:
			return true
		case -1:
			i++
		default:
			j++
		}
	}
	return false
}

// covers reports whether r is a granted lock that makes o, a request of the same transaction, unnecessary.
func (r *request) covers(o *request) bool {
	if !r.granted || r.tx != o.tx || (r.mode != table.LockExclusive && r.mode != o.mode) {
		return false
	}
	if r.isPoint() {
		return o.isPoint() && r.start == o.start
	}
	if r.run != nil {
		return o.isPoint() && r.runIntersects(o)
	}
	return r.start <= o.start && (o.end <= r.end && !o.isPoint() || o.isPoint() && o.start < r.end)
}

// blocks reports whether o must wait while r is in the table. The caller has checked that o overlaps r.
func (r *request) blocks(o *request) bool {
	if r.tx == o.tx || (r.mode == o.mode && r.mode != table.LockExclusive) {
		return false
	}
	return r.granted || r.tx.older(o.tx)
}

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
	Tag   string // the transaction's tag
	Owner any
	Mode  table.Lock
}

// acquire locks a point (end is empty) or the range [start, end) for t. It waits for conflicting locks as lockTable
// describes.
func (l *lockTable) acquire(ctx context.Context, t *Tx, start, end string, mode table.Lock) error {
	_, err := l.acquireOrExtend(ctx, nil, &request{tx: t, start: start, end: end, mode: mode})
	return err
}

// acquireOrExtend acquires r. The parameter held is nil, or a lock that r's transaction already has in the same mode on
// a range adjacent to r. In the second case, if nothing blocks r, acquireOrExtend adds r's range to that lock instead
// of adding a lock to the table. It returns the lock that the caller may pass in the parameter held of the next call,
// or nil.
func (l *lockTable) acquireOrExtend(ctx context.Context, held, r *request) (*request, error) {
	l.mu.Lock()
	if err := r.tx.check(); err != nil {
		l.mu.Unlock()
		return nil, err
	}
	var blocked, covered bool
	l.each(r, func(o *request) bool {
		if o.covers(r) {
			covered = true
			return false
		}
		blocked = blocked || o.blocks(r)
		return true
	})
	switch {
	case covered:
		l.mu.Unlock()
		return nil, nil
	case !blocked && held != nil:
		l.ranges.extend(held, r)
		l.mu.Unlock()
		return held, nil
	}
	if blocked && r.tx.opts.Background {
		l.abort(r.tx, AbortGaveWay)
		l.mu.Unlock()
		return nil, r.tx.err
	}
	r.tx.held = append(r.tx.held, r)
	count := len(r.tx.held)
	if !blocked {
		r.granted = true
		l.insert(r)
		l.mu.Unlock()
		return r, r.tx.chargeLock(ctx, count)
	}
	w := l.enqueue(r)
	l.resolve(r)
	l.mu.Unlock()
	if err := l.await(ctx, r, w); err != nil {
		return r, err
	}
	return r, r.tx.chargeLock(ctx, count)
}

// enqueue adds r to the table and to the waiting requests, after those of older transactions. It returns a
// description of the wait that begins.
func (l *lockTable) enqueue(r *request) *LockWait {
	w := &LockWait{Start: []byte(r.start), End: []byte(r.end), Began: l.m.clock(), Wanted: r.party()}
	l.each(r, func(o *request) bool {
		if o.blocks(r) {
			w.Held = append(w.Held, o.party())
		}
		return len(w.Held) < maxWaitHolders
	})
	r.ready = make(chan struct{})
	l.insert(r)
	i, _ := slices.BinarySearchFunc(l.waiting, r, func(a, b *request) int {
		if b.tx.older(a.tx) {
			return 1
		}
		return -1
	})
	l.waiting = slices.Insert(l.waiting, i, r)
	return w
}

func (r *request) party() LockParty {
	return LockParty{Tag: r.tx.Tag(), Owner: r.tx.opts.Owner, Mode: r.mode}
}

// blocked reports whether any request in the table blocks r.
func (l *lockTable) blocked(r *request) (blocked bool) {
	l.each(r, func(o *request) bool {
		blocked = o.blocks(r)
		return !blocked
	})
	return blocked
}

// resolve aborts those transactions that block r and are idle or younger than r's transaction. Then it grants r, unless
// something still blocks r.
func (l *lockTable) resolve(r *request) {
	var victims []*request
	l.each(r, func(o *request) bool {
		if o.blocks(r) {
			victims = append(victims, o)
		}
		return true
	})
	for _, o := range victims {
		if o.tx.state.Load() != active {
			continue // o.tx is committing, or was aborted in an earlier round of this loop
		}
		if o.tx.idle() {
			l.abort(o.tx, AbortIdle)
		} else if r.tx.older(o.tx) {
			l.abort(o.tx, AbortWounded)
		}
	}
	if !r.granted && r.tx.state.Load() == active && !l.blocked(r) {
		l.grant(r)
	}
}

// await waits until r is granted, r's transaction has ended, or ctx has ended. Then it adds the wait to the counts
// and passes w, which describes the wait, to Config.Waited and Options.Waited.
func (l *lockTable) await(ctx context.Context, r *request, w *LockWait) error {
	over := cpu.Waiting(ctx)
	ticker := time.NewTicker(recheck)
	defer ticker.Stop()
	withdrawn := false
	for waiting := true; waiting; {
		select {
		case <-r.ready:
			waiting = false
		case <-ticker.C: // a transaction that blocks r may have become idle
			l.mu.Lock()
			if !r.granted && r.tx.state.Load() == active {
				l.resolve(r)
			}
			l.mu.Unlock()
		case <-ctx.Done():
			withdrawn, waiting = l.withdraw(r), false
		}
	}
	err := r.tx.check()
	if withdrawn {
		err = ctx.Err()
	}
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

// withdraw removes r from the table if r is still waiting, and reports whether it was.
func (l *lockTable) withdraw(r *request) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.waiting, r)
	if i < 0 {
		return false
	}
	if j := slices.Index(r.tx.held, r); j >= 0 {
		r.tx.held = slices.Delete(r.tx.held, j, j+1)
	}
	l.waiting = slices.Delete(l.waiting, i, i+1)
	l.remove(r)
	l.grantWaiting([]*request{r})
	return true
}

// grant turns a waiting request into a lock.
func (l *lockTable) grant(r *request) {
	i := slices.Index(l.waiting, r)
	l.waiting = slices.Delete(l.waiting, i, i+1)
	r.granted = true
	close(r.ready)
}

// abort ends an active transaction and releases its locks.
func (l *lockTable) abort(t *Tx, reason AbortReason) {
	l.counts.Aborts[reason]++
	t.finish(aborted, reason.error(t.backoff()))
	l.release(t)
}

// release removes the locks and requests of t from the table, and grants the requests that waited for them.
func (l *lockTable) release(t *Tx) {
	held := t.held
	t.held = nil
	for _, r := range held {
		l.remove(r)
		if r.granted {
			continue
		}
		if i := slices.Index(l.waiting, r); i >= 0 {
			l.waiting = slices.Delete(l.waiting, i, i+1)
		}
		close(r.ready)
	}
	l.grantWaiting(held)
}

// maxFiltered is the maximum number of released locks that grantWaiting compares with every waiting request. If more
// locks were released, it is cheaper to look up the conflicts of each waiting request in the table.
const maxFiltered = 16

// grantWaiting grants the waiting requests that nothing blocks any longer, oldest first. gone lists the locks and
// requests that were just removed.
func (l *lockTable) grantWaiting(gone []*request) {
	for i := 0; i < len(l.waiting); i++ {
		r := l.waiting[i]
		if len(gone) <= maxFiltered && !slices.ContainsFunc(gone, r.overlaps) {
			continue
		}
		if !l.blocked(r) {
			l.grant(r)
			i--
		}
	}
}

// each calls f for each request in the table that overlaps r, until f returns false.
func (l *lockTable) each(r *request, f func(*request) bool) {
	if r.isPoint() {
		for o, _ := l.points.Get(r.start); o != nil; o = o.next {
			if !f(o) {
				return
			}
		}
	} else {
		more := true
		l.points.Ascend(r.start, func(key string, o *request) bool {
			if key >= r.end {
				return false
			}
			if r.run != nil && !r.runIntersects(o) {
				return true
			}
			for ; o != nil && more; o = o.next {
				more = f(o)
			}
			return more
		})
		if !more {
			return
		}
	}
	l.ranges.each(r, f)
}

func (l *lockTable) insert(r *request) {
	l.counts.Locks++
	if !r.isPoint() {
		l.ranges.insert(r)
		return
	}
	first, _ := l.points.Get(r.start)
	if first != nil && !r.granted {
		r.next, first.next = first.next, r
		return
	}
	r.next = first
	l.points.Set(r.start, r)
}

func (l *lockTable) remove(r *request) {
	l.counts.Locks--
	if !r.isPoint() {
		l.ranges.remove(r)
		return
	}
	first, _ := l.points.Get(r.start)
	switch {
	case first == r && r.next == nil:
		l.points.Delete(r.start)
	case first == r:
		l.points.Set(r.start, r.next)
	default:
		for o := first; o != nil; o = o.next {
			if o.next == r {
				o.next = r.next
				break
			}
		}
	}
	r.next = nil
}
