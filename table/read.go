package table

import (
	"context"
	"fmt"

	"github.com/crowfoot-db/crowfoot/memory"
	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// Read reads rows of a table or entries of an index, in key order. It is what a
// READ request becomes, and an SQL query that needs no more than that.
type Read struct {
	*Projection
	Spans   []Span // sorted and disjoint, as Layout.Spans makes them
	Limit   int64  // 0 reads all
	Reverse bool
	// Deleted permits rows that were deleted to be among those of a range that is not read in Reverse, as far as the engine still has their keys: a read that looks
	// for the values of a key does not have to walk past many of them. The Projection must be of the key alone.
	Deleted bool
	// Partial says that the reader may stop before the end, even without a Limit.
	Partial bool
	Lock    Lock
	// AllowPending lets rows through that hold commit timestamps not known yet: Values then
	// gives them as pending. Otherwise reading such a column is an error.
	AllowPending bool
	// Memory is an account of the request. A large row is charged to another account beside it; nil counts nothing.
	Memory *memory.Account
}

// A stored row of more than LargeRow bytes is charged largeRowFactor times as many from when it is found until the next one is: the storage engine holds
// the block that the row is in, which is as large and lies outside Go's heap, and the row is copied once, by Get or by Values.
const (
	LargeRow       = 64 << 10
	largeRowFactor = 2
	maxWaiting     = 1 << 20
)

// Open begins the read. The Rows must be closed.
func (r Read) Open(ctx context.Context, view View) *Rows {
	rows := &Rows{ctx: ctx, view: view, read: r, left: r.Limit}
	rows.row.init(r.Projection)
	if r.Limit == 0 {
		rows.left = -1
	}
	return rows
}

// Reopen begins the read anew over other spans, in the memory that r has already; limit is as in Read.
func (r *Rows) Reopen(spans []Span, limit int64) error {
	err := r.closeCursor()
	r.read.Spans, r.read.Limit = spans, limit
	r.next, r.err, r.left = 0, err, limit
	if limit == 0 {
		r.left = -1
	}
	return err
}

// Rows walks over the rows of a Read. A row is not decoded before it is asked
// for, and then straight into what is asked for; it is good until the next call on Rows or on the View.
type Rows struct {
	ctx    context.Context
	view   View
	read   Read
	row    located
	next   int    // how many spans have been begun
	cursor Cursor // over the current span, or nil
	left   int64  // rows still to give, -1 for all
	skip   []byte // room for the bound to skip to
	err    error
	kept   []byte          // the current row, if Release was called
	large  *memory.Account // charged the current row if it is large; nil before the first such row
	ahead  *ahead          // rows that were read before they are asked for; nil before the first
}

// Next moves to the next row; false at the end.
func (r *Rows) Next() (bool, error) {
	if r.err != nil || r.left == 0 {
		return false, r.err
	}
	ok, err := r.advance()
	if ok && !r.read.AllowPending {
		if c := r.row.pendingColumn(); c != nil {
			err = usererror.PendingCommitTimestamp(r.read.Table.FullName(), c.Name)
		}
	}
	if err != nil {
		r.err = err
		return false, err
	}
	if !ok {
		r.left = 0
		r.large.Close()
		return false, nil
	}
	if r.left > 0 {
		r.left--
	}
	return true, nil
}

func (r *Rows) advance() (bool, error) {
	for {
		if r.cursor != nil {
			if ok, err := r.advanceCursor(); ok || err != nil {
				return ok, err
			}
			if err := r.closeCursor(); err != nil {
				return false, err
			}
		}
		if r.next == len(r.read.Spans) {
			return false, nil
		}
		span := r.read.Spans[r.next]
		if r.read.Reverse {
			span = r.read.Spans[len(r.read.Spans)-1-r.next]
		}
		r.next++
		if span.IsPoint() {
			if ok, err := r.get(span.Start); ok || err != nil {
				return ok, err
			}
			continue
		}
		var err error
		if r.cursor, err = r.view.Scan(r.ctx, span, r.read.scanOptions()); err != nil {
			r.cursor = nil
			return false, err
		}
	}
}

func (r *Read) scanOptions() ScanOptions {
	return ScanOptions{Lock: r.Lock, Reverse: r.Reverse, Deleted: r.Deleted, Partial: r.Partial || r.Limit > 0}
}

func (r *Rows) get(key []byte) (bool, error) {
	val, ok, read := r.ahead.take(key)
	if !read {
		var err error
		if val, ok, err = r.view.Get(r.ctx, key, r.read.Lock); err != nil {
			return false, err
		}
	}
	if !ok {
		return false, nil
	}
	if at := r.read.walk(key, r.row.offsets); at.where != ownKey {
		return false, r.corrupt(key)
	}
	return true, r.locate(key, val)
}

// locate makes the row at key, whose parts have been found, the current one.
func (r *Rows) locate(key, val []byte) error {
	if r.read.Deleted && len(val) == 0 {
		r.row.locateDeleted(key)
		return nil
	}
	if len(val) > LargeRow || r.large != nil {
		if err := r.hold(len(val)); err != nil {
			return err
		}
	}
	return r.row.locate(key, val)
}

// hold charges a row of n bytes in the place of the one before, and keeps that one's charge if it fits, so that a scan of large rows does not take
// a new one for each. A row that is charged more than maxWaiting bytes does not wait for room: it would hold the engine's block meanwhile.
func (r *Rows) hold(n int) error {
	need := int64(n) * largeRowFactor
	if charged := r.large.Used(); n > LargeRow && need <= charged && need > charged/2 {
		return nil
	}
	r.large.Close()
	if n <= LargeRow {
		return nil
	}
	if r.large == nil {
		r.large = r.read.Memory.Beside(memory.Stream)
	}
	if need <= maxWaiting {
		return r.large.Grow(r.ctx, need)
	}
	if !r.large.TryGrow(need) {
		return r.large.Refusal(need)
	}
	return nil
}

// StoredSize is how many bytes key and value of the current row have.
func (r *Rows) StoredSize() int { return len(r.row.key) + len(r.row.val) }

// IsLarge says whether the current row is larger than LargeRow.
func (r *Rows) IsLarge() bool { return len(r.row.val) > LargeRow }

// advanceCursor finds the next key of the layout in the current span, past what others keep there.
func (r *Rows) advanceCursor() (bool, error) {
	for r.cursor.Next() {
		key := r.cursor.Key()
		at := r.read.walk(key, r.row.offsets)
		switch {
		case at.where == ownKey:
			return true, r.locate(key, r.cursor.Value())
		case at.where == badKey:
			return false, r.corrupt(key)
		case !r.read.Reverse:
			r.skip = r.read.appendSkip(r.skip[:0], key, at)
			r.cursor.SkipTo(r.skip)
		}
	}
	return false, r.cursor.Err()
}

// SkipPrefix moves on, in a read of ranges that is not Reverse, so that Next finds the first row whose first parts of the key are not those of the
// current one.
func (r *Rows) SkipPrefix(parts int) {
	if r.cursor == nil {
		return
	}
	r.skip = appendBound(r.skip[:0], r.row.key[:r.read.PrefixLen(r.row.key, parts)], afterPrefix)
	r.cursor.SkipTo(r.skip)
}

// AppendKeyPart appends the bytes of one part of the current row's key. They compare as the part's values do in keys, or the other way round if
// inverted is set.
func (r *Rows) AppendKeyPart(dst []byte, part int, inverted bool) []byte {
	bytes := r.row.key[r.row.offsets[part]:]
	p := r.read.Key[part]
	rest, err := value.SkipKey(bytes, p.Column.Type, p.Desc)
	if err != nil {
		return dst // Next has walked over the key
	}
	from := len(dst)
	dst = append(dst, bytes[:len(bytes)-len(rest)]...)
	if inverted {
		for i := range dst[from:] {
			dst[from+i] = ^dst[from+i]
		}
	}
	return dst
}

func (r *Rows) corrupt(key []byte) error {
	return fmt.Errorf("malformed key in %s: %x", r.read.Name(), key)
}

// AppendWire appends the current row's values, each as an element of field
// `values` of google.spanner.v1.PartialResultSet, straight from the stored bytes.
func (r *Rows) AppendWire(dst []byte) []byte { return r.row.appendWire(dst, r.row.p.sources) }

// AppendColumn is AppendWire for one column.
func (r *Rows) AppendColumn(dst []byte, i int) []byte {
	return r.row.appendWire(dst, r.row.p.sources[i:i+1])
}

// Size is about how many bytes AppendWire appends. For a large row, or one with generated columns, it is no less than that.
func (r *Rows) Size() int {
	n := len(r.row.key) + len(r.row.val)
	if n <= LargeRow && len(r.row.virtual) == 0 {
		return n
	}
	n = 0
	for i := range r.row.p.sources {
		n += r.ColumnSize(i)
	}
	return n
}

// ColumnSize is how many bytes AppendColumn appends at most.
func (r *Rows) ColumnSize(i int) int {
	s := &r.row.p.sources[i]
	kind, place := r.row.from(s)
	switch kind {
	case fromKey:
		return value.RowWireSize(len(r.row.key), s.typ)
	case fromValue:
		return value.RowWireSize(len(r.row.fields[place].of(r.row.val)), s.typ)
	}
	return r.row.virtual[place].WireSize()
}

// DataSize is how many bytes of data AppendWire and AppendColumn have appended so far: those of the values, not of their coding.
func (r *Rows) DataSize() int64 { return r.row.data }

// Values appends the current row's values to dst; they stay good. A malformed one becomes the error of the following Next.
func (r *Rows) Values(dst []value.Value) []value.Value {
	for i := range r.row.p.sources {
		v, err := r.row.decode(r.row.p.sources[i])
		if err != nil {
			r.err = err
		}
		dst = append(dst, v)
	}
	return dst
}

// Key is the stored key of the current row, good until the next move. It
// can be handed to After, and to a Changes if the read is of a table.
func (r *Rows) Key() []byte { return r.row.key }

// Version is the timestamp of the commit that wrote the current row of a range; 0 is unknown.
func (r *Rows) Version() mvcc.Timestamp {
	if r.cursor == nil {
		return 0
	}
	return r.cursor.Version()
}

// Stored copies the current row as it is stored.
func (r *Rows) Stored() Stored {
	b := make([]byte, len(r.row.key)+len(r.row.val))
	n := copy(b, r.row.key)
	copy(b[n:], r.row.val)
	return Stored{Key: b[:n:n], Value: b[n:]}
}

// Stored is a row as it is stored: see Layout and rowVersion for the form.
type Stored struct{ Key, Value []byte }

// Release lets go of what the storage engine holds for a read of ranges of a snapshot: the reader is about to wait for long. The current row stays good, and
// Next goes on behind it. In a read-write transaction it does nothing.
func (r *Rows) Release() {
	c, ok := r.cursor.(interface{ Release() })
	if !ok {
		return
	}
	n := len(r.row.key)
	r.row.keepVirtual()
	r.kept = append(append(r.kept[:0], r.row.key...), r.row.val...)
	r.row.key, r.row.val = r.kept[:n:n], r.kept[n:]
	c.Release()
}

func (r *Rows) closeCursor() error {
	if r.cursor == nil {
		return nil
	}
	c := r.cursor
	r.cursor = nil
	return c.Close()
}

// Close ends the read.
func (r *Rows) Close() error {
	r.large.Close()
	return r.closeCursor()
}
