package table

import (
	"bytes"
	"slices"

	"github.com/crowfoot-db/crowfoot/mvcc"
)

// maxAhead is how many bytes of rows are read ahead at most. What does not fit is read when it is asked for.
const maxAhead = 512 << 10

// ahead is rows that Rows reads together before it is asked for them one by one, each by Reopen with its key. It belongs to a BatchView.
type ahead struct {
	keys   []byte     // one after the other
	points []aheadRow // in the order in which they will be asked for
	next   int        // the first that was not asked for
	vals   []byte     // of the rows that were found

	order  []int32  // numbers of points, the last key first
	sorted [][]byte // their keys
}

// aheadRow is a key, and what was read of it.
type aheadRow struct {
	key, val slot
	read, ok bool
}

// slot is a part of a buffer.
type slot struct{ from, to int }

func (s slot) of(b []byte) []byte { return b[s.from:s.to:s.to] }

// Forget drops what was announced and read ahead.
func (r *Rows) Forget() {
	if a := r.ahead; a != nil {
		a.keys, a.points, a.next = a.keys[:0], a.points[:0], 0
	}
}

// Expect announces that the row at key will be asked for, after those that were announced before it.
func (r *Rows) Expect(key []byte) {
	if r.ahead == nil {
		r.ahead = new(ahead)
	}
	a := r.ahead
	from := len(a.keys)
	a.keys = append(a.keys, key...)
	a.points = append(a.points, aheadRow{key: slot{from, len(a.keys)}})
}

// ReadAhead reads the rows that were announced, the last key first. Most of them should have been written at or after since; 0 is unknown. It
// returns how many bytes it keeps for them.
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

// take gives what was read of key. If it was not read, or is not the one that was expected, read is false.
func (a *ahead) take(key []byte) (val []byte, ok, read bool) {
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
