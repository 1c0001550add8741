package database

import (
	"github.com/crowfoot-db/crowfoot/stats"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/txn"
)

// lockWaited counts a wait for a lock. Locks are on whole rows, which is what the column _exists stands for.
func (d *Database) lockWaited(w *txn.LockWait) {
	l, text := d.locate(w.Start, len(w.End) > 0)
	column := l + "." + stats.Exists
	wait := stats.LockWait{Key: text, End: w.Began.Add(w.Waited), Wait: w.Waited}
	for _, p := range append(w.Held, w.Wanted) {
		wait.Requests = append(wait.Requests, stats.LockRequest{Column: column, Mode: lockMode(p.Mode), Tag: p.Tag})
	}
	d.Stats().LockWait(&wait)
}

// LockText prints what was waited for, as ROW_RANGE_START_KEY does.
func (d *Database) LockText(w *txn.LockWait) string {
	_, text := d.locate(w.Start, len(w.End) > 0)
	return text
}

func lockMode(m table.Lock) string {
	if m == table.LockExclusive {
		return "Exclusive"
	}
	return "ReaderShared"
}

// locate finds which table or index a key, or the start of a range, is of, and prints it.
func (d *Database) locate(key []byte, open bool) (name, text string) {
	var best *table.Layout
	longest := 0
	for _, l := range d.newest().objects() {
		if _, n := l.DecodeStart(key); n > longest {
			best, longest = l, n
		}
	}
	if best == nil {
		return "", ""
	}
	vals, _ := best.DecodeStart(key)
	return best.Name(), stats.KeyText(best.Name(), vals, open)
}
