package txn

import (
	"context"

	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/table"
)

// scanLock is the lock of a scan that may stop early, such as one with LIMIT. It covers only the keys that the scan
// has read, and the gaps between them.
//
// The cursor finds the next key, locks the range up to that key, and only then returns the key. Another transaction
// may commit into the range after the cursor has read the range and before the cursor has the lock. A commit adds its
// keys to recentCommits before it releases its locks. So if recentCommits has no new commit that may have written in
// the range, the cursor has missed nothing. Otherwise the cursor reads the range again, which is locked now.
type scanLock struct {
	ctx        context.Context // the context of the scan
	mode       table.Lock
	start, end string   // the part of the scan's range that is not locked yet
	held       *request // the lock to extend; nil if the next range needs a new lock
	// commits is a value of recentCommits.count. Only a commit that was counted after it can have written, unseen by
	// the cursor, in the part of the range that is not locked yet.
	commits uint64
	skipped []byte // the argument of the last SkipTo
	after   []byte // a buffer for the end of the range to lock
}

// lockNextKey locks the range up to the key that c has found. The parameter more is false if c has found no key; then
// lockNextKey locks the range up to the end of the scan's range. The result says whether there is a key to return. It
// may differ from the parameter, because c reads the range again if a commit may have written in it.
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
		// A commit may have written in the range that was just locked, after c had read there. So c reads that range
		// again, and all that follows in the scan's range.
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
