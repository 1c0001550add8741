package mvcc

import (
	"bytes"

	"github.com/crowfoot-db/crowfoot/kv"
)

// maxSteps is the number of versions of one key that a cursor steps over before it seeks instead. A step is about ten
// times cheaper than a seek.
const maxSteps = 4

// Cursor walks over the live keys of a range at one timestamp. It begins before the first key (in reverse, after the
// last).
//
// A forward cursor leaves its iterator on the version that it shows, and the iterator owns the bytes of key and value.
// A reverse cursor reads the versions of a key from oldest to newest. So it copies the newest version that it may
// show, and leaves its iterator on a version of the preceding key.
type Cursor struct {
	versions *Versions
	it       kv.Iterator
	at       Timestamp
	// since is a timestamp. The cursor skips keys that have no newer version. If since has the value of the constant
	// everything, the cursor skips no key.
	since   Timestamp
	reverse bool
	deleted bool // whether the cursor shows tombstones
	state   cursorState

	prefix  []byte // space and logical key of the row that the cursor shows
	value   []byte
	version Timestamp
	// tombstone says that the version that the cursor shows is a tombstone.
	tombstone bool
	seek      []byte // buffer for stored keys; in state cursorSkip, the key that Next must seek
	err       error

	prefixBuf, valueBuf []byte // reverse scans and Release copy the current key and value to these
	lower, upper        []byte // bounds of the range
}

type cursorState uint8

const (
	cursorStart   cursorState = iota
	cursorSkip                // SkipTo was called
	cursorOn                  // forward: the iterator is on the version that the cursor shows
	cursorWaiting             // reverse: the iterator is on an unread version, or before the first version
	cursorDone
)

// Scan returns a cursor over the keys in [start, end) as they were at a timestamp. A nil end is the end of the space.
func (v *Versions) Scan(start, end []byte, at Timestamp, reverse bool) (*Cursor, error) {
	return v.scan(start, end, Cursor{at: at, since: everything, reverse: reverse})
}

// everything is a special value of Cursor.since. It is below all timestamps, so that the cursor skips no key.
const everything Timestamp = -1

// Changes returns a cursor over those keys in [start, end) that have a version in an interval of time. The interval
// begins after the timestamp since and includes the timestamp at. For each of these keys the cursor shows the newest
// version in the interval, even if that is a tombstone (see Deleted). A nil end is the end of the space. The cost is
// proportional to the number of changes. The error is ErrCollected if some of the changes may have been collected, that
// is, if a read at the timestamp since would fail with ErrCollected.
func (v *Versions) Changes(start, end []byte, since, at Timestamp) (*Cursor, error) {
	return v.scan(start, end, Cursor{at: at, since: since, deleted: true})
}

func (v *Versions) scan(start, end []byte, c Cursor) (*Cursor, error) {
	buf := make([]byte, 0, 2*(spaceLen+1)+len(start)+len(end))
	buf = v.bound(buf, start)
	n := len(buf)
	buf = v.end(buf, end)
	c.versions, c.state = v, cursorDone
	if bytes.Compare(buf[:n], buf[n:]) < 0 && c.since < c.at {
		c.lower, c.upper = buf[:n:n], buf[n:]
		it, err := c.newIter()
		if err != nil {
			return nil, err
		}
		c.it, c.state = it, cursorStart
	}
	// readable must run after the iterator was made. Collect raises the horizon before it deletes versions. So if the
	// iterator misses versions, readable sees the new horizon.
	if err := c.readable(); err != nil {
		_ = c.Close()
		return nil, err
	}
	return &c, nil
}

func (c *Cursor) newIter() (kv.Iterator, error) {
	if c.since == everything {
		return c.versions.store.kv.NewIter(c.lower, c.upper)
	}
	return c.versions.store.kv.ChangedIter(c.lower, c.upper, uint64(c.since)+1)
}

// readable returns ErrCollected if versions that the cursor must show may have been collected.
func (c *Cursor) readable() error {
	if c.since == everything {
		return c.versions.readable(c.at)
	}
	return c.versions.readable(c.since)
}

// Next moves to the next key that the cursor shows. It returns false at the end or on an error.
func (c *Cursor) Next() bool {
	if c.it == nil && c.state != cursorDone && !c.reopen() {
		return false
	}
	if c.reverse {
		return c.prev()
	}
	var ok bool
	switch c.state {
	case cursorStart:
		ok = c.it.First()
	case cursorSkip:
		ok = c.it.SeekGE(c.seek)
	case cursorOn:
		ok = c.it.NextPrefix()
	default:
		return false
	}
	return c.settle(ok)
}

// settle moves forward to the first key that the cursor must show. It stops at that key's newest version at or below
// c.at. At first the iterator is on the newest version of a key, or at its end if ok is false.
func (c *Cursor) settle(ok bool) bool {
	for ok {
		key := c.it.Key()
		prefix, ts, err := splitVersion(key)
		if err != nil {
			return c.stop(err)
		}
		if ts > c.at {
			ok = c.older(prefix)
			continue
		}
		if ts <= c.since {
			ok = c.it.NextPrefix()
			continue
		}
		value, err := c.it.Value()
		if err != nil {
			return c.stop(err)
		}
		if len(value) == 0 && !c.deleted {
			ok = c.it.NextPrefix()
			continue
		}
		c.prefix, c.value, c.version, c.state = prefix, value[min(1, len(value)):], ts, cursorOn
		c.tombstone = len(value) == 0
		return true
	}
	return c.stop(c.it.Error())
}

// older leaves a version that is above c.at. It moves to the newest version of the same key at or below c.at. If there
// is none, it moves to the next key.
func (c *Cursor) older(prefix []byte) bool {
	c.seek = append(c.seek[:0], prefix...)
	for range maxSteps {
		if !c.it.Next() {
			return false
		}
		next, ts, err := splitVersion(c.it.Key())
		if err != nil || ts <= c.at || !bytes.Equal(next, c.seek) {
			return true // settle, which has called older, examines this version
		}
	}
	return c.it.SeekGE(appendSuffix(c.seek, c.at))
}

// prev moves back to the preceding key that is live at c.at.
func (c *Cursor) prev() bool {
	if c.state == cursorDone {
		return false
	}
	if c.state == cursorStart {
		c.it.Last()
		c.state = cursorWaiting
	}
	for c.it.Valid() {
		live, err := c.gather()
		if err != nil {
			return c.stop(err)
		}
		if live {
			return true
		}
	}
	return c.stop(c.it.Error())
}

// gather reads the versions of the key at which the iterator stands, oldest first, and copies the newest one at or
// below c.at. It leaves the iterator on the preceding key. live is false if no version is at or below c.at, or if the
// copied one is a tombstone.
func (c *Cursor) gather() (live bool, err error) {
	key := c.it.Key()
	prefix, ts, err := splitVersion(key)
	if err != nil {
		return false, err
	}
	c.prefixBuf = append(c.prefixBuf[:0], prefix...)
	c.prefix = c.prefixBuf
	for range maxSteps {
		if ts > c.at {
			c.it.SeekLT(c.prefix)
			return live, nil
		}
		if live, err = c.keep(ts); err != nil {
			return false, err
		}
		if !c.it.Prev() {
			return live, nil
		}
		if prefix, ts, err = splitVersion(c.it.Key()); err != nil {
			return false, err
		}
		if !bytes.Equal(prefix, c.prefix) {
			return live, nil
		}
	}
	// The key has many old versions, so the cursor seeks the newest version at or below c.at. Such a version exists,
	// because all versions read so far are at or below c.at.
	c.seek = appendSuffix(append(c.seek[:0], c.prefix...), c.at)
	if !c.it.SeekGE(c.seek) {
		return false, c.it.Error()
	}
	if _, ts, err = splitVersion(c.it.Key()); err != nil {
		return false, err
	}
	if live, err = c.keep(ts); err != nil {
		return false, err
	}
	c.it.SeekLT(c.prefix)
	return live, nil
}

// keep copies the version at which the iterator stands. live is false if the version is a tombstone.
func (c *Cursor) keep(ts Timestamp) (live bool, err error) {
	value, err := c.it.Value()
	if err != nil || len(value) == 0 {
		return false, err
	}
	c.valueBuf = append(c.valueBuf[:0], value[1:]...)
	c.value, c.version = c.valueBuf, ts
	return true, nil
}

func (c *Cursor) stop(err error) bool {
	c.state = cursorDone
	if c.err == nil {
		c.err = err
	}
	return false
}

// ShowDeleted makes the cursor also show deleted keys, with empty values, as long as the store still has their
// tombstones. Call it before the first Next. It has no effect on reverse cursors.
func (c *Cursor) ShowDeleted() { c.deleted = !c.reverse }

// SkipTo makes the next call of Next move to the given key, or to the first key after it if the cursor does not show
// that key. The cursor never moves back. SkipTo has no effect on reverse cursors.
func (c *Cursor) SkipTo(key []byte) {
	if c.state == cursorDone || c.reverse {
		return
	}
	if c.state != cursorStart && len(c.prefix) > 0 && bytes.Compare(key, c.prefix[spaceLen:]) <= 0 {
		return
	}
	c.seek = c.versions.bound(c.seek[:0], key)
	c.state = cursorSkip
}

// Release closes the cursor's iterator, because an open iterator keeps the engine from freeing files and memory. Key
// and Value stay valid until the next move. The next move goes to the key after the current one, and fails with
// ErrCollected if versions were collected in the meantime.
func (c *Cursor) Release() {
	if c.it == nil {
		return
	}
	if !c.reverse && len(c.prefix) > 0 {
		c.prefixBuf, c.valueBuf = append(c.prefixBuf[:0], c.prefix...), append(c.valueBuf[:0], c.value...)
		c.prefix, c.value = c.prefixBuf, c.valueBuf
	}
	if c.state == cursorOn {
		c.seek, c.state = After(c.seek[:0], c.prefix), cursorSkip
	}
	err := c.it.Close()
	if c.it = nil; err != nil {
		c.stop(err)
	}
}

// reopen makes a new iterator after Release.
func (c *Cursor) reopen() bool {
	it, err := c.newIter()
	if err != nil {
		return c.stop(err)
	}
	c.it = it
	if err := c.readable(); err != nil { // must run after newIter, for the reason that scan gives
		return c.stop(err)
	}
	if c.state == cursorWaiting {
		c.it.SeekLT(c.prefix)
	}
	return true
}

// Key returns the logical key. It is valid until the next move.
func (c *Cursor) Key() []byte { return c.prefix[spaceLen:] }

// Value returns the value of the version shown. It is valid until the next move.
func (c *Cursor) Value() []byte { return c.value }

// Version returns the timestamp of the commit that wrote the version that the cursor shows.
func (c *Cursor) Version() Timestamp { return c.version }

// Deleted reports whether the version that the cursor shows is a tombstone. Only cursors of Changes, and those with
// ShowDeleted, show tombstones.
func (c *Cursor) Deleted() bool { return c.tombstone }

// Err returns the error that ended the scan early, or nil.
func (c *Cursor) Err() error { return c.err }

// Close closes the cursor and frees its iterator. It must be called once.
func (c *Cursor) Close() error {
	if c.it == nil {
		return nil // the range was empty, or Release has closed the iterator
	}
	return c.it.Close()
}
