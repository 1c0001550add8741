package table

import (
	"context"
	"slices"

	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/value"
)

// Span is the half-open range of logical keys [Start, End). With a nil End it
// is the point Start, one key; Scan takes ranges only.
type Span struct{ Start, End []byte }

// IsPoint says whether the span is a single key.
func (s Span) IsPoint() bool { return s.End == nil }

// Ranges are spans with ranges in the place of points.
func Ranges(spans []Span) []Span {
	out := slices.Clone(spans)
	for i := range out {
		if out[i].IsPoint() {
			out[i].End = afterKey(out[i].Start)
		}
	}
	return out
}

// Lock says how a read-write transaction locks what it reads. Snapshots ignore it.
type Lock uint8

const (
	LockShared    Lock = iota // other transactions may read and not write
	LockExclusive             // other transactions may neither write nor read with a lock
	// LockCheck is LockShared for a read that a constraint depends on: it locks in REPEATABLE READ too, where other reads do
	// not.
	LockCheck
	// LockWriterSharedTimestamp is of a key whose commit timestamp is pending (https://cloud.google.com/spanner/docs/introspection/lock-statistics).
	// Two transactions never have the same commit timestamp, so others may lock the same range in this mode, too. They may
	// neither read there with a lock nor write a key that is complete. Get with it sees only what its own transaction has written.
	LockWriterSharedTimestamp
)

// View is the state that a request reads: a snapshot at a timestamp, or a
// read-write transaction, which locks what it reads and sees its own writes.
// Keys are logical keys of this database, without version. A View serves one
// goroutine at a time.
type View interface {
	// Get returns the value at key; ok is false if there is none. The value is good until the next call on the View.
	Get(ctx context.Context, key []byte, lock Lock) (val []byte, ok bool, err error)
	// Scan returns a cursor before the first key of span (after the last one, in reverse).
	// The whole span is locked, gaps included, unless the scan is Partial.
	Scan(ctx context.Context, span Span, opts ScanOptions) (Cursor, error)
}

// BatchView is a View that reads many keys together at a lower cost than one by one: a snapshot.
type BatchView interface {
	View
	// Timestamp is when the database was as it is shown.
	Timestamp() mvcc.Timestamp
	// GetEach reads keys, and hands found the value of keys[i], or that there is none; the value is good until found returns. It ends when found
	// returns false, which means that this key will be read by Get. Keys in descending order cost the least. Most values should have been written
	// at or after since: then it costs less still. 0 is unknown.
	GetEach(ctx context.Context, keys [][]byte, since mvcc.Timestamp, found func(i int, val []byte, ok bool) bool) error
}

// ScanOptions of one Scan.
type ScanOptions struct {
	Lock    Lock
	Reverse bool
	// Deleted permits a scan that is not Reverse to show keys, too, that were deleted. Their values are empty.
	Deleted bool
	// Partial says that the scan may stop before the end of the span. It then locks only the keys that it has passed, and
	// the gaps between them.
	Partial bool
}

// Cursor walks over the live keys of a span. It must be closed. The View may be used, also for writing,
// while a cursor is open; whether the cursor sees such writes is undefined, so callers that write what they scan collect first.
type Cursor interface {
	Next() bool // moves to the next (the previous, in a reverse scan) key; false at the end or on an error
	// SkipTo moves on so that the next Next finds the first key at or after key (forward scans only).
	SkipTo(key []byte)
	Key() []byte   // good until the next move
	Value() []byte // good until the next move
	// Version is the timestamp of the commit that wrote the value; 0 is unknown, as in a read-write transaction.
	Version() mvcc.Timestamp
	Err() error
	Close() error
}

// Writer is a View that also takes writes. It buffers them; the View sees them at once.
// What is put must have been locked exclusively, or in LockWriterSharedTimestamp if its key has pending timestamps: Put and Delete take
// that lock themselves.
type Writer interface {
	View
	// Put stores val at key. pending are offsets in val, pendingKey in key, of fixed-width
	// timestamps to be filled with the commit timestamp (see Pending). All four remain the caller's.
	Put(ctx context.Context, key, val []byte, pendingKey, pending []Pending) error
	Delete(ctx context.Context, key []byte) error
	// PutRun is Put for all keys of a run, which may not be changed afterwards. If fresh, none of them may be there: the first that is comes back, and
	// nothing is stored; it is good until the next call.
	PutRun(ctx context.Context, r *Run, fresh bool) (existing []byte, err error)
	// Capture keeps a change of a row for the change streams that watch it, behind the changes before. It returns how many bytes it keeps.
	// The change and all that it points to remain the caller's.
	Capture(ctx context.Context, c *Change) (bytes int, err error)
}

// Pending is the place of a commit timestamp that is not known yet: at Offset of a key or a value stand
// the fixed-width bytes of a timestamp, inverted if Desc, that Fill overwrites at commit.
type Pending struct {
	Offset int
	Desc   bool // key part in descending order: bytes inverted
}

// Fill puts the commit timestamp ts in its place in b, a key or a value.
func (p Pending) Fill(b []byte, ts mvcc.Timestamp) {
	t := ts.Time()
	value.FillKeyTimestamp(b[p.Offset:], p.Desc, t.Unix(), int32(t.Nanosecond()))
}
