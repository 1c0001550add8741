package txn

import (
	"bytes"
	"context"
	"unsafe"

	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/table"
)

// acquireRun locks the keys of a run exclusively with one request. Other transactions may still write keys between them.
func (l *lockTable) acquireRun(ctx context.Context, t *Tx, run *table.Run) error {
	first, last := run.Key(0), run.Key(run.Len()-1)
	_, err := l.acquireOrExtend(ctx, nil, &request{tx: t, start: string(first), end: string(mvcc.After(nil, last)), mode: table.LockExclusive, run: run})
	return err
}

// runIntersects reports whether o's point, range or run contains any key of r's run.
func (r *request) runIntersects(o *request) bool {
	i := r.run.From(0, unsafe.Slice(unsafe.StringData(o.start), len(o.start)))
	if i == r.run.Len() {
		return false
	}
	switch key := r.run.Key(i); {
	case o.isPoint():
		return string(key) == o.start
	case o.run == nil:
		return string(key) < o.end
	}
	for j := 0; i < r.run.Len() && j < o.run.Len(); {
		switch bytes.Compare(r.run.Key(i), o.run.Key(j)) {
		case 0:
			return true
		case -1:
			i++
		default:
			j++
		}
	}
	return false
}
