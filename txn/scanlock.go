package txn

import (
	"context"

	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/table"
)

// scanLock is the lock of a scan that may stop early, such as one with LIMIT:
// it covers only the keys that the scan has read, and the gaps between them.
//
// The cursor finds the next key, locks the range up to it, and only then shows
// it. Another transaction may commit into that range after the cursor has read
// it and before the cursor has the lock. A commit adds itself to recentCommits before
// it releases its locks. So if recentCommits has no new commit that may have written in
// the range, the cursor has missed nothing. Otherwise it reads the range again,
// which is locked now.
type scanLock struct {
	ctx        context.Context // of the scan
	mode       table.Lock
	start, end string   // the part of the span that is not locked yet
	held       *request // the lock to extend; nil if the next part needs a new lock
	commits    uint64   // recentCommits.count at a time since which no commit has written in the range that the cursor has yet to show
	skipped    []byte   // the argument of the last SkipTo
	after      []byte   // scratch: the end of the range to lock
}

// lockNextKey locks the range up to the key that c has found, or up to the end of
// the span if it found none (more is false). It reports whether there is a key
// to show, which may differ from more once the range is locked.
func (c *cursor) lockNextKey(more bool) bool {
	l := c.growing
	for c.err == nil {
		from, to := l.start, l.end
		start, end := from, to
		switch {
		case !more:
		case c.reverse:
			start = max(start, string(c.key))
		default:
			l.after = mvcc.After(l.after[:0], c.key)
			end = min(end, string(l.after))
		}
		if start >= end {
			return more
		}
		l.held, c.err = c.t.m.locks.acquireOrExtend(l.ctx, l.held, &request{tx: c.t, start: start, end: end, mode: l.mode})
		if c.reverse {
			l.end = start
		} else {
			l.start = end
		}
		if c.err != nil {
			return false
		}
		if c.at != mvcc.Latest {
			if c.err = c.t.unchanged(start, end); c.err != nil {
				return false
			}
			return more
		}
		if commits, quiet := c.t.m.recentCommits.quiet(l.commits, from, to); quiet {
			l.commits = commits
			return more
		}
		if _, quiet := c.t.m.recentCommits.quiet(l.commits, start, end); quiet {
			return more
		}
		// A commit may have written there. What the span has left is read again, since it was not locked when c first read it.
		if c.err = c.base.Close(); c.err != nil {
			return false
		}
		if !c.reverse {
			from = max(from, string(l.skipped))
		}
		if c.err = c.open(from, to); c.err == nil {
			more = c.step()
		}
	}
	return false
}
