package txn

import (
	"context"

	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/table"
)

// scanLock is the lock of a scan that may stop early: it reaches as far as the
// scan has come, gaps included, so that LIMIT 1 leaves the rest to others.
//
// The cursor first looks which key is next, then locks what lies between, and
// only then shows the key. What was committed between its looking and its
// locking it may have missed; then it looks again, now at what is locked. A
// commit that changed something there counts itself before it gives its locks
// away, so a count that has not moved says that nothing was missed.
type scanLock struct {
	ctx        context.Context // of the scan
	mode       table.Lock
	start, end string   // the part of the span that is not locked yet
	held       *request // the lock that grows; nil if it must begin anew
	landed     uint64   // commits, when the cursor looked
	skipped    []byte   // where SkipTo has led last
	after      []byte   // room for the end of what is to be locked
}

// secure locks what lies up to the key that c has come to, or up to the end of
// the span if there is no more, and tells whether there is more, now that it is locked.
func (c *cursor) secure(more bool) bool {
	for c.err == nil {
		l := c.growing
		start, end := c.unlocked(more)
		if start >= end {
			return more
		}
		from, to := l.start, l.end
		if c.err = l.lock(c, start, end); c.err != nil {
			return false
		}
		if c.at != mvcc.Latest {
			if c.err = c.t.unchanged(start, end); c.err != nil {
				return false
			}
			return more
		}
		if l.landed == c.t.m.landed.Load() {
			return more
		}
		if c.err = c.reopen(from, to); c.err == nil {
			more = c.step()
		}
	}
	return false
}

// unlocked is what has to be locked before the key is shown, or the end.
func (c *cursor) unlocked(more bool) (start, end string) {
	start, end = c.growing.start, c.growing.end
	switch {
	case !more:
	case c.reverse:
		start = max(start, string(c.key))
	default:
		c.growing.after = mvcc.After(c.growing.after[:0], c.key)
		end = min(end, string(c.growing.after))
	}
	return start, end
}

func (l *scanLock) lock(c *cursor, start, end string) (err error) {
	l.held, err = c.t.m.locks.grow(l.ctx, l.held, &request{tx: c.t, start: start, end: end, mode: l.mode})
	if c.reverse {
		l.end = start
	} else {
		l.start = end
	}
	return err
}

// reopen looks again at [start, end), which is what was not locked before the last lock.
func (c *cursor) reopen(start, end string) error {
	if err := c.base.Close(); err != nil {
		return err
	}
	if !c.reverse {
		start = max(start, string(c.growing.skipped))
	}
	return c.open(start, end)
}
