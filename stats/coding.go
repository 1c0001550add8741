package stats

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/crowfoot-db/crowfoot/stats/distribution"
)

// A record is the stored form of a board: the heaviest tallies, the heaviest first, and the sum of all others (rest).
//
//	record        version1 | number of sums | rest, as a tally | number of tallies | tally...
//	tally         fingerprint8 | kind1 | truncated1 | name | tag | list | list | list | sum... | distribution |
//	              written | samples
//	list          number of strings | string...
//	string        length | bytes
//	distribution  0 if there is none; else count | sum | high and low half of the sum of squares |
//	              number of buckets | bucket...
//	written       number of tables | (table | rows | bytes)...
//	samples       number of lock requests | (column | mode | tag)...
//	set           version1 | minute | (family name | length of the record | record)...
//
// Numbers are varints, in zigzag coding where they can be negative. A digit after a name, such as 8, means a fixed
// width in bytes, big-endian.
type record struct {
	tallies []*tally
	rest    *tally
}

// recordVersion is the first byte of every stored value.
const recordVersion = 1

var errMalformed = errors.New("malformed record")

func (r record) encode(f *family) []byte {
	b := binary.AppendUvarint([]byte{recordVersion}, uint64(f.sums))
	b = r.rest.append(b, f.sums)
	b = binary.AppendUvarint(b, uint64(len(r.tallies)))
	for _, t := range r.tallies {
		b = t.append(b, f.sums)
	}
	return b
}

func (t *tally) append(b []byte, sums int) []byte {
	s := &t.subject
	b = binary.BigEndian.AppendUint64(b, uint64(s.fingerprint))
	truncated := byte(0)
	if s.truncated {
		truncated = 1
	}
	b = append(b, s.kind, truncated)
	b = appendString(appendString(b, s.name), s.tag)
	for _, l := range s.lists {
		b = binary.AppendUvarint(b, uint64(len(l)))
		for _, e := range l {
			b = appendString(b, e)
		}
	}
	for _, n := range t.sums[:sums] {
		b = binary.AppendVarint(b, n)
	}
	b = appendDistribution(b, t.dist)
	b = binary.AppendUvarint(b, uint64(len(t.written)))
	for _, w := range t.written {
		b = binary.AppendVarint(binary.AppendVarint(appendString(b, w.table), w.rows), w.bytes)
	}
	b = binary.AppendUvarint(b, uint64(len(t.samples)))
	for _, r := range t.samples {
		b = appendString(appendString(appendString(b, r.Column), r.Mode), r.Tag)
	}
	return b
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendDistribution(b []byte, d *distribution.Distribution) []byte {
	if d == nil || d.Count == 0 {
		return append(b, 0)
	}
	b = binary.AppendUvarint(b, uint64(d.Count))
	b = binary.AppendUvarint(b, uint64(d.Sum))
	b = binary.AppendUvarint(binary.AppendUvarint(b, d.High), d.Low)
	counts := d.Histogram().Buckets
	b = binary.AppendUvarint(b, uint64(len(counts)))
	for _, n := range counts {
		b = binary.AppendUvarint(b, uint64(n))
	}
	return b
}

// encode returns the stored form of a set, which holds the statistics of the current minute. It treats the minute as if
// it were over: for each board, it stores the heaviest tallies and the sum of all others.
func (s *set) encode() []byte {
	b := binary.AppendVarint([]byte{recordVersion}, s.minute)
	for i, board := range s.boards {
		if board == nil {
			continue
		}
		b = appendString(b, families[i].name)
		b = appendString(b, string(board.closed().encode(families[i])))
	}
	return b
}

func decodeSet(b []byte) (*set, error) {
	d := decoder{rest: b}
	d.version()
	s := &set{minute: d.varint()}
	for d.err == nil && len(d.rest) > 0 {
		name, data := d.string(), d.string()
		for i, f := range families {
			if f.name != name {
				continue
			}
			r, err := decodeRecord([]byte(data))
			if err != nil {
				return nil, err
			}
			s.board(i).mergeRecord(r)
		}
	}
	return s, d.err
}

func decodeRecord(b []byte) (r record, err error) {
	d := decoder{rest: b}
	d.version()
	sums := d.count()
	r.rest = d.tally(sums)
	for n := d.count(); n > 0 && d.err == nil; n-- {
		r.tallies = append(r.tallies, d.tally(sums))
	}
	if d.err == nil && len(d.rest) > 0 {
		d.err = errMalformed
	}
	return r, d.err
}

// decoder reads a stored value. After an error its methods return zero values.
type decoder struct {
	rest []byte
	err  error
}

func (d *decoder) version() {
	if v := d.bytes(1); d.err == nil && v[0] != recordVersion {
		d.err = fmt.Errorf("record of version %d, which this release cannot read", v[0])
	}
}

func (d *decoder) tally(sums int) *tally {
	t := new(tally)
	s := &t.subject
	s.fingerprint = int64(d.fixed())
	if b := d.bytes(2); d.err == nil {
		s.kind, s.truncated = b[0], b[1] != 0
	}
	s.name, s.tag = d.string(), d.string()
	for i := range s.lists {
		for n := d.count(); n > 0; n-- {
			s.lists[i] = append(s.lists[i], d.string())
		}
	}
	for i := range sums {
		if n := d.varint(); i < len(t.sums) {
			t.sums[i] = n
		}
	}
	t.dist = d.distribution()
	for n := d.count(); n > 0; n-- {
		t.written = append(t.written, written{d.string(), d.varint(), d.varint()})
	}
	for n := d.count(); n > 0; n-- {
		t.samples = append(t.samples, LockRequest{d.string(), d.string(), d.string()})
	}
	return t
}

func (d *decoder) distribution() *distribution.Distribution {
	count := d.uvarint()
	if count == 0 {
		return nil
	}
	dist := &distribution.Distribution{Count: int64(count)}
	dist.Sum = time.Duration(d.uvarint())
	dist.High, dist.Low = d.uvarint(), d.uvarint()
	n := d.count()
	if n > len(dist.Buckets) {
		d.err = errMalformed
		return nil
	}
	for i := range n {
		dist.Buckets[i] = int64(d.uvarint())
	}
	return dist
}

func (d *decoder) bytes(n int) []byte {
	if d.err != nil || n > len(d.rest) {
		d.err, d.rest = cmp.Or(d.err, errMalformed), nil
		return make([]byte, min(n, 8))
	}
	b := d.rest[:n]
	d.rest = d.rest[n:]
	return b
}

func (d *decoder) fixed() uint64 { return binary.BigEndian.Uint64(d.bytes(8)) }

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.rest)
	d.skip(n)
	return v
}

func (d *decoder) varint() int64 {
	v, n := binary.Varint(d.rest)
	d.skip(n)
	return v
}

func (d *decoder) skip(n int) {
	if n <= 0 {
		d.bytes(math.MaxInt)
		return
	}
	d.rest = d.rest[n:]
}

// count reads the number of elements that follow. Each element takes at least one byte, so a number above the remaining
// bytes is an error.
func (d *decoder) count() int {
	n := d.uvarint()
	if n > uint64(len(d.rest)) {
		d.bytes(math.MaxInt)
		return 0
	}
	return int(n)
}

func (d *decoder) string() string { return string(d.bytes(d.count())) }
