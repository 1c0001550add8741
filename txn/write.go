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

// write is a buffered put or delete of one key.
type write struct {
	val        []byte
	deleted    bool
	pendingKey []table.Pending
	pending    []table.Pending
}

// Put implements table.Writer. It copies its arguments.
func (t *Tx) Put(ctx context.Context, key, val []byte, pendingKey, pending []table.Pending) error {
	return t.Request().Put(ctx, key, val, pendingKey, pending)
}

// Put implements table.Writer. It copies its arguments.
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

// buffer keeps a write in memory until the commit. It returns the number of bytes that the transaction must be
// charged now.
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
	if err := t.addWriteBytes(len(key) + len(w.val)); err != nil {
		return 0, err
	}
	t.memory.writes += int64(t.size-before) * copies
	if !replaced {
		t.memory.writes += writeBytes
	}
	return t.memory.due(), nil
}

// addWriteBytes adds bytes to the size of the commit. It returns an error if the size is then above the limit. The
// caller holds the transaction's mu.
func (t *Tx) addWriteBytes(bytes int) error {
	if t.size += bytes; t.size > table.MaxCommitBytes && !t.opts.AnySize {
		return usererror.CommitTooLarge(table.MaxCommitBytes)
	}
	return nil
}

// Capture implements table.Writer.
func (t *Tx) Capture(ctx context.Context, c *table.Change) (bytes int, err error) {
	return t.Request().Capture(ctx, c)
}

// Capture implements table.Writer. It takes no lock: the transaction has written the row, and locks it for that write.
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

// origin returns the properties of the transaction on which its change stream records depend.
func (t *Tx) origin() changestream.Transaction {
	return changestream.Transaction{Tag: t.Tag(), Excluded: t.opts.Excluded, System: t.opts.System}
}

// bufferMod buffers one change of a row, for a change stream to record. size is the number of bytes that the change
// adds to the commit; due is the number of bytes that the transaction must be charged now.
func (r *Request) bufferMod(m changestream.Mod) (size int, due int64, err error) {
	t := r.Tx
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed.Load() && !r.mutates {
		return 0, 0, usererror.CommitCalled()
	}
	size, kept := t.changes.Add(m)
	if err := t.addWriteBytes(size); err != nil {
		return 0, 0, err
	}
	t.memory.writes += int64(kept)
	return size, t.memory.due(), nil
}

// lockWrite locks a key exclusively before it is written. In RepeatableRead it aborts the transaction if another
// transaction has written the key since the snapshot. If the key holds a pending commit timestamp, lockWrite locks
// the range in which the key will lie. Such locks are compatible with each other, because each writer will have
// another timestamp and so another key.
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

// futureKeys returns the range in which a key will lie once its pending commit timestamp p is known. The range holds
// all keys that have the same bytes before the timestamp, and a timestamp at or above the parameter after. It also
// holds the key as it is now, with a placeholder for the timestamp.
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
	// maxKey is above every byte that may follow in a key after the timestamp: see package table.
	maxKey = "\xff"
)

// Savepoint holds the writes of a transaction at the time when Tx.Savepoint was called.
type Savepoint struct {
	writes *btree.Map[string, write]
	run    *table.Run
	size   int
	memory int64 // estimated bytes that the buffered writes took in memory
	mods   int   // number of row changes for change streams to record
}

// Savepoint returns the writes so far. It is cheap: the map of writes is copied lazily.
func (t *Tx) Savepoint() Savepoint {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.savepoint()
}

// savepoint does what Savepoint does. The caller holds the transaction's mu.
func (t *Tx) savepoint() Savepoint {
	return Savepoint{writes: t.writes.Copy(), run: t.run, size: t.size, memory: t.memory.writes, mods: t.changes.Len()}
}

// RollbackTo undoes the writes since s. The locks that were taken since s stay.
func (t *Tx) RollbackTo(s Savepoint) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rollbackTo(s)
}

// rollbackTo does what RollbackTo does. The caller holds the transaction's mu.
func (t *Tx) rollbackTo(s Savepoint) {
	t.writes, t.run, t.size = s.writes.Copy(), s.run, s.size
	t.changes.Truncate(s.mods)
	t.memory.rollbackTo(s.memory)
}
