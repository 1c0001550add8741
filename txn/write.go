package txn

import (
	"bytes"
	"context"
	"slices"

	"github.com/tidwall/btree"

	"github.com/crowfoot-db/crowfoot/changestream"
	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// write is what a transaction will write to one key.
type write struct {
	val        []byte
	deleted    bool
	pendingKey []table.Pending
	pending    []table.Pending
}

// Put implements table.Writer. It copies what it is given.
func (t *Tx) Put(ctx context.Context, key, val []byte, pendingKey, pending []table.Pending) error {
	return t.Request().Put(ctx, key, val, pendingKey, pending)
}

// Put implements table.Writer. It copies what it is given.
func (r *Request) Put(ctx context.Context, key, val []byte, pendingKey, pending []table.Pending) error {
	return r.put(ctx, string(key), write{val: bytes.Clone(val), pendingKey: slices.Clone(pendingKey), pending: slices.Clone(pending)})
}

// Delete implements table.Writer.
func (t *Tx) Delete(ctx context.Context, key []byte) error { return t.Request().Delete(ctx, key) }

// Delete implements table.Writer.
func (r *Request) Delete(ctx context.Context, key []byte) error {
	return r.put(ctx, string(key), write{deleted: true})
}

func (r *Request) put(ctx context.Context, key string, w write) error {
	if err := r.enter(); err != nil {
		return err
	}
	defer r.Leave()
	if r.locksNow {
		if err := r.lockWrite(ctx, key, w.pendingKey); err != nil {
			return err
		}
	}
	due, err := r.buffer(key, w)
	if err != nil {
		return err
	}
	return r.charge(ctx, due, r.charged)
}

// buffer keeps a write for the commit. It returns what the transaction must be charged for.
func (r *Request) buffer(key string, w write) (due int64, err error) {
	t := r.Tx
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed.Load() && !r.mutates {
		return 0, usererror.CommitCalled()
	}
	t.unpackRun()
	before := t.size
	old, replaced := t.writes.Set(key, w)
	if replaced {
		t.size -= len(key) + len(old.val)
	}
	if err := t.grow(len(key) + len(w.val)); err != nil {
		return 0, err
	}
	t.memory.writes += int64(t.size-before) * copies
	if !replaced {
		t.memory.writes += writeBytes
	}
	return t.memory.due(), nil
}

// grow adds bytes to what the commit writes. The transaction's mu is held.
func (t *Tx) grow(bytes int) error {
	if t.size += bytes; t.size > table.MaxCommitBytes && !t.opts.AnySize {
		return usererror.CommitTooLarge(table.MaxCommitBytes)
	}
	return nil
}

// Capture implements table.Writer.
func (t *Tx) Capture(ctx context.Context, c *table.Change) (bytes int, err error) {
	return t.Request().Capture(ctx, c)
}

// Capture implements table.Writer. The row is locked, because it was written.
func (r *Request) Capture(ctx context.Context, c *table.Change) (bytes int, err error) {
	if r.m.streams == nil {
		return 0, nil
	}
	if err := r.enter(); err != nil {
		return 0, err
	}
	defer r.Leave()
	if r.encoder == nil {
		r.encoder = new(changestream.Encoder)
	}
	tx := r.origin()
	for _, w := range c.Watches {
		m, ok := r.encoder.Encode(c, w, &tx)
		if !ok {
			continue
		}
		size, due, err := r.bufferMod(m)
		if err != nil {
			return 0, err
		}
		bytes += size
		if err := r.charge(ctx, due, r.charged); err != nil {
			return 0, err
		}
	}
	return bytes, nil
}

// origin is what change streams want to know of the transaction.
func (t *Tx) origin() changestream.Transaction {
	return changestream.Transaction{Tag: t.Tag(), Excluded: t.opts.Excluded, System: t.opts.System}
}

// bufferMod keeps what a change stream records for the commit. It returns the bytes that this adds to the commit, and what the transaction must be
// charged for.
func (r *Request) bufferMod(m changestream.Mod) (size int, due int64, err error) {
	t := r.Tx
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed.Load() && !r.mutates {
		return 0, 0, usererror.CommitCalled()
	}
	size, kept := t.changes.Add(m)
	if err := t.grow(size); err != nil {
		return 0, 0, err
	}
	t.memory.writes += int64(kept)
	return size, t.memory.due(), nil
}

// lockWrite locks a key exclusively before it is written. In RepeatableRead it aborts the transaction if another one has written the
// key since the snapshot. Of a key whose commit timestamp is pending it locks the range in which the key will lie: not against others that write
// such keys, each of which will have another timestamp.
func (t *Tx) lockWrite(ctx context.Context, key string, pendingKey []table.Pending) error {
	if len(pendingKey) > 0 {
		start, end := futureKeys(key, pendingKey[0], t.m.oracle.Visible())
		return t.m.locks.acquire(ctx, t, start, end, table.LockWriterSharedTimestamp)
	}
	if err := t.m.locks.acquire(ctx, t, key, "", table.LockExclusive); err != nil {
		return err
	}
	if t.opts.Isolation != RepeatableRead {
		return nil
	}
	return t.unchanged(key, "")
}

// futureKeys is the range in which a key will lie whose commit timestamp is not known yet: what begins as it does up
// to the timestamp and goes on with one above after. It holds the key as it is now, too.
func futureKeys(key string, p table.Pending, after mvcc.Timestamp) (start, end string) {
	from := []byte(key[:p.Offset+timestampLen])
	p.Fill(from, after)
	if p.Desc {
		return key[:p.Offset], string(from) + maxKey
	}
	return string(from), key[:p.Offset] + maxTimestamp + maxKey
}

const (
	timestampLen = 12
	maxTimestamp = "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"
	// maxKey is above every byte that may follow in a key: see table.
	maxKey = "\xff"
)

// Savepoint is what a transaction had written when Savepoint was called.
type Savepoint struct {
	writes *btree.Map[string, write]
	run    *table.Run
	size   int
	memory int64 // bytes
	mods   int   // of changes
}

// Savepoint remembers the writes so far. It costs no copy.
func (t *Tx) Savepoint() Savepoint {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.savepoint()
}

// savepoint is Savepoint. The transaction's mu is held.
func (t *Tx) savepoint() Savepoint {
	return Savepoint{writes: t.writes.Copy(), run: t.run, size: t.size, memory: t.memory.writes, mods: t.changes.Len()}
}

// RollbackTo forgets what was written since s. Locks stay.
func (t *Tx) RollbackTo(s Savepoint) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rollbackTo(s)
}

// rollbackTo is RollbackTo. The transaction's mu is held.
func (t *Tx) rollbackTo(s Savepoint) {
	t.writes, t.run, t.size = s.writes.Copy(), s.run, s.size
	t.changes.Truncate(s.mods)
	t.memory.rollbackTo(s.memory)
}
