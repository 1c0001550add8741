package table

import (
	"context"
	"slices"

	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/value"
)

// Span is the half-open range of logical keys [Start, End). If End is nil, the span is a point: the single key Start.
// View.Scan takes only ranges.
type Span struct{ Start, End []byte }

// IsPoint reports whether the span is a single key.
func (s Span) IsPoint() bool { return s.End == nil }

// Ranges returns a copy of spans in which each point is replaced by a range that holds only this key.
func Ranges(spans []Span) []Span {
	out := slices.Clone(spans)
	for i := range out {
		if out[i].IsPoint() {
			out[i].End = afterKey(out[i].Start)
		}
	}
	return out
}

// Lock says how a read-write transaction locks the keys that it reads. Snapshots ignore it.
type Lock uint8

const (
	LockShared    Lock = iota // other transactions may read and not write
	LockExclusive             // other transactions may neither write nor read with a lock
	// LockCheck is LockShared for reads on which constraints depend. It takes a lock even under REPEATABLE READ, where
	// other reads take none.
	LockCheck
	// LockWriterSharedTimestamp is for writing a key whose commit timestamp is pending
	// (https://cloud.google.com/spanner/docs/introspection/lock-statistics). Writer.Put locks the range in which
	// the key will lie after the commit. Other transactions may lock the same range in this mode, because two
	// transactions never have the same commit timestamp. They may neither read in the range with a lock nor write a
	// key there whose timestamp is already known. A Get in this mode locks nothing, and sees only the writes of its own
	// transaction.
	LockWriterSharedTimestamp
)

// View is the state of a database that a request reads. It is either a snapshot at a timestamp, or a read-write
// transaction, which locks what it reads and sees its own writes. Keys are logical keys of the database, without a
// version. Only one goroutine may use a View at a time.
type View interface {
	// Get returns the value at key; ok is false if there is none. The value is valid until the next call on the View.
	Get(ctx context.Context, key []byte, lock Lock) (val []byte, ok bool, err error)
	// Scan returns a cursor that is positioned before the first key of span (in reverse, after the last key). It locks
	// the whole span, including the gaps between keys, unless the scan is Partial.
	Scan(ctx context.Context, span Span, opts ScanOptions) (Cursor, error)
}

// BatchView is a View that can read many keys in one call, which costs less than one call for each key. Snapshots are
// BatchViews.
type BatchView interface {
	View
	// Timestamp returns the timestamp of the snapshot.
	Timestamp() mvcc.Timestamp
	// GetEach reads keys in order. For each key it calls the function found with the value, or with a false ok if there
	// is none. The value is valid until that call returns. If the function returns false, GetEach stops; the caller
	// then reads this key and those after it with Get, if it needs them. Keys in descending order cost the least. The
	// parameter since is a hint: GetEach is faster if most of the values were written at or after that timestamp; 0
	// means that nothing is known.
	GetEach(ctx context.Context, keys [][]byte, since mvcc.Timestamp, found func(i int, val []byte, ok bool) bool) error
}

// ScanOptions are the options of one Scan.
type ScanOptions struct {
	Lock    Lock
	Reverse bool
	// Deleted permits a scan that is not Reverse to return deleted keys, too. Their values are empty.
	Deleted bool
	// Partial says that the caller may stop before the end of the span. The scan then locks only the keys that it has
	// passed, and the gaps between them.
	Partial bool
}

// Cursor walks over the live keys of a span. The caller must close it. The caller may read and write through the View
// while a cursor is open, but it is undefined whether the cursor sees such writes. So a caller that writes the rows of
// a scan must collect them first.
type Cursor interface {
	Next() bool // moves to the next key (in a reverse scan, the previous one); false at the end or on an error
	// SkipTo makes the next call of Next move to the given key or, if it is missing, to the first key after it. SkipTo
	// works in forward scans only.
	SkipTo(key []byte)
	Key() []byte   // valid until the next move
	Value() []byte // valid until the next move
	// Version returns the timestamp of the commit that wrote the value. It is 0 if unknown, as in a read-write
	// transaction.
	Version() mvcc.Timestamp
	Err() error
	Close() error
}

// Writer is a View that also takes writes. It buffers the writes, and its reads see them at once. Put and Delete lock
// their key: exclusively, or in the mode LockWriterSharedTimestamp if the key has pending timestamps.
type Writer interface {
	View
	// Put stores val at key. pendingKey and pending list the positions in key and val that the commit fills with its
	// timestamp (see Pending). Put does not keep the four slices, so the caller may reuse them.
	Put(ctx context.Context, key, val []byte, pendingKey, pending []Pending) error
	Delete(ctx context.Context, key []byte) error
	// PutRun calls Put for all keys of a run. The caller must not change the run afterwards. If fresh is true, none of
	// the keys may exist; if one exists, PutRun returns the first such key and stores nothing. That key is valid until
	// the next call.
	PutRun(ctx context.Context, r *Run, fresh bool) (existing []byte, err error)
	// Capture records a change of a row for the change streams that watch the row, in the order of the calls. It
	// returns the number of bytes that it keeps. It keeps no reference to the change, so the caller may reuse it.
	Capture(ctx context.Context, c *Change) (bytes int, err error)
}

// Pending is the position of a commit timestamp that is not known yet. The timestamp begins at Offset in a key or a
// value and has a fixed width. Fill overwrites it at commit.
type Pending struct {
	Offset int
	Desc   bool // for a key part in descending order: the bytes are inverted
}

// Fill overwrites the timestamp at its position in b, a key or a value, with the commit timestamp ts.
func (p Pending) Fill(b []byte, ts mvcc.Timestamp) {
	t := ts.Time()
	value.FillKeyTimestamp(b[p.Offset:], p.Desc, t.Unix(), int32(t.Nanosecond()))
}
