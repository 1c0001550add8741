package txn

import (
	"github.com/tidwall/btree"

	"github.com/crowfoot-db/crowfoot/mvcc"
)

// cursor merges the committed keys with the writes that the transaction had made when the cursor was opened. It fails
// once the transaction has ended, because the transaction may have lost its locks.
type cursor struct {
	t       *Tx
	at      mvcc.Timestamp
	base    *mvcc.Cursor
	start   string
	end     string
	reverse bool
	ended   bool
	err     error

	key, value []byte
	keyBuf     []byte // the bytes of the field key, if the key comes from a write
	// span is the range that Commit will validate, or nil if Commit does not validate this scan. Close shortens the
	// range if the scan stops early.
	span    *readSpan
	growing *scanLock // locks the range piece by piece; nil if the range is locked as a whole or not at all

	// If the range contains writes, Next merges two sequences of keys: c.base iterates over the committed keys, and
	// c.over iterates over the transaction's own writes.
	writes   *btree.Map[string, write] // a copy of the transaction's writes; later writes do not change it
	over     btree.MapIter[string, write]
	overOK   bool // c.over stands on a key of the range that Next has not returned yet
	baseOK   bool // c.base stands on a key of the range: the next one to merge, or the one that Next returned last
	baseRead bool // c.base has been moved to its first key
	merged   bool
}

// open starts the scan of the committed keys in [start, end). It moves c.over to the transaction's first write in that
// range, or to the last one if the scan is in reverse.
func (c *cursor) open(start, end string) (err error) {
	c.start, c.end = start, end
	c.baseOK, c.baseRead = false, false
	if c.growing != nil {
		c.growing.commits = c.t.m.recentCommits.count.Load()
	}
	if c.base, err = c.t.m.versions.Scan([]byte(start), []byte(end), c.at, c.reverse); err != nil {
		return c.t.storeError(err)
	}
	if c.writes == nil {
		c.writes = c.t.copyWrites()
	}
	if c.writes.Len() == 0 {
		return nil
	}
	c.over = c.writes.Iter()
	switch {
	case !c.reverse:
		c.overOK = c.over.Seek(start)
	case c.over.Seek(end): // c.over is now past the range, so Prev moves it to the last write in the range
		c.overOK = c.over.Prev()
	default:
		c.overOK = c.over.Last()
	}
	c.bound()
	c.merged = c.overOK
	return nil
}

func (t *Tx) copyWrites() *btree.Map[string, write] {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.unpackRun()
	if t.writes.Len() == 0 {
		return noWrites
	}
	return t.writes.Copy()
}

var noWrites = new(btree.Map[string, write])

// bound sets c.overOK to false if c.over has left the range.
func (c *cursor) bound() {
	if c.overOK && (c.over.Key() < c.start || c.over.Key() >= c.end) {
		c.overOK = false
	}
}

func (c *cursor) stepOver() {
	if c.reverse {
		c.overOK = c.over.Prev()
	} else {
		c.overOK = c.over.Next()
	}
	c.bound()
}

// Next implements table.Cursor.
func (c *cursor) Next() bool {
	if c.ended || c.err != nil {
		return false
	}
	more := c.step()
	if c.growing != nil {
		more = c.lockNextKey(more)
	}
	c.ended = !more
	if err := c.t.check(); err != nil {
		c.err = err
		return false
	}
	return more
}

// step moves to the next key. It takes no lock.
func (c *cursor) step() (more bool) {
	if c.merged {
		more = c.merge()
	} else if more = c.base.Next(); more {
		c.key, c.value = c.base.Key(), c.base.Value()
	}
	if !more {
		c.err = c.base.Err()
	}
	return more
}

// merge moves to the next key of c.base (committed keys) or c.over (writes). A write hides the committed value of its
// key. A key that the transaction has deleted is skipped.
func (c *cursor) merge() bool {
	if !c.baseRead {
		c.baseRead = true
		c.baseOK = c.base.Next()
	} else if c.baseOK && string(c.key) == string(c.base.Key()) {
		c.baseOK = c.base.Next() // leave the key of c.base, because Next has returned it already
	}
	for c.overOK || c.baseOK {
		// overFirst says that the key of c.over comes next. both says that c.base stands on an equal key.
		overFirst, both := c.overOK, false
		if c.overOK && c.baseOK {
			base, over := c.base.Key(), c.over.Key()
			both = string(base) == over
			overFirst = both || (over < string(base)) != c.reverse
		}
		if !overFirst {
			c.key, c.value = c.base.Key(), c.base.Value()
			return true
		}
		key, w := c.over.Key(), c.over.Value()
		if both && w.deleted {
			c.baseOK = c.base.Next()
		}
		c.stepOver()
		if !w.deleted {
			c.keyBuf = append(c.keyBuf[:0], key...)
			c.key, c.value = c.keyBuf, w.val
			return true
		}
	}
	return false
}

// SkipTo implements table.Cursor.
func (c *cursor) SkipTo(key []byte) {
	if c.ended || c.err != nil || c.reverse {
		return
	}
	if c.growing != nil {
		c.growing.skipped = append(c.growing.skipped[:0], key...)
	}
	c.base.SkipTo(key)
	if !c.merged {
		return
	}
	if c.baseRead && c.baseOK && string(c.base.Key()) < string(key) {
		c.baseOK = c.base.Next()
		c.key = nil // merge must not take the new key of c.base for the key that Next returned last
	}
	for steps := 0; c.overOK && c.over.Key() < string(key); steps++ {
		if steps == overSteps {
			c.overOK = c.over.Seek(string(key))
			c.bound()
			return
		}
		c.stepOver()
	}
}

// overSteps is the number of writes that SkipTo passes one by one before it searches the map of writes for the key.
const overSteps = 4

// Key implements table.Cursor.
func (c *cursor) Key() []byte { return c.key }

// Value implements table.Cursor.
func (c *cursor) Value() []byte { return c.value }

// Version implements table.Cursor.
func (c *cursor) Version() mvcc.Timestamp { return 0 }

// Err implements table.Cursor.
func (c *cursor) Err() error { return c.err }

// Close implements table.Cursor. If the scan is closed after Next has returned a key and before its end, Commit
// validates the range only up to the last key that Next has returned.
func (c *cursor) Close() error {
	defer c.t.Leave()
	if c.base == nil {
		return nil
	}
	if c.span != nil && !c.ended && c.key != nil {
		c.t.mu.Lock()
		if c.reverse {
			c.span.start = string(c.key)
		} else {
			c.span.end = string(mvcc.After(nil, c.key))
		}
		c.t.mu.Unlock()
	}
	return c.base.Close()
}
