package table

import (
	"bytes"
	"slices"

	"github.com/crowfoot-db/crowfoot/mvcc"
)

// maxAhead is the largest total size in bytes of the row values that ReadAhead keeps. Rows that ReadAhead has not kept
// are read one by one after Reopen.
const maxAhead = 512 << 10

// ahead holds the rows that ReadAhead has read in one call from a BatchView. Reopen later asks for each of these rows
// by its key.
type ahead struct {
	keys   []byte     // the keys that Expect has announced, one after the other
	points []aheadRow // one for each announced key, in the order of the calls of Expect
	next   int        // the index in points of the first key that Reopen has not asked for
	vals   []byte     // the values of the rows that ReadAhead has found

	order  []int32  // indexes into points, by descending key
	sorted [][]byte // the announced keys in descending order, for GetEach
}

// aheadRow is a key that Expect has announced. read says whether ReadAhead has read the key. If it has, ok says whether
// it found a row there, and val is the value of that row.
type aheadRow struct {
	key, val slot
	read, ok bool
}

// slot is the position of a slice in a buffer.
type slot struct{ from, to int }

func (s slot) of(b []byte) []byte { return b[s.from:s.to:s.to] }

// Forget drops all keys that Expect has announced, and all rows that were read ahead.
func (r *Rows) Forget() {
	if a := r.ahead; a != nil {
		a.keys, a.points, a.next = a.keys[:0], a.points[:0], 0
	}
}

// Expect announces the key of a row for which Reopen will ask. Reopen should ask for the rows in the order in which
// they were announced: a row that is asked for out of order is not taken from the rows that were read ahead.
func (r *Rows) Expect(key []byte) {
	if r.ahead == nil {
		r.ahead = new(ahead)
	}
	a := r.ahead
	from := len(a.keys)
	a.keys = append(a.keys, key...)
	a.points = append(a.points, aheadRow{key: slot{from, len(a.keys)}})
}

// ReadAhead reads the rows at the announced keys with one call of view.GetEach. The parameter since is a hint: the read
// is faster if most of the rows were written at or after that timestamp; 0 means that nothing is known. kept is the
// memory in bytes that the keys and the rows take.
func (r *Rows) ReadAhead(view BatchView, since mvcc.Timestamp) (kept int, err error) {
	a := r.ahead
	if a == nil {
		return 0, nil
	}
	a.sort()
	a.vals = a.vals[:0]
	err = view.GetEach(r.ctx, a.sorted, since, func(i int, val []byte, ok bool) bool {
		from := len(a.vals)
		if len(val) > LargeRow || from+len(val) > maxAhead {
			return false
		}
		a.vals = append(a.vals, val...)
		p := &a.points[a.order[i]]
		p.val, p.read, p.ok = slot{from, len(a.vals)}, true, ok
		return true
	})
	return cap(a.keys) + cap(a.vals), err
}

func (a *ahead) sort() {
	a.order, a.sorted = a.order[:0], a.sorted[:0]
	for i := range a.points {
		a.order = append(a.order, int32(i))
	}
	slices.SortFunc(a.order, func(i, j int32) int { return bytes.Compare(a.key(j), a.key(i)) })
	for _, i := range a.order {
		a.sorted = append(a.sorted, a.key(i))
	}
}

func (a *ahead) key(i int32) []byte { return a.points[i].key.of(a.keys) }

// pop returns the value of the row at key from the rows that were read ahead; ok is false if no row has this key. read
// is false if key is not the next announced key, or if ReadAhead has not read this key.
func (a *ahead) pop(key []byte) (val []byte, ok, read bool) {
	if a == nil || a.next == len(a.points) {
		return nil, false, false
	}
	p := &a.points[a.next]
	a.next++
	if !p.read || !bytes.Equal(p.key.of(a.keys), key) {
		return nil, false, false
	}
	return p.val.of(a.vals), p.ok, true
}
