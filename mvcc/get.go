package mvcc

import (
	"errors"
	"sync"

	"github.com/crowfoot-db/crowfoot/kv"
)

// seekKeys are buffers for the key that a point read seeks.
var seekKeys = sync.Pool{New: func() any { return new([]byte) }}

// Get returns the newest version of key at or below at, its value appended to
// buf[:0]. ok is false if there is none, or if it is a tombstone: then version
// is the tombstone's timestamp.
func (v *Versions) Get(key []byte, at Timestamp, buf []byte) (val []byte, version Timestamp, ok bool, err error) {
	it, err := v.store.kv.PointIter()
	if err != nil {
		return nil, 0, false, err
	}
	defer it.Close()
	seek := seekKeys.Get().(*[]byte)
	defer seekKeys.Put(seek)
	*seek = v.appendVersion((*seek)[:0], key, at)
	stored, version, ok, err := lookUp(it, *seek)
	if err != nil {
		return nil, 0, false, err
	}
	if ok {
		val = append(buf[:0], stored...)
	}
	// After the read: Collect raises the horizon before it deletes versions, so if the read missed some, this sees it.
	return val, version, ok, v.readable(at)
}

// lookUp finds the first version of a key at or after seek, which is one of its versions. The value is the iterator's own.
func lookUp(it kv.Iterator, seek []byte) (val []byte, version Timestamp, ok bool, err error) {
	if !it.SeekPrefixGE(seek) {
		return nil, 0, false, it.Error()
	}
	found := it.Key()
	stored, err := it.Value()
	if err != nil {
		return nil, 0, false, err
	}
	return stored[min(1, len(stored)):], timestampAt(found, len(found)-suffixLen), len(stored) > 0, nil
}

// readable tells whether versions at this timestamp are all there, and so whether all changes since are.
func (v *Versions) readable(at Timestamp) error {
	if v.horizonErr != nil {
		return v.horizonErr
	}
	switch h := Timestamp(v.horizon.Load()); {
	case h == dropped: // of Latest, too
		return v.gone
	case at < h:
		return ErrCollected
	}
	return nil
}

// Gone is the error of reads of a space that was dropped; nil if it was not.
func (v *Versions) Gone() error {
	if Timestamp(v.horizon.Load()) == dropped {
		return v.gone
	}
	return nil
}

// ChangedSince tells whether any key in [start, end) has a version above since. As for Changes, ErrCollected says that some of these may have been
// collected: a tombstone goes when nothing is left that it hides.
func (v *Versions) ChangedSince(start, end []byte, since Timestamp) (bool, error) {
	c, err := v.Changes(start, end, since, Latest)
	if err != nil {
		return false, err
	}
	changed := c.Next()
	return changed, errors.Join(c.Err(), c.Close())
}

// KeyChangedSince is ChangedSince for one key.
func (v *Versions) KeyChangedSince(key []byte, since Timestamp) (bool, error) {
	_, version, _, err := v.Get(key, Latest, nil)
	if err == nil {
		err = v.readable(since) // after the read, as in Get
	}
	return version > since, err
}
