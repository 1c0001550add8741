package mvcc

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/crowfoot-db/crowfoot/kv"
)

const (
	// collectSteps is the number of versions that one iterator reads. An open iterator keeps the files of tables that a
	// compaction has replaced from being deleted.
	collectSteps = 10_000
	// collectBatch is the number of deletions in one batch.
	collectBatch = 512
)

// Collected counts the versions that a collection has read and deleted.
type Collected struct{ Seen, Deleted int }

// Horizon returns the oldest timestamp that may be read.
func (v *Versions) Horizon() Timestamp { return Timestamp(v.horizon.Load()) }

// Collect deletes the versions that no read at or above olderThan can see. These
// are the versions hidden by a newer one at or below olderThan, and tombstones
// there that hide nothing any more. It also deletes all versions of the keys for
// which dead, if it is not nil, returns true: keys of dropped tables that lie
// among others. Reads and commits go on beside it. If ctx ends, the store is
// consistent, and the next call deletes the rest. Calls must not overlap.
func (v *Versions) Collect(ctx context.Context, olderThan Timestamp, dead func(key []byte) bool) (Collected, error) {
	var done Collected
	if v.horizonErr != nil {
		return done, v.horizonErr
	}
	if olderThan <= v.Horizon() && dead == nil {
		return done, nil
	}
	if olderThan > v.Horizon() {
		if err := v.raiseHorizon(olderThan); err != nil {
			return done, err
		}
	}
	c := collector{versions: v, olderThan: olderThan, isDead: dead, done: &done}
	next := v.bound(nil, nil)
	for next != nil {
		if err := ctx.Err(); err != nil {
			return done, err
		}
		var err error
		if next, err = c.step(next); err != nil {
			return done, fmt.Errorf("collect old versions: %w", err)
		}
	}
	return done, nil
}

// collector carries one collection from step to step.
type collector struct {
	versions  *Versions
	olderThan Timestamp
	isDead    func(key []byte) bool // or nil
	done      *Collected
	b         kv.Batch
	n         int // deletions in b

	prefix    []byte // of the key being looked at
	dead      bool   // delete all versions of the key
	covered   bool   // delete the following versions of the key: a newer one is at or below olderThan
	tombstone []byte // the version that hides the following ones, if it is a tombstone: delete it after them
}

// step collects among collectSteps versions, beginning at the store's key from. It returns the key to go on at, or nil at the end.
func (c *collector) step(from []byte) (next []byte, err error) {
	store := c.versions.store.kv
	it, err := store.NewIter(from, c.versions.end(nil, nil))
	if err != nil {
		return nil, err
	}
	defer it.Close()
	c.begin()
	defer func() { _ = c.b.Close() }()
	ok := it.First()
	for steps := 0; ok; ok = it.Next() {
		if steps++; steps > collectSteps {
			next = bytes.Clone(it.Key())
			break
		}
		if err := c.look(it); err != nil {
			return nil, err
		}
		if err := c.flush(collectBatch); err != nil {
			return nil, err
		}
	}
	if err := it.Error(); err != nil {
		return nil, err
	}
	if next == nil {
		if err := c.endKey(); err != nil {
			return nil, err
		}
	}
	return next, c.flush(1)
}

// look decides whether one version is deleted. The versions of a key come newest first.
func (c *collector) look(it kv.Iterator) error {
	key := it.Key()
	prefix, ts, err := splitVersion(key)
	if err != nil {
		return err
	}
	c.done.Seen++
	if !bytes.Equal(prefix, c.prefix) {
		if err := c.endKey(); err != nil {
			return err
		}
		c.prefix = append(c.prefix[:0], prefix...)
		c.covered = false
		c.dead = c.isDead != nil && c.isDead(prefix[spaceLen:])
	}
	switch {
	case c.covered || c.dead:
		return c.delete(key)
	case ts <= c.olderThan:
		c.covered = true
		value, err := it.Value()
		if err != nil {
			return err
		}
		if len(value) == 0 {
			c.tombstone = append(c.tombstone[:0], key...)
		}
	}
	return nil
}

// endKey deletes the tombstone of the key before, if there is one. The versions that it hid were deleted before.
func (c *collector) endKey() error {
	if len(c.tombstone) == 0 {
		return nil
	}
	err := c.delete(c.tombstone)
	c.tombstone = c.tombstone[:0]
	return err
}

func (c *collector) delete(key []byte) error {
	c.n++
	c.done.Deleted++
	return c.b.Delete(key)
}

// flush applies the deletions of the batch if there are at least atLeast. It does not sync, since the deletions can be repeated.
func (c *collector) flush(atLeast int) error {
	if c.n < atLeast {
		return nil
	}
	if err := c.b.CommitNoSync(); err != nil {
		return err
	}
	_ = c.b.Close()
	c.begin()
	return nil
}

// begin begins a batch. The batch may use the disk's reserve, since deletions make room.
func (c *collector) begin() {
	c.b, c.n = c.versions.store.kv.NewBatch(), 0
	c.b.UseReserve()
}

// horizonKey returns the key of the record that stores the horizon. The horizon is stored so that a longer retention does not, after a
// restart, allow reads at timestamps whose versions were collected.
func (v *Versions) horizonKey() []byte {
	key := append(make([]byte, spaceLen, 32), "mvcc/horizon/"...)
	return append(binary.BigEndian.AppendUint32(key, uint32(v.space)), 0)
}

// dropped is the horizon of a space that was dropped.
const dropped = Timestamp(math.MaxInt64)

// Drop deletes a space with all its versions, and forgets its Versions. Open iterators go on. Other reads fail with gone, and so do cursors that
// go on after Release. Without the error, they would take the deleted keys for keys that never existed. Nothing may collect the space any more.
func (s *Store) Drop(b kv.Batch, space Space, gone error) error {
	v := s.In(space)
	v.gone = gone
	v.horizon.Store(int64(dropped)) // before anything is deleted, as Collect does
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.spaces, space)
	if err := b.Delete(v.horizonKey()); err != nil {
		return err
	}
	return b.DeleteRange(v.bound(nil, nil), v.end(nil, nil))
}

// FreeSpace begins to free the disk space of the keys in [start, end) that a batch has erased or dropped. A nil bound is an end of the space.
func (v *Versions) FreeSpace(start, end []byte) {
	v.store.kv.FreeSpace(v.bound(nil, start), v.end(nil, end))
}

// raiseHorizon stores and publishes a new horizon. It does not sync: the deletions follow the record in the log, so a crash cannot keep them and
// lose the record.
func (v *Versions) raiseHorizon(to Timestamp) error {
	b := v.store.kv.NewBatch()
	defer b.Close()
	b.UseReserve()
	if err := b.Put(v.horizonKey(), binary.BigEndian.AppendUint64(nil, uint64(to))); err != nil {
		return err
	}
	if err := b.CommitNoSync(); err != nil {
		return fmt.Errorf("raise horizon: %w", err)
	}
	v.horizon.Store(int64(to))
	return nil
}

func (v *Versions) loadHorizon() error {
	key := v.horizonKey()
	it, err := v.store.kv.NewIter(key, append(bytes.Clone(key), 0))
	if err != nil {
		return err
	}
	defer it.Close()
	if !it.First() {
		return it.Error()
	}
	value, err := it.Value()
	if err != nil {
		return err
	}
	if len(value) != 8 {
		return fmt.Errorf("horizon of space %d is %x", v.space, value)
	}
	v.horizon.Store(int64(binary.BigEndian.Uint64(value)))
	return nil
}
