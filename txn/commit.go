package txn

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/crowfoot-db/crowfoot/changestream"
	"github.com/crowfoot-db/crowfoot/kv"
	"github.com/crowfoot-db/crowfoot/memory"
	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/stats/cpu"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// CommitOptions of one Commit.
type CommitOptions struct {
	// MaxDelay is how long the commit may wait for other commits, to share a sync with them: max_commit_delay, 0 to 500 ms.
	MaxDelay time.Duration
	// Mutations, if not nil, is how many commit_stats counts. It is read when apply has run, and is part of the outcome.
	Mutations *int64
	// Memory is what else the request is charged that commits. A commit that can never fit beside it is refused at once; nil if it is not known.
	Memory *memory.Account
}

// Commit makes the transaction's writes durable and visible, and returns their
// timestamp. apply, if not nil, first adds the mutations that came with the
// commit on top of what statements wrote.
//
// A second Commit returns what the first did. If ctx ends before the writes are
// on their way, or there is no memory for them, or the store takes no writes for
// the time being (kv.ErrRefused), the transaction goes on as if Commit had not
// been called.
func (t *Tx) Commit(ctx context.Context, apply func(table.Writer) error, opts CommitOptions) (mvcc.Timestamp, error) {
	t.ending.Lock()
	defer t.ending.Unlock()
	if t.state.Load() == committed {
		return t.ts, nil
	}
	if err := t.Enter(); err != nil {
		return 0, err
	}
	defer t.Leave()
	before := t.close()
	ts, err := t.ready(ctx, apply, opts)
	if err != nil {
		if ctx.Err() != nil && errors.Is(err, ctx.Err()) || usererror.IsExhausted(err) || errors.Is(err, kv.ErrRefused) {
			t.reopen(before)
			return 0, err
		}
		t.Fail(err)
		return 0, t.err // why it ended first: being aborted explains other errors
	}
	if t.wrote() {
		ts, err = t.write(ctx, opts)
	}
	if errors.Is(err, kv.ErrRefused) {
		t.commitRefused()
		t.reopen(before)
		return 0, err
	}
	t.commitEnded(ts, err)
	return ts, err
}

// close keeps requests other than Commit's own from changing what will be committed and validated. It returns what the transaction had
// written by then.
func (t *Tx) close() Savepoint {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed.Store(true)
	return t.savepoint()
}

// reopen takes back what Commit has done to a transaction that goes on, and lets other requests in again.
func (t *Tx) reopen(before Savepoint) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rollbackTo(before)
	t.closed.Store(false)
}

// ready brings the transaction past its point of no return. ts is the timestamp of a transaction that has written nothing.
func (t *Tx) ready(ctx context.Context, apply func(table.Writer) error, opts CommitOptions) (ts mvcc.Timestamp, err error) {
	if err := t.prepare(ctx, apply, opts); err != nil {
		return 0, err
	}
	if t.wrote() {
		return 0, t.noReturn(ctx)
	}
	if ts = t.snapshotAt(); ts == 0 {
		if ts, err = t.m.oracle.Strong(ctx); err != nil {
			return 0, err
		}
	}
	if err := t.noReturn(ctx); err != nil {
		return 0, err
	}
	// What it read was true at its snapshot, or is true now, for it is locked. A request that began before the commit may have
	// read something since ts was taken.
	if t.snapshots {
		return cmp.Or(t.snapshotAt(), ts), nil
	}
	return max(ts, t.m.oracle.Visible()), nil
}

// prepare applies the mutations and, in the optimistic modes, locks what was written and validates what was read.
func (t *Tx) prepare(ctx context.Context, apply func(table.Writer) error, opts CommitOptions) error {
	if apply != nil {
		if err := apply(&Request{Tx: t, mutates: true, charged: opts.Memory}); err != nil {
			return err
		}
	}
	if !t.locksNow && t.writes.Len() > 0 {
		if err := t.lockWrites(ctx); err != nil {
			return err
		}
		if err := t.validateReads(ctx); err != nil {
			return err
		}
	}
	return t.m.delays.wait(ctx, opts.MaxDelay)
}

func (t *Tx) lockWrites(ctx context.Context) (err error) {
	t.writes.Scan(func(key string, w write) bool {
		err = t.lockWrite(ctx, key, w.pendingKey)
		return err == nil
	})
	return err
}

// validateReads locks what was read, which waits for commits that are writing there, and aborts the transaction if another one has
// changed it since.
func (t *Tx) validateReads(ctx context.Context) error {
	for _, r := range t.spansRead() {
		if err := t.m.locks.acquire(ctx, t, r.start, r.end, table.LockShared); err != nil {
			return err
		}
		if err := t.unchanged(r.start, r.end); err != nil {
			return err
		}
	}
	return nil
}

// spansRead are copies, which scans that are still open do not shrink.
func (t *Tx) spansRead() []readSpan {
	t.mu.Lock()
	defer t.mu.Unlock()
	spans := make([]readSpan, len(t.reads))
	for i, r := range t.reads {
		spans[i] = *r
	}
	return spans
}

// noReturn is the point after which no other transaction and no schema change can abort the transaction. It waits for a schema
// change that runs.
func (t *Tx) noReturn(ctx context.Context) error {
	m := t.m
	if err := m.lockGate(ctx); err != nil {
		return err
	}
	defer m.locks.mu.Unlock()
	if err := t.check(); err != nil {
		return err
	}
	t.state.Store(committing)
	m.schema.committing++
	return nil
}

// commitEnded keeps the outcome for later requests and releases the locks.
func (t *Tx) commitEnded(ts mvcc.Timestamp, err error) {
	m := t.m
	m.locks.mu.Lock()
	defer m.locks.mu.Unlock()
	if err != nil {
		t.finish(failed, err)
	} else {
		t.ts = ts
		t.finish(committed, usererror.TransactionCommitted())
	}
	m.locks.release(t)
	m.schema.leave()
}

// commitRefused brings the transaction back before its point of no return: nothing of it was written. It keeps its locks, and others can
// abort it again.
func (t *Tx) commitRefused() {
	t.m.locks.mu.Lock()
	defer t.m.locks.mu.Unlock()
	t.state.Store(active)
	t.m.schema.leave()
}

// write gives the transaction its timestamp and returns when it is visible.
func (t *Tx) write(ctx context.Context, opts CommitOptions) (mvcc.Timestamp, error) {
	o := t.m.oracle
	b := t.m.versions.NewBatch()
	defer b.Close()
	f, err := o.take()
	if err != nil {
		return 0, err
	}
	var where written
	touched, err := t.appendRecords(b.KV(), f)
	if err := errors.Join(err, t.fill(b, f, &where), t.putOutcome(b.KV(), f, opts), f.putReservation(b.KV())); err != nil {
		return 0, errors.Join(fmt.Errorf("build commit: %w", err), o.abandon(f))
	}
	if b.KV().Len() < longCommit {
		defer cpu.Waiting(ctx)()
	}
	err = o.land(f, b.Commit())
	t.m.landings.add(&where)
	touched.Wake()
	return f.ts, err
}

// appendRecords puts what change streams record into a batch.
func (t *Tx) appendRecords(b kv.Batch, f *flight) (changestream.Touched, error) {
	if t.changes.Len() == 0 {
		return nil, nil
	}
	tx := t.origin()
	return t.changes.Append(b, t.m.streams, f.ts, &tx)
}

// longCommit is from how many bytes on a commit's own work is measured while it is written, although it also waits for the sync. A shorter
// one works for microseconds before it waits, and is charged less by a thread that others can use meanwhile.
const longCommit = 64 << 10

// fill puts the writes into a batch, with the commit timestamp where it was pending, and adds their keys to where.
func (t *Tx) fill(b *mvcc.Batch, f *flight, where *written) (err error) {
	if run := t.onlyRun(); run != nil {
		for i := range run.Len() {
			where.add(run.Key(i))
		}
		return fillRun(b, run, f.ts)
	}
	var key, val []byte
	t.writes.Scan(func(k string, w write) bool {
		key = append(key[:0], k...)
		for _, p := range w.pendingKey {
			p.Fill(key, f.ts)
		}
		where.add(key)
		if w.deleted {
			err = b.Delete(key, f.ts)
			return err == nil
		}
		val = w.val
		if len(w.pending) > 0 {
			val = bytes.Clone(val) // a request that began before the commit may be reading it
		}
		for _, p := range w.pending {
			p.Fill(val, f.ts)
		}
		err = b.Put(key, val, f.ts)
		return err == nil
	})
	return err
}

// putOutcome adds the outcome to the batch, if a client may ask for it.
func (t *Tx) putOutcome(b kv.Batch, f *flight, opts CommitOptions) error {
	if t.opts.ID == (ClientID{}) {
		return nil
	}
	o := Outcome{Timestamp: f.ts, Isolation: t.opts.Isolation}
	if opts.Mutations != nil {
		o.Mutations = *opts.Mutations
	}
	return putOutcome(b, t.opts.ID, o)
}

// delays lets commits with a MaxDelay share a sync: all of them go on when the first one's delay is over, or when a commit
// without a delay comes.
type delays struct {
	mu     sync.Mutex
	depart chan struct{} // closed when the waiting commits go on; nil if none waits
}

func (d *delays) wait(ctx context.Context, most time.Duration) error {
	if most <= 0 {
		d.leave()
		return nil
	}
	d.mu.Lock()
	if d.depart == nil {
		d.depart = make(chan struct{})
	}
	together := d.depart
	d.mu.Unlock()
	timer := time.NewTimer(most)
	defer timer.Stop()
	defer cpu.Waiting(ctx)()
	select {
	case <-together:
		return nil
	case <-timer.C:
		d.leave()
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// leave lets all waiting commits go on.
func (d *delays) leave() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.depart != nil {
		close(d.depart)
		d.depart = nil
	}
}
