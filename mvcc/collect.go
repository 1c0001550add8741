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
	// collectSteps is the number of versions that one iterator reads before it is closed. An iterator must not stay
	// open for long, because while it is open the engine cannot delete the files that a compaction has replaced.
	collectSteps = 10_000
	// collectBatch is the number of deletions that one batch collects before it is applied.
	collectBatch = 512
)

// Collected holds the numbers of versions that one collection has read (Seen) and deleted.
type Collected struct{ Seen, Deleted int }

// Horizon returns the oldest timestamp at which the space may be read.
func (v *Versions) Horizon() Timestamp { return Timestamp(v.horizon.Load()) }

// Collect deletes the versions that no read at or above olderThan can see. These are of two kinds: versions for which
// the same key has a newer version at or below olderThan, and tombstones at or below olderThan whose key has no older
// version left. If the parameter dead is not nil, Collect also deletes all versions of the keys for which this function
// returns true. These are keys of dropped tables that lie between keys of other tables, so that no call of Erase can
// delete them as one range. Reads and commits can run at the same time. If ctx ends, the store is consistent, and the
// next call deletes the remaining versions. Calls must not overlap.
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

// collector is the state of one collection between its steps.
type collector struct {
	versions  *Versions
	olderThan Timestamp
	isDead    func(key []byte) bool // the argument dead of Collect; may be nil
	done      *Collected
	b         kv.Batch
	n         int // number of deletions in b

	prefix []byte // space and logical key of the key whose versions are being read
	dead   bool   // whether to delete all versions of the key
	// covered says whether to delete the following versions of the key, because a newer version is at or below
	// olderThan.
	covered bool
	// tombstone is the stored key of the tombstone that hides the following versions, and is deleted after them. It is
	// empty if there is no such tombstone.
	tombstone []byte
}

// step examines collectSteps versions and deletes those that no read needs. It begins at the stored key in the
// parameter from. next is the stored key at which the next step begins; nil if all versions were examined.
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

// look decides whether to delete the version at which the iterator stands. The versions of a key come newest first, so
// look has already seen the key's newer versions.
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

// endKey deletes the tombstone of the key whose versions were read last, if there is one. The collector has already
// deleted the key's older versions, so the tombstone hides nothing any more.
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

// flush applies the deletions of the batch if there are at least atLeast of them. It does not sync, since a deletion
// that a crash undoes is made again by the next collection.
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

// begin begins a new batch. The store accepts the batch even while the disk is nearly full (UseReserve), because
// deletions free disk space.
func (c *collector) begin() {
	c.b, c.n = c.versions.store.kv.NewBatch(), 0
	c.b.UseReserve()
}

// horizonKey returns the key of the record that stores the horizon. The record is needed when the server restarts with
// a longer retention period: without it, reads would be allowed at timestamps whose versions were already collected.
func (v *Versions) horizonKey() []byte {
	key := append(make([]byte, spaceLen, 32), "mvcc/horizon/"...)
	return append(binary.BigEndian.AppendUint32(key, uint32(v.space)), 0)
}

// dropped is the horizon of a space that was dropped. It is above the timestamps of all reads except Latest, which it
// equals. Versions.readable compares the horizon with dropped, so that reads at Latest fail, too.
const dropped = Timestamp(math.MaxInt64)

// Drop adds to b the deletion of a space with all its versions, and removes the space's Versions from the Store.
// Iterators that are open continue to work. All later reads of the space return the error in gone; so does a cursor
// that continues after Release. Without this error, such reads would find no keys, as if the keys had never existed.
// The caller must not collect the space any more.
func (s *Store) Drop(b kv.Batch, space Space, gone error) error {
	v := s.In(space)
	v.gone = gone
	v.horizon.Store(int64(dropped)) // set before anything is deleted, as in Collect
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.spaces, space)
	if err := b.Delete(v.horizonKey()); err != nil {
		return err
	}
	return b.DeleteRange(v.bound(nil, nil), v.end(nil, nil))
}

// FreeSpace begins to free the disk space of the keys in [start, end), after a batch has erased or dropped them. A nil
// start or end is the start or end of the space.
func (v *Versions) FreeSpace(start, end []byte) {
	v.store.kv.FreeSpace(v.bound(nil, start), v.end(nil, end))
}

// raiseHorizon stores a record of the new horizon and publishes the horizon. It does not sync: the later deletions
// follow the record in the log, so a crash cannot keep the deletions and lose the record.
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
