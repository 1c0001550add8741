package database

import (
	"github.com/crowfoot-db/crowfoot/stats"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/txn"
)

// A LockOwner runs a transaction. LockColumns returns the names of columns, each as Table.Column. The parameter target
// names the table or index of the columns. If written is true, LockColumns returns the columns that the transaction has
// written so far, and otherwise those that it has read. LockColumns may be called from any goroutine at any time.
type LockOwner interface {
	LockColumns(target string, written bool) []string
}

// lockWaited adds a wait for a lock to the statistics. Locks are on whole rows; the statistics show the columns for
// which the locks were taken.
func (d *Database) lockWaited(w *txn.LockWait) {
	target, text := d.locate(w.Start, len(w.End) > 0)
	d.Stats().LockWait(&stats.LockWait{Key: text, End: w.Began.Add(w.Waited), Wait: w.Waited, Requests: lockRequests(target, append(w.Held, w.Wanted))})
}

// lockRequests lists the columns for which each party locks a row. A party is a transaction that holds or wants the
// lock. The list has the first column of each party, then the second of each, and so on. Statistics keep only the first
// few elements, and this order makes them include all parties.
func lockRequests(target string, parties []txn.LockParty) (list []stats.LockRequest) {
	columns := make([][]string, len(parties))
	most := 0
	for i, p := range parties {
		columns[i] = lockColumns(target, p)
		most = max(most, len(columns[i]))
	}
	for c := range most {
		for i, p := range parties {
			if c < len(columns[i]) {
				list = append(list, stats.LockRequest{Column: columns[i][c], Mode: lockMode(p.Mode), Tag: p.Tag})
			}
		}
	}
	return list
}

// lockColumns lists the columns for which a transaction locks a row: those that it writes. If the lock is shared, or
// the transaction writes no columns, they are the columns that it reads. If the transaction also reads no columns,
// because it only checks that a parent or a referenced row exists, lockColumns returns the column _exists.
func lockColumns(target string, p txn.LockParty) []string {
	if o, ok := p.Owner.(LockOwner); ok {
		for _, written := range []bool{true, false} {
			if written && p.Mode == table.LockShared {
				continue
			}
			if list := o.LockColumns(target, written); len(list) > 0 {
				return list
			}
		}
	}
	return []string{target + "." + stats.Exists}
}

// LockText returns the text that ROW_RANGE_START_KEY shows for the wait w: the text of the locked key, or of the start
// of the locked range.
func (d *Database) LockText(w *txn.LockWait) string {
	_, text := d.locate(w.Start, len(w.End) > 0)
	return text
}

func lockMode(m table.Lock) string {
	switch m {
	case table.LockExclusive:
		return "Exclusive"
	case table.LockWriterSharedTimestamp:
		return "WriterSharedTimestamp"
	}
	return "ReaderShared"
}

// locate returns the name of the table or index that a key belongs to, and the text of the key. The parameter open says
// whether the key is the start of a range. Both results are "" if the newest catalog has no table or index with this
// key.
func (d *Database) locate(key []byte, open bool) (name, text string) {
	l, vals := table.Locate(d.Catalog(), key)
	if l == nil {
		return "", ""
	}
	return l.Name(), stats.KeyText(l.Name(), vals, open)
}
