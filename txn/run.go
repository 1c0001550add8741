package txn

import (
	"bytes"
	"context"

	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// PutRun implements table.Writer.
func (t *Tx) PutRun(ctx context.Context, run *table.Run, fresh bool) (existing []byte, err error) {
	return t.Request().PutRun(ctx, run, fresh)
}

// PutRun implements table.Writer. If the transaction locks at once, reads no snapshot and has written nothing yet,
// PutRun locks all keys with one lock and buffers the run as a whole. Otherwise it puts one row after the other.
func (r *Request) PutRun(ctx context.Context, run *table.Run, fresh bool) (existing []byte, err error) {
	if run.Len() == 0 {
		return nil, nil
	}
	if err := r.enter(); err != nil {
		return nil, err
	}
	defer r.Leave()
	r.mu.Lock()
	// If the transaction has a snapshot, the run cannot be put as a whole: for each key, putEach checks whether another
	// transaction has written the key since the snapshot.
	whole := r.locksNow && !r.snapshots && r.run == nil && r.writes.Len() == 0
	r.mu.Unlock()
	if !whole {
		return r.putEach(ctx, run, fresh)
	}
	// One exclusive request covers all keys of the run. Other transactions can still write keys between them.
	first, last := run.Key(0), run.Key(run.Len()-1)
	all := &request{tx: r.Tx, start: string(first), end: string(mvcc.After(nil, last)), mode: table.LockExclusive, run: run}
	if _, err := r.m.locks.acquireOrExtend(ctx, nil, all); err != nil {
		return nil, err
	}
	if fresh {
		if existing, err = r.m.firstOf(run); err != nil {
			return nil, r.storeError(err)
		}
		// While the store was read, the transaction may have been aborted and lost its lock. Then the result is not
		// valid.
		if err := r.check(); existing != nil || err != nil {
			return existing, err
		}
	}
	due, err := r.bufferRun(run)
	if err != nil {
		return nil, err
	}
	return nil, r.charge(ctx, due, r.charged)
}

// putEach writes the keys of a run one by one. If fresh is true and a key exists, it writes nothing and returns that
// key.
func (r *Request) putEach(ctx context.Context, run *table.Run, fresh bool) (existing []byte, err error) {
	if fresh {
		for i := range run.Len() {
			_, ok, err := r.get(ctx, run.Key(i), table.LockExclusive)
			if err != nil {
				return nil, err
			}
			if ok {
				return run.Key(i), nil
			}
		}
	}
	for i := range run.Len() {
		if err := r.put(ctx, string(run.Key(i)), write{val: run.Value(i)}); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// bufferRun keeps a run in memory until the commit. It returns the number of bytes that the transaction must be charged
// now.
func (r *Request) bufferRun(run *table.Run) (due int64, err error) {
	t := r.Tx
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed.Load() && !r.mutates {
		return 0, usererror.CommitCalled()
	}
	if err := t.addWriteBytes(run.Bytes()); err != nil {
		return 0, err
	}
	t.run = run
	t.memory.writes += run.Size() + int64(run.Bytes())*(copies-1)
	return t.memory.due(), nil
}

// unpackRun moves the keys and values of the transaction's run into t.writes. Every function that uses single writes
// calls unpackRun first. The caller holds the transaction's mu.
func (t *Tx) unpackRun() {
	run := t.run
	if run == nil {
		return
	}
	t.run = nil
	for i := range run.Len() {
		t.writes.Set(string(run.Key(i)), write{val: run.Value(i)})
	}
	t.memory.writes += int64(run.Len()) * writeBytes
}

// wrote reports whether the transaction has written anything.
func (t *Tx) wrote() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.keys() > 0
}

// keys returns the number of keys that the transaction writes. The caller holds the transaction's mu.
func (t *Tx) keys() int {
	if t.run != nil {
		return t.run.Len()
	}
	return t.writes.Len()
}

// onlyRun returns the run if the transaction writes one run and nothing else. Otherwise it returns nil.
func (t *Tx) onlyRun() *table.Run {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.run
}

// firstOf returns the first key of a run that exists in the store, or nil if none does. The caller has locked the run.
func (m *Manager) firstOf(run *table.Run) (key []byte, err error) {
	last := run.Key(run.Len() - 1)
	c, err := m.versions.Scan(run.Key(0), mvcc.After(nil, last), mvcc.Latest, false)
	if err != nil {
		return nil, err
	}
	defer func() {
		if closed := c.Close(); err == nil {
			err = closed
		}
	}()
	next := 0
	for c.Next() {
		if next = run.From(next, c.Key()); next == run.Len() {
			break
		}
		if bytes.Equal(run.Key(next), c.Key()) {
			return run.Key(next), nil
		}
		c.SkipTo(run.Key(next))
	}
	return nil, c.Err()
}
