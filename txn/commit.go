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

// CommitOptions are the options of one Commit.
type CommitOptions struct {
	// MaxDelay is how long the commit may wait, so that it shares a sync with other commits: max_commit_delay, 0 to
	// 500 ms.
	MaxDelay time.Duration
	// Mutations, if not nil, points to the count that commit_stats reports. Commit reads the count after it has applied
	// the mutations, and stores it in the Outcome.
	Mutations *int64
	// Memory is the account of the memory that the Commit request uses outside the transaction; nil if the account is
	// not known. If the transaction's writes can never fit into the budget beside that memory, Commit fails at once.
	Memory *memory.Account
}

// Commit makes the transaction's writes durable and visible, and returns their timestamp. apply, if not nil, first
// adds the mutations of the Commit request to what statements wrote.
//
// A second Commit returns the result of the first. In three cases the transaction stays open, as if Commit had not
// been called: ctx ends before the writes are on their way to the store; there is no memory for the writes; or the
// store refuses all writes for the time being (kv.ErrRefused).
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
		return 0, t.err // not err: if the transaction was already aborted, Fail does nothing, and t.err says why
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

// close closes the transaction to all requests other than Commit's own. A request that is already running can no longer
// write, and can no longer make a read that Commit would have to validate. close returns a savepoint of the writes so
// far.
func (t *Tx) close() Savepoint {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed.Store(true)
	return t.savepoint()
}

// reopen undoes a Commit that has failed without ending the transaction: it removes the writes that Commit added, and
// lets other requests in again.
func (t *Tx) reopen(before Savepoint) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rollbackTo(before)
	t.closed.Store(false)
}

// ready applies the mutations. In the optimistic modes it then locks the written keys and validates the reads. It
// waits for opts.MaxDelay, and brings the transaction past its point of no return. ts is the timestamp of a
// transaction that has written nothing, and 0 for any other transaction.
func (t *Tx) ready(ctx context.Context, apply func(table.Writer) error, opts CommitOptions) (ts mvcc.Timestamp, err error) {
	if apply != nil {
		if err := apply(&Request{Tx: t, mutates: true, charged: opts.Memory}); err != nil {
			return 0, err
		}
	}
	if !t.locksNow && t.writes.Len() > 0 {
		if err := t.lockWrites(ctx); err != nil {
			return 0, err
		}
		if err := t.validateReads(ctx); err != nil {
			return 0, err
		}
	}
	if err := t.m.delays.wait(ctx, opts.MaxDelay); err != nil {
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
	// If the transaction has a snapshot, all its reads are valid at the timestamp of the snapshot. Otherwise its reads
	// are valid now, because their locks are still held, so ready returns the newest visible timestamp. The reads may
	// be invalid at ts: after ts was chosen, a request that began before Commit may still have read a commit above ts.
	if t.snapshots {
		return cmp.Or(t.snapshotAt(), ts), nil
	}
	return max(ts, t.m.oracle.Visible()), nil
}

func (t *Tx) lockWrites(ctx context.Context) (err error) {
	t.writes.Scan(func(key string, w write) bool {
		err = t.lockWrite(ctx, key, w.pendingKey)
		return err == nil
	})
	return err
}

// validateReads checks the reads of an optimistic transaction. They took no locks, and all saw one snapshot. The
// transaction is serializable if all that it has read is unchanged at its commit timestamp: then it could have run as
// a whole at that timestamp.
//
// validateReads first locks each range that was read with a shared lock. The lock waits for commits that are writing
// in the range. Once it is granted, no other transaction writes there until this commit ends. Then validateReads
// looks for versions in the range that are newer than the snapshot. If there is one, it aborts the transaction.
// Because the lock comes first, no change can come between this check and the commit. The keys that the transaction
// writes are locked already (lockWrites). So of two transactions that have each read what the other one writes, at
// most one passes.
//
// In REPEATABLE READ, a transaction records only two kinds of reads for validation: reads of rows that it writes, and
// reads that a constraint depends on (protection in read.go). All other reads need only be valid at the snapshot,
// because this isolation level promises no more.
func (t *Tx) validateReads(ctx context.Context) error {
	t.mu.Lock()
	spans := make([]readSpan, len(t.reads)) // copies, because scans that are still open change the originals
	for i, r := range t.reads {
		spans[i] = *r
	}
	t.mu.Unlock()
	for _, r := range spans {
		if err := t.m.locks.acquire(ctx, t, r.start, r.end, table.LockShared); err != nil {
			return err
		}
		if err := t.unchanged(r.start, r.end); err != nil {
			return err
		}
	}
	return nil
}

// noReturn brings the transaction past its point of no return: from then on no other transaction and no schema change
// can abort it. If a schema change runs, noReturn waits for its end first.
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

// commitEnded ends the transaction after its commit, and releases its locks. ts and err are the result of the commit,
// which a second Commit returns.
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

// commitRefused makes the transaction active again after the store has refused its batch and written nothing. The
// transaction keeps its locks. From now on other transactions can abort it again.
func (t *Tx) commitRefused() {
	t.m.locks.mu.Lock()
	defer t.m.locks.mu.Unlock()
	t.state.Store(active)
	t.m.schema.leave()
}

// write gives the transaction its timestamp, writes its batch, and returns when the commit is visible.
func (t *Tx) write(ctx context.Context, opts CommitOptions) (mvcc.Timestamp, error) {
	o := t.m.oracle
	b := t.m.versions.NewBatch()
	defer b.Close()
	f, err := o.begin()
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
	err = o.finish(f, b.Commit())
	t.m.recentCommits.add(&where)
	touched.Wake()
	return f.ts, err
}

// appendRecords adds the change stream records of the transaction to a batch.
func (t *Tx) appendRecords(b kv.Batch, f *pendingCommit) (changestream.Touched, error) {
	if t.changes.Len() == 0 {
		return nil, nil
	}
	tx := t.origin()
	return t.changes.Append(b, t.m.streams, f.ts, &tx)
}

// longCommit is a size of batches in bytes. Writing a batch of this size or more takes much CPU time. To measure it,
// the request's meter runs during the whole commit, including the wait for the sync. Writing a shorter batch takes only
// microseconds of CPU time. So its commit counts as a wait (cpu.Waiting): the meter pauses, and other goroutines may
// use the thread.
const longCommit = 64 << 10

// fill adds the transaction's writes to batch b. It adds the keys of the writes to the parameter where, which
// recentCommits will store. It replaces each pending commit timestamp by the timestamp of the commit.
func (t *Tx) fill(b *mvcc.Batch, f *pendingCommit, where *written) (err error) {
	if run := t.onlyRun(); run != nil {
		for i := range run.Len() {
			where.add(run.Key(i))
			if err := b.Put(run.Key(i), run.Value(i), f.ts); err != nil {
				return err
			}
		}
		return nil
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
			val = bytes.Clone(val) // a request that began before the commit may be reading the original
		}
		for _, p := range w.pending {
			p.Fill(val, f.ts)
		}
		err = b.Put(key, val, f.ts)
		return err == nil
	})
	return err
}

// putOutcome adds the outcome of the commit to the batch. It does nothing if the transaction has no ClientID, because
// then no client can ask for the outcome.
func (t *Tx) putOutcome(b kv.Batch, f *pendingCommit, opts CommitOptions) error {
	if t.opts.ID == (ClientID{}) {
		return nil
	}
	o := Outcome{Timestamp: f.ts, Isolation: t.opts.Isolation}
	if opts.Mutations != nil {
		o.Mutations = *opts.Mutations
	}
	return putOutcome(b, t.opts.ID, o)
}

// delays lets commits with a MaxDelay share a sync. All waiting commits go on as soon as the MaxDelay of one of them
// is over, or a commit without a MaxDelay comes.
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

// leave ends the wait of all commits that wait for their MaxDelay.
func (d *delays) leave() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.depart != nil {
		close(d.depart)
		d.depart = nil
	}
}
