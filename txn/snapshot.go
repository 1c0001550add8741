package txn

import (
	"context"
	"errors"
	"time"

	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// BoundKind says how the timestamp of a snapshot is chosen.
type BoundKind uint8

const (
	Strong           BoundKind = iota // sees everything committed before the call
	ReadTimestamp                     // exactly Time; waits if it is in the future
	ExactStaleness                    // exactly Duration ago
	MinReadTimestamp                  // the newest timestamp that needs no waiting, but at least Time
	MaxStaleness                      // the newest timestamp that needs no waiting, but at most Duration ago
)

// Bound is a timestamp bound. The zero value is a strong read.
type Bound struct {
	Kind     BoundKind
	Time     time.Time
	Duration time.Duration
}

// Snapshot is the database at a timestamp. It implements table.View. Only one goroutine at a time may use a Snapshot;
// At returns a new one for another goroutine.
type Snapshot struct {
	m   *Manager
	at  mvcc.Timestamp
	buf []byte
}

// Snapshot returns the database at a timestamp within the bound. It waits until the commits in flight that the
// snapshot must show are visible. If the timestamp is in the future, Snapshot waits for the clock.
func (m *Manager) Snapshot(ctx context.Context, b Bound) (*Snapshot, error) {
	at, err := m.resolve(ctx, b)
	if err != nil {
		return nil, err
	}
	return &Snapshot{m: m, at: at}, nil
}

func (m *Manager) resolve(ctx context.Context, b Bound) (mvcc.Timestamp, error) {
	if b.Duration < 0 {
		return 0, usererror.NegativeStaleness(b.Duration)
	}
	now := m.oracle.Now
	switch b.Kind {
	case ReadTimestamp:
		return m.exact(ctx, mvcc.TimestampOf(b.Time), m.oracle.WaitFor)
	case ExactStaleness:
		return m.exact(ctx, now()-mvcc.Timestamp(b.Duration.Microseconds()), m.oracle.CloseAt)
	case MinReadTimestamp:
		return m.atLeast(ctx, mvcc.TimestampOf(b.Time.Add(time.Microsecond-1)), m.oracle.WaitFor)
	case MaxStaleness:
		return m.atLeast(ctx, now()-mvcc.Timestamp(b.Duration.Microseconds()), m.oracle.CloseAt)
	}
	return m.oracle.Strong(ctx)
}

// closing is the type of the oracle's methods WaitFor and CloseAt. Both close a timestamp: when they return, all
// commits at or below it are visible, and no later commit gets such a timestamp. WaitFor is for a timestamp that a
// client chose, CloseAt for one that the clock has shown.
type closing func(ctx context.Context, at mvcc.Timestamp) error

func (m *Manager) exact(ctx context.Context, at mvcc.Timestamp, closeAt closing) (mvcc.Timestamp, error) {
	if earliest := m.Earliest(); at < earliest {
		return 0, usererror.StalenessExceeded(at.Time(), earliest.Time())
	}
	return at, closeAt(ctx, at)
}

// atLeast returns a timestamp that is not below the parameter at, and that a snapshot can read. If the watermark is
// such a timestamp, atLeast returns it, because a read at any newer timestamp might have to wait. Otherwise atLeast
// takes the later one of two timestamps, the parameter at and the earliest readable one. It closes this timestamp with
// closeAt and returns it.
func (m *Manager) atLeast(ctx context.Context, at mvcc.Timestamp, closeAt closing) (mvcc.Timestamp, error) {
	if visible := m.oracle.Visible(); visible >= at && visible >= m.Earliest() {
		return visible, nil
	}
	return m.exact(ctx, max(at, m.Earliest()), closeAt)
}

// Timestamp returns the timestamp at which the snapshot reads.
func (s *Snapshot) Timestamp() mvcc.Timestamp { return s.at }

// At returns a new snapshot at the lower of ts and s's timestamp. Another goroutine may use the new snapshot.
func (s *Snapshot) At(ts mvcc.Timestamp) *Snapshot { return &Snapshot{m: s.m, at: min(ts, s.at)} }

// Close does nothing: an open snapshot does not keep old versions from being deleted when their retention period is
// over.
func (s *Snapshot) Close() error { return nil }

// Get implements table.View.
func (s *Snapshot) Get(_ context.Context, key []byte, _ table.Lock) (val []byte, ok bool, err error) {
	val, _, ok, err = s.m.versions.Get(key, s.at, s.buf)
	if ok {
		s.buf = val
	}
	return val, ok, s.readError(err)
}

// GetEach implements table.BatchView.
func (s *Snapshot) GetEach(_ context.Context, keys [][]byte, since mvcc.Timestamp, found func(i int, val []byte, ok bool) bool) error {
	return s.readError(s.m.versions.GetEach(keys, s.at, since, found))
}

// Scan implements table.View.
func (s *Snapshot) Scan(_ context.Context, span table.Span, opts table.ScanOptions) (table.Cursor, error) {
	c, err := s.m.versions.Scan(span.Start, span.End, s.at, opts.Reverse)
	if err != nil {
		return nil, s.readError(err)
	}
	if opts.Deleted {
		c.ShowDeleted()
	}
	return c, nil
}

func (s *Snapshot) readError(err error) error {
	if errors.Is(err, mvcc.ErrCollected) {
		return usererror.StalenessExceeded(s.at.Time(), s.m.Earliest().Time())
	}
	return err
}
