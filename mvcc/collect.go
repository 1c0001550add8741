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
	// collectSteps is how many versions are looked at before a new iterator is opened: an iterator keeps the files of tables that
	// a compaction has replaced.
	collectSteps = 10_000
	// collectBatch deletions are applied at once.
	collectBatch = 512
)

// Collected is what a collection did.
type Collected struct{ Seen, Deleted int }

// Horizon is the oldest timestamp that may be read.
func (v *Versions) Horizon() Timestamp { return Timestamp(v.horizon.Load()) }

// Collect deletes what no read at or above olderThan can see: versions hidden by
// a newer one at or below olderThan, tombstones there that hide nothing any
// more, and all versions of the keys for which dead, if it is not nil, returns
// true: those of dropped tables whose keys lie among others. Reads and commits go
// on beside it. If ctx ends, what is left is for the next call; the store is
// consistent. Calls must not overlap.
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
	dead      bool   // all of its versions go
	covered   bool   // a version at or below olderThan has been seen: all that follow go
	tombstone []byte // the covering version, if it is a tombstone: it goes when all it hides has gone
}

// step looks at collectSteps versions from a key of the store on, and returns where to go on, nil at the end.
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

// look judges one version; those of a key come newest first.
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

// endKey deletes the tombstone of the key before, after everything that it hid.
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

// flush applies the deletions when there are at least so many. They need no sync: they can be done again.
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

// begin begins a batch. Deletions make room.
func (c *collector) begin() {
	c.b, c.n = c.versions.store.kv.NewBatch(), 0
	c.b.UseReserve()
}

// The horizon of a space is a record of its own, so that a longer retention does not, after a restart, bring back
// timestamps whose versions have gone.
func (v *Versions) horizonKey() []byte {
	key := append(make([]byte, spaceLen, 32), "mvcc/horizon/"...)
	return append(binary.BigEndian.AppendUint32(key, uint32(v.space)), 0)
}

// dropped is the horizon of a space that was dropped.
const dropped = Timestamp(math.MaxInt64)

// Drop deletes a space with everything that was stored for it, and forgets its Versions. Iterators that are open go on; other reads, and those that go on
// behind Release, fail with gone, so that they do not take what is deleted for what never was. Nothing may collect the space any more.
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

// FreeSpace begins to give back the space of keys in [start, end) that a batch has erased or dropped; nil is no bound.
func (v *Versions) FreeSpace(start, end []byte) {
	v.store.kv.FreeSpace(v.bound(nil, start), v.end(nil, end))
}

// raiseHorizon announces, durably before anything is deleted: the deletions follow it in the log.
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
