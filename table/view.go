package table

import (
	"context"
	"slices"

	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/value"
)

// Span is the half-open range of logical keys [Start, End). If End is nil, it is a point: the single key Start. Scan
// takes ranges only.
type Span struct{ Start, End []byte }

// IsPoint reports whether the span is a single key.
func (s Span) IsPoint() bool { return s.End == nil }

// Ranges returns a copy of spans in which each point is a range with just that key.
func Ranges(spans []Span) []Span {
	out := slices.Clone(spans)
	for i := range out {
		if out[i].IsPoint() {
			out[i].End = afterKey(out[i].Start)
		}
	}
	return out
}

// Lock says how a read-write transaction locks the keys it reads. Snapshots ignore it.
type Lock uint8

const (
	LockShared    Lock = iota // other transactions may read and not write
	LockExclusive             // other transactions may neither write nor read with a lock
	// LockCheck is LockShared for a read on which a constraint depends. It also locks in REPEATABLE READ, where other
	// reads do not.
	LockCheck
	// LockWriterSharedTimestamp locks a key whose commit timestamp is pending
	// (https://cloud.google.com/spanner/docs/introspection/lock-statistics). Two transactions never have the same
	// commit timestamp, so others may also lock the same range in this mode. They may neither read there with a lock
	// nor write a key that is complete. A Get in this mode sees only the writes of its own transaction.
	LockWriterSharedTimestamp
)

// View is the state that a request reads: a snapshot at a timestamp, or a
// read-write transaction, which locks what it reads and sees its own writes.
// Keys are logical keys of this database, without version. A View serves one
// goroutine at a time.
type View interface {
	// Get returns the value at key; ok is false if there is none. The value is valid until the next call on the View.
	Get(ctx context.Context, key []byte, lock Lock) (val []byte, ok bool, err error)
	// Scan returns a cursor that stands before the first key of span (in reverse, after the last one). It locks the
	// whole span with its gaps, unless the scan is Partial.
	Scan(ctx context.Context, span Span, opts ScanOptions) (Cursor, error)
}

// BatchView is a View that can read many keys in one call, at a lower cost than one by one. Snapshots are BatchViews.
type BatchView interface {
	View
	// Timestamp returns the timestamp of the snapshot.
	Timestamp() mvcc.Timestamp
	// GetEach reads keys in order. For each it calls found with the value, or with ok false if there is none; the value
	// is valid until found returns. If found returns false, GetEach stops, and the caller reads that key with Get. Keys
	// in descending order cost the least. GetEach is faster still if most of the values were written at or after since;
	// 0 means that this is unknown.
	GetEach(ctx context.Context, keys [][]byte, since mvcc.Timestamp, found func(i int, val []byte, ok bool) bool) error
}

// ScanOptions are the options of one Scan.
type ScanOptions struct {
	Lock    Lock
	Reverse bool
	// Deleted permits a scan that is not Reverse to return deleted keys, too. Their values are empty.
	Deleted bool
	// Partial says that the scan may stop before the end of the span. It then locks only the keys that it has passed, and
	// the gaps between them.
	Partial bool
}

// Cursor walks over the live keys of a span. It must be closed. While a cursor is open, the View may be read and
// written. It is undefined whether the cursor sees such writes, so a caller that writes the rows it scans collects them
// first.
type Cursor interface {
	Next() bool // moves to the next (the previous, in a reverse scan) key; false at the end or on an error
	// SkipTo makes the next call of Next move to the first key at or after key. It works in forward scans only.
	SkipTo(key []byte)
	Key() []byte   // valid until the next move
	Value() []byte // valid until the next move
	// Version returns the timestamp of the commit that wrote the value. It is 0 if unknown, as in a read-write
	// transaction.
	Version() mvcc.Timestamp
	Err() error
	Close() error
}

// Writer is a View that also takes writes. It buffers them, and reads see them at once. A key must be locked
// exclusively before it is written, or in LockWriterSharedTimestamp if it has pending timestamps. Put and Delete take
// that lock themselves.
type Writer interface {
	View
	// Put stores val at key. pendingKey and pending are the places in key and val that the commit fills with its
	// timestamp (see Pending). All four arguments remain the caller's.
	Put(ctx context.Context, key, val []byte, pendingKey, pending []Pending) error
	Delete(ctx context.Context, key []byte) error
	// PutRun is Put for all keys of a run, which may not be changed afterwards. If fresh is true, none of the keys may
	// exist. Then PutRun returns the first key that does, and stores nothing. That key is valid until the next call.
	PutRun(ctx context.Context, r *Run, fresh bool) (existing []byte, err error)
	// Capture records a change of a row for the change streams that watch it, after the earlier changes. It returns the
	// number of bytes that it keeps. The change and all that it points to remain the caller's.
	Capture(ctx context.Context, c *Change) (bytes int, err error)
}

// Pending is the place of a commit timestamp that is not known yet. At Offset in a key or a value stands a timestamp of
// fixed width, inverted if Desc. Fill overwrites it at commit.
type Pending struct {
	Offset int
	Desc   bool // key part in descending order: bytes inverted
}

// Fill writes the commit timestamp ts to its place in b, a key or a value.
func (p Pending) Fill(b []byte, ts mvcc.Timestamp) {
	t := ts.Time()
	value.FillKeyTimestamp(b[p.Offset:], p.Desc, t.Unix(), int32(t.Nanosecond()))
}
