// Package mvcc keeps every version of a key for as long as reads in the past may need it. A write never replaces
// bytes: it adds a version at the write's commit timestamp, and a delete adds a tombstone. A read at T sees, of each
// key, the newest version at or below T.
//
// Each version is one key-value pair in the kv.Store:
//
//	key    space (4 bytes, big endian) | logical key, ends in 00 | ^timestamp (8 bytes, big endian) | 09
//	value  01 and the value, or nothing at all for a tombstone
//
// The timestamp is inverted so that newer versions come first. The last byte tells the store how long the suffix is.
// Keys are ordered by bytes.Compare everywhere. So that this order is also the order of the logical keys, no logical
// key may begin with another one. Package table, which makes the keys, ensures that.
//
// A space holds the keys of one database. Space 0 holds records about the store, without versions. The key of such a
// record is a name that ends in 00; the names of package mvcc begin with "mvcc/", those of package txn with "txn/".
//
// The package promises that a read at T always gives the same answer, or ErrCollected once the versions that the read
// needs may have been deleted. A query of the changes since T fails in the same way, because a collected tombstone
// leaves no trace of the deletion. Package txn takes the locks and decides which timestamps requests may read.
//
// Imports of this module: kv.
package mvcc

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"github.com/crowfoot-db/crowfoot/kv"
)

// Space is the number of a database in its store. It is the first part of each stored key.
type Space uint32

// ErrCollected is the error of a read at a timestamp whose versions may have been deleted by Collect, and of a query
// of the changes since such a timestamp.
var ErrCollected = errors.New("versions at this timestamp have been collected")

const (
	spaceLen  = 4
	suffixLen = 9
	// suffixMark is the last byte of every key that has a version. Keys without a version never end in it.
	suffixMark = 0x09
	// liveMark is the first byte of the value of a version that is not a tombstone.
	liveMark = 0x01
)

// Store holds the versions in a kv.Store.
type Store struct {
	kv kv.Store

	mu     sync.Mutex
	spaces map[Space]*Versions
}

// New returns the versions in store.
func New(store kv.Store) *Store {
	return &Store{kv: store, spaces: map[Space]*Versions{}}
}

// KV returns the kv.Store that holds the versions.
func (s *Store) KV() kv.Store { return s.kv }

// Versions holds the versions of one space. It may be used by many goroutines.
type Versions struct {
	store *Store
	space Space
	// horizon is the oldest timestamp at which the space may be read. Collect raises it before it deletes anything.
	horizon    atomic.Int64
	horizonErr error
	gone       error // the error of all reads after Drop; Drop sets it before it raises horizon
}

// In returns the Versions of a space. All calls for one space return the same Versions.
func (s *Store) In(space Space) *Versions {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.spaces[space]
	if v == nil {
		v = &Versions{store: s, space: space}
		v.horizonErr = v.loadHorizon()
		s.spaces[space] = v
	}
	return v
}

// Space returns the space of the versions.
func (v *Versions) Space() Space { return v.space }

// KV returns the kv.Store that holds the versions. Callers keep their own records about the space in it, too.
func (v *Versions) KV() kv.Store { return v.store.kv }

// After appends to dst a bound that sorts after key and after all stored versions of key. key ends in a sentinel byte,
// and After increases that byte by one. The bound key+"\x00" would be too low, because the versions of key sort after
// it.
func After(dst, key []byte) []byte {
	dst = append(dst, key...)
	dst[len(dst)-1]++
	return dst
}

// bound appends to dst the stored form of bound, which is the start or the end of a range of logical keys. The stored
// form begins with the space. If bound does not end in 00, the stored form gets a final 00, so that the store never
// takes it for a version. This does not change the range, since all logical keys end in 00.
func (v *Versions) bound(dst, bound []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(v.space))
	dst = append(dst, bound...)
	if n := len(bound); n > 0 && bound[n-1] != 0 {
		dst = append(dst, 0)
	}
	return dst
}

// end appends the stored form of the end of a range; a nil end is the end of the space.
func (v *Versions) end(dst, end []byte) []byte {
	if end == nil {
		return binary.BigEndian.AppendUint32(dst, uint32(v.space)+1)
	}
	return v.bound(dst, end)
}

// appendVersion appends the stored key of one version of key.
func (v *Versions) appendVersion(dst, key []byte, ts Timestamp) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(v.space))
	dst = append(dst, key...)
	return appendSuffix(dst, ts)
}

func appendSuffix(dst []byte, ts Timestamp) []byte {
	dst = binary.BigEndian.AppendUint64(dst, ^uint64(ts))
	return append(dst, suffixMark)
}

// splitVersion splits a stored key into its prefix (the space and the logical key) and its timestamp.
func splitVersion(key []byte) (prefix []byte, ts Timestamp, err error) {
	n := len(key) - suffixLen
	if n <= spaceLen || key[len(key)-1] != suffixMark {
		return nil, 0, fmt.Errorf("store holds %x, which is no version", key)
	}
	return key[:n], timestampAt(key, n), nil
}

func timestampAt(key []byte, n int) Timestamp {
	return Timestamp(^binary.BigEndian.Uint64(key[n:]) & math.MaxInt64)
}

// Ends returns the first and the last key in [start, end) that have a stored version, tombstones included; nil if
// there is none.
func (v *Versions) Ends(start, end []byte) (first, last []byte, err error) {
	it, err := v.store.kv.NewIter(v.bound(nil, start), v.end(nil, end))
	if err != nil {
		return nil, nil, err
	}
	defer it.Close()
	if it.First() {
		if first, err = logicalKey(it.Key()); err == nil && it.Last() {
			last, err = logicalKey(it.Key())
		}
	}
	return first, last, errors.Join(err, it.Error())
}

// From returns the first key in [place, end) that has a stored version; nil if there is none. place may be a key or any
// other bytes. But place must not consist of a stored key and further bytes: versions of that stored key can sort after
// place, and From would then return the stored key, although it lies before place.
func (v *Versions) From(place, end []byte) (key []byte, err error) {
	it, err := v.store.kv.NewIter(v.bound(nil, place), v.end(nil, end))
	if err != nil {
		return nil, err
	}
	defer it.Close()
	if it.First() {
		key, err = logicalKey(it.Key())
	}
	return key, errors.Join(err, it.Error())
}

// logicalKey returns a copy of the logical key of a stored version.
func logicalKey(stored []byte) ([]byte, error) {
	prefix, _, err := splitVersion(stored)
	if err != nil {
		return nil, err
	}
	return bytes.Clone(prefix[spaceLen:]), nil
}

// Flush writes the versions that are only in memory to table files, so that Size counts them. It does nothing if these
// versions take fewer than atLeast bytes.
func (v *Versions) Flush(ctx context.Context, atLeast uint64) error {
	return v.store.kv.Flush(ctx, atLeast)
}

// Size estimates the disk space in bytes of all versions of keys in [start, end). The bounds may be any bytes. Size
// does not count versions that are not yet in table files (see Flush).
func (v *Versions) Size(start, end []byte) (uint64, error) {
	return v.store.kv.ApproximateSize(v.bound(nil, start), v.end(nil, end))
}
