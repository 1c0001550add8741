package table

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"iter"
	"math/bits"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/value"
)

// These bytes mark the end of a key or of a bound of a range of keys. After a complete key part comes 0x00 (the end),
// another key part (0x01 to 0xFE) or the ID of a table or index (0x02 to 0xF4). So if P is a key that was cut after
// some part:
//
//	P 00       is the key of the row P itself, the first key that begins with P
//	P 01 00    sorts after that row and before the rows interleaved in it
//	P FF 00    sorts after all keys that begin with P
//
// Bounds end in 00 like keys, so that package mvcc does not take their last bytes for a version.
const (
	keyEnd      = 0x00
	afterRow    = 0x01
	afterPrefix = 0xFF
)

// Layout describes the keys of a table's rows or of an index's entries, encodes them from values and decodes them. A
// key consists of:
//
//	ID of the root table, its key parts, [ID of its child, the child's further key parts], ..., 00
//
// The keys of an index that is interleaved in a table begin with the key parts of that table, as the keys of a child
// table do. The keys of any other index begin with the ID of the index. A Layout is immutable.
type Layout struct {
	Table *schema.Table
	Index *schema.Index // nil for the rows of the table themselves
	// Key lists all parts of the stored key. For an index these are the declared parts, followed by the suffix, which
	// holds the parts of the primary key that are not declared.
	Key []schema.KeyPart

	declared int // the number of parts of Key that a key in a KeySet must give
	markers  []marker
	columns  []int // for each column of Table, by Ordinal, its position in Key; -1 if it is not in the key
}

// marker is the ID of a table or index inside a key. The field before is the index of the key part that follows the ID.
type marker struct {
	before int
	id     []byte
}

// TableLayout returns the layout of the rows of t.
func TableLayout(t *schema.Table) *Layout {
	l := &Layout{Table: t, Key: t.Key, declared: len(t.Key)}
	l.markers = pathMarkers(t)
	l.columns = keyColumns(t, l.Key)
	return l
}

// IndexLayout returns the layout of the entries of x.
func IndexLayout(x *schema.Index) *Layout {
	l := &Layout{Table: x.Table, Index: x, declared: len(x.Key)}
	l.Key = append(append(make([]schema.KeyPart, 0, len(x.Key)+len(x.Suffix)), x.Key...), x.Suffix...)
	if x.Parent != nil {
		l.markers = append(pathMarkers(x.Parent), marker{before: len(x.Parent.Key)})
	} else {
		l.markers = []marker{{}}
	}
	l.markers[len(l.markers)-1].id = appendID(nil, x.ID)
	l.columns = keyColumns(x.Table, l.Key)
	return l
}

func pathMarkers(t *schema.Table) []marker {
	path := t.Path()
	markers := make([]marker, len(path), len(path)+1)
	for i, p := range path {
		markers[i].id = appendID(nil, p.ID)
		if p.Parent != nil {
			markers[i].before = len(p.Parent.Key)
		}
	}
	return markers
}

func keyColumns(t *schema.Table, key []schema.KeyPart) []int {
	columns := make([]int, len(t.Columns))
	for i := range columns {
		columns[i] = -1
	}
	for i, p := range key {
		columns[p.Column.Ordinal] = i
	}
	return columns
}

// shortIDs is the largest ID that appendID encodes in one byte. The value of that byte is ID + 1, so it is at least
// 0x02. A larger ID is encoded as the byte longID + the number of the ID's bytes, followed by these bytes.
const (
	shortIDs = 0xEE
	longID   = 0xF0
)

// appendID appends the ID of a table or index, encoded so that the bytes sort as the numbers do.
func appendID(dst []byte, id schema.TableID) []byte {
	if id <= shortIDs {
		return append(dst, byte(id)+1)
	}
	n := (bits.Len32(uint32(id)) + 7) / 8
	dst = append(dst, longID+byte(n))
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], uint32(id))
	return append(dst, b[4-n:]...)
}

// decodeID decodes the ID at the start of key; more bytes may follow. It returns false if key does not start with an
// ID.
func decodeID(key []byte) (schema.TableID, bool) {
	if len(key) == 0 || key[0] <= afterRow || key[0] > longID+4 {
		return 0, false
	}
	if key[0] <= shortIDs+1 {
		return schema.TableID(key[0] - 1), true
	}
	n := int(key[0]) - longID
	if n < 1 || len(key) <= n {
		return 0, false
	}
	var b [4]byte
	copy(b[4-n:], key[1:1+n])
	return schema.TableID(binary.BigEndian.Uint32(b[:])), true
}

// Name returns the name of the table or index.
func (l *Layout) Name() string {
	if l.Index != nil {
		return l.Index.FullName()
	}
	return l.Table.FullName()
}

// ID returns the ID of the table or index.
func (l *Layout) ID() schema.TableID {
	if l.Index != nil {
		return l.Index.ID
	}
	return l.Table.ID
}

// KeySetColumns returns the key parts that a key in a KeySet must give, in order. A key for an index may also give
// parts of the suffix after them.
func (l *Layout) KeySetColumns() []schema.KeyPart { return l.Key[:l.declared] }

// AppendKey appends the key of the row or entry with these key parts. vals has one value for each element of l.Key.
func (l *Layout) AppendKey(dst []byte, vals []value.Value) []byte {
	return append(l.appendPrefix(dst, vals), keyEnd)
}

// appendPrefix appends the common prefix of all keys whose first parts have the values vals. If a table or index ID
// follows the last of these parts, the prefix includes that ID.
func (l *Layout) appendPrefix(dst []byte, vals []value.Value) []byte {
	markers := l.markers
	for i := 0; ; i++ {
		for len(markers) > 0 && markers[0].before == i {
			dst = append(dst, markers[0].id...)
			markers = markers[1:]
		}
		if i == len(vals) {
			return dst
		}
		dst = value.AppendKey(dst, vals[i], l.Key[i].Desc)
	}
}

// appendRowKey appends the key of a whole row, whose values are indexed by Ordinal. It appends the positions of
// pending commit timestamps to pending.
func (l *Layout) appendRowKey(dst []byte, row []value.Value, pending []Pending) ([]byte, []Pending) {
	start := len(dst)
	markers := l.markers
	for i := 0; ; i++ {
		for len(markers) > 0 && markers[0].before == i {
			dst = append(dst, markers[0].id...)
			markers = markers[1:]
		}
		if i == len(l.Key) {
			return append(dst, keyEnd), pending
		}
		p := l.Key[i]
		v := row[p.Column.Ordinal]
		if v.IsPending() {
			pending = append(pending, Pending{Offset: len(dst) - start + value.KeyTimestampOffset, Desc: p.Desc})
		}
		dst = value.AppendKey(dst, v, p.Desc)
	}
}

// maxStoredParts is the largest number of parts in a stored key: 16 parts of an index, followed by 16 parts of the
// primary key of its table.
const maxStoredParts = 32

// DecodeKey decodes the key of a row or entry and appends the values of its parts to dst.
func (l *Layout) DecodeKey(dst []value.Value, key []byte) ([]value.Value, error) {
	var buf [maxStoredParts]int
	offsets := buf[:len(l.Key)]
	if at := l.walk(key, offsets); at.where != ownKey {
		return dst, fmt.Errorf("key %x is not one of %s", key, l.Name())
	}
	for i, p := range l.Key {
		v, _, err := value.DecodeKey(key[offsets[i]:], p.Column.Type, p.Desc)
		if err != nil {
			return dst, fmt.Errorf("key of %s: %w", l.Name(), err)
		}
		dst = append(dst, v)
	}
	return dst, nil
}

// DecodeStart decodes the complete key parts at the start of a key or of a range's bound. It returns their values and
// the number of bytes that they take. The number is 0 if key is not in the key range of the layout.
func (l *Layout) DecodeStart(key []byte) (vals []value.Value, length int) {
	markers, rest := l.markers, key
	for i := 0; ; i++ {
		for len(markers) > 0 && markers[0].before == i {
			id := markers[0].id
			if !bytes.HasPrefix(rest, id) {
				return nil, 0
			}
			rest, markers = rest[len(id):], markers[1:]
		}
		if i == len(l.Key) {
			break
		}
		v, more, err := value.DecodeKey(rest, l.Key[i].Column.Type, l.Key[i].Desc)
		if err != nil {
			break
		}
		vals, rest = append(vals, v), more
	}
	if len(markers) > 0 {
		return nil, 0
	}
	return vals, len(key) - len(rest)
}

// LayoutOf returns the layout of the table or index with this ID, or nil if the catalog has none.
func LayoutOf(c *schema.Catalog, id schema.TableID) *Layout {
	if t := c.TableByID(id); t != nil {
		return TableLayout(t)
	}
	if x := c.IndexByID(id); x != nil {
		return IndexLayout(x)
	}
	return nil
}

// Layouts yields the layouts of all tables and indexes of a catalog.
func Layouts(c *schema.Catalog) iter.Seq[*Layout] {
	return func(yield func(*Layout) bool) {
		for t := range c.Tables() {
			if !yield(TableLayout(t)) {
				return
			}
			for _, x := range t.Indexes {
				if !yield(IndexLayout(x)) {
					return
				}
			}
		}
	}
}

// Locate finds the table or index in which a key, or the bound of a range, lies. It returns the layout of that table
// or index, and the values of the key parts at the start of key. found is nil if the key lies in no table or index.
func Locate(c *schema.Catalog, key []byte) (found *Layout, vals []value.Value) {
	length := 0
	for {
		id, ok := decodeID(key[length:])
		if !ok {
			return found, vals
		}
		below := LayoutOf(c, id)
		if below == nil {
			return found, vals
		}
		list, n := below.DecodeStart(key)
		if n <= length {
			return found, vals
		}
		found, vals, length = below, list, n
	}
}

// Space returns the smallest span that holds all keys of the table or index. alone is true if every other key in the
// span belongs to a table or index that is interleaved in this table.
func (l *Layout) Space() (span Span, alone bool) {
	prefix := l.appendPrefix(nil, nil)
	return prefixSpan(prefix), len(l.markers) == 1
}

// Reaches reports whether keys of the table or index can lie in the range r. A nil Start of r means the start of the
// database, and a nil End means its end.
func (l *Layout) Reaches(r Span) bool {
	space, _ := l.Space()
	if bytes.Compare(r.Start, space.Start) <= 0 {
		return r.End == nil || bytes.Compare(l.next(space.Start), r.End) < 0
	}
	return bytes.Compare(r.Start, space.End) < 0 && (r.End == nil || bytes.Compare(l.next(r.Start), r.End) < 0)
}

// next returns the first position, at or after the bound in the parameter from, at which a key of the layout can lie.
// The bound must lie in the layout's space.
func (l *Layout) next(from []byte) []byte {
	var offsets [maxStoredParts]int
	at := l.walk(from, offsets[:len(l.Key)])
	if at.where == ownKey || at.where == badKey { // walk finds badKey, too, if a bound has fewer parts than a key
		return from
	}
	return l.appendSkip(nil, from, at)
}

func prefixSpan(prefix []byte) Span {
	return Span{Start: appendBound(nil, prefix, keyEnd), End: appendBound(nil, prefix, afterPrefix)}
}

// appendBound appends the bound that consists of prefix and one of the ends keyEnd, afterRow or afterPrefix.
func appendBound(dst, prefix []byte, end byte) []byte {
	dst = append(dst, prefix...)
	if end != keyEnd {
		dst = append(dst, end)
	}
	return append(dst, keyEnd)
}

// where says how a key lies relative to the keys of a layout.
type where uint8

const (
	ownKey where = iota // the key of a row or entry of the layout
	badKey              // malformed, or outside of the span that Space returns
	// beforeOwn is the key of a row of an ancestor table, or of a row that is interleaved in an ancestor row and sorts
	// before the rows of the layout.
	beforeOwn
	// afterOwn is the key of a row that is interleaved in an ancestor row and sorts after the rows of the layout, or of
	// a row that is interleaved in a row of the layout.
	afterOwn
)

// place is the result of walk: where a key lies, and how many of its bytes walk needed to decide that.
type place struct {
	where  where
	length int
	marker int // for beforeOwn: the index of the marker that a key of the layout would have after these bytes
}

// Owns reports whether key is the key of a row or entry of the layout.
func (l *Layout) Owns(key []byte) bool {
	var buf [maxStoredParts]int
	return l.walk(key, buf[:len(l.Key)]).where == ownKey
}

// walk says where key lies relative to the keys of this layout, and stores in offsets the offset at which each part of
// key begins. It stops where key differs from the keys of this layout.
func (l *Layout) walk(key []byte, offsets []int) place {
	n, m := 0, 0
	for i := 0; ; i++ {
		for m < len(l.markers) && l.markers[m].before == i {
			id := l.markers[m].id
			if !bytes.HasPrefix(key[n:], id) {
				return place{l.misplaced(key[n:], m), n, m}
			}
			n += len(id)
			m++
		}
		if i == len(l.Key) {
			break
		}
		rest, err := value.SkipKey(key[n:], l.Key[i].Column.Type, l.Key[i].Desc)
		if err != nil {
			return place{where: badKey, length: n}
		}
		offsets[i] = n
		n = len(key) - len(rest)
	}
	switch {
	case n == len(key)-1 && key[n] == keyEnd:
		return place{where: ownKey, length: n}
	case n >= len(key)-1:
		return place{where: badKey, length: n}
	}
	return place{where: afterOwn, length: n}
}

// PrefixLen returns how many bytes the first key parts of key take; the parameter parts is the number of these parts.
// key is a key of the layout or a bound of a range of such keys. If a table or index ID follows the last of these
// parts, the length includes that ID. If key ends earlier, PrefixLen returns the length of key.
func (l *Layout) PrefixLen(key []byte, parts int) int {
	n, markers := 0, l.markers
	for i := 0; ; i++ {
		for len(markers) > 0 && markers[0].before == i {
			n += len(markers[0].id)
			markers = markers[1:]
		}
		if i == parts {
			return n
		}
		rest, err := value.SkipKey(key[n:], l.Key[i].Column.Type, l.Key[i].Desc)
		if err != nil {
			return len(key)
		}
		n = len(key) - len(rest)
	}
}

// misplaced says how a key lies relative to the keys of the layout (see the type where), if the key has other bytes in
// the place where a key of the layout has marker m. rest holds the key's bytes from that place on.
func (l *Layout) misplaced(rest []byte, m int) where {
	switch {
	case m == 0 || len(rest) == 0:
		return badKey
	case bytes.Compare(rest, l.markers[m].id) < 0:
		return beforeOwn
	}
	return afterOwn
}

// appendSkip appends the bound to which a scan can skip from key: no key of this layout lies between key and the bound.
// p is the result of walk for key; p.where must be beforeOwn or afterOwn.
func (l *Layout) appendSkip(dst, key []byte, p place) []byte {
	if p.where == afterOwn {
		return appendBound(dst, key[:p.length], afterPrefix)
	}
	dst = append(dst, key[:p.length]...)
	return appendBound(dst, l.markers[p.marker].id, keyEnd)
}
