package mvcc

import (
	"errors"
	"sync"

	"github.com/crowfoot-db/crowfoot/kv"
)

// seekKeys pools buffers for the keys that point reads seek.
var seekKeys = sync.Pool{New: func() any { return new([]byte) }}

// Get returns the newest version of key at or below the timestamp at. It appends the value to buf[:0]. ok is false if
// there is no version, or if it is a tombstone; in the second case, version is the timestamp of the tombstone.
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
	// readable must run after the read. Collect raises the horizon before it deletes versions. So if the read missed
	// versions, readable sees the new horizon.
	return val, version, ok, v.readable(at)
}

// lookUp finds the newest version of a key at or below a timestamp. The parameter seek is the stored key of a version
// with this key and this timestamp. The iterator owns the bytes of the value. ok is false if there is no such version,
// or if it is a tombstone.
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

// readable returns an error if versions may be missing that a read at this timestamp needs, or that a query of the
// changes since this timestamp needs. Otherwise it returns nil.
func (v *Versions) readable(at Timestamp) error {
	if v.horizonErr != nil {
		return v.horizonErr
	}
	switch h := Timestamp(v.horizon.Load()); {
	case h == dropped: // the next case would let reads at Latest succeed, because dropped equals Latest
		return v.gone
	case at < h:
		return ErrCollected
	}
	return nil
}

// Gone returns the error that all reads of the space return if the space was dropped, else nil.
func (v *Versions) Gone() error {
	if Timestamp(v.horizon.Load()) == dropped {
		return v.gone
	}
	return nil
}

// ChangedSince reports whether any key in [start, end) has a version that is newer than the timestamp since. The error
// is ErrCollected if some of these versions may have been collected: Collect deletes a tombstone when the key has no
// older version left, so no trace of the deletion remains.
func (v *Versions) ChangedSince(start, end []byte, since Timestamp) (bool, error) {
	c, err := v.Changes(start, end, since, Latest)
	if err != nil {
		return false, err
	}
	changed := c.Next()
	return changed, errors.Join(c.Err(), c.Close())
}

// KeyChangedSince reports whether a key has a version that is newer than the timestamp since. Its errors are those of
// ChangedSince.
func (v *Versions) KeyChangedSince(key []byte, since Timestamp) (bool, error) {
	_, version, _, err := v.Get(key, Latest, nil)
	if err == nil {
		err = v.readable(since) // must run after the read, as in Get
	}
	return version > since, err
}
