package database

import (
	"github.com/crowfoot-db/crowfoot/stats"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/txn"
)

// A LockOwner runs a transaction. LockColumns lists the columns of a table or index that it has read, or written, so
// far, each as Table.Column. It may be called at any time.
type LockOwner interface {
	LockColumns(target string, written bool) []string
}

// lockWaited counts a wait for a lock. Locks are on whole rows; statistics show the columns for which the locks were
// taken.
func (d *Database) lockWaited(w *txn.LockWait) {
	target, text := d.locate(w.Start, len(w.End) > 0)
	d.Stats().LockWait(&stats.LockWait{Key: text, End: w.Began.Add(w.Waited), Wait: w.Waited, Requests: lockRequests(target, append(w.Held, w.Wanted))})
}

// lockRequests lists the first column of each party, then the second of each, and so on. Statistics keep only the first
// few requests, which so show all parties.
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

// lockColumns lists the columns for which a party locks a row: the columns that it writes, or else those that it reads.
// If it has named none, because it checks a parent or a foreign key, it locks the row's existence.
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

// LockText prints the key or range of a wait, as ROW_RANGE_START_KEY does.
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

// locate returns the name of the table or index of a key, or of the start of a range, and the key as text.
func (d *Database) locate(key []byte, open bool) (name, text string) {
	l, vals := table.Locate(d.Catalog(), key)
	if l == nil {
		return "", ""
	}
	return l.Name(), stats.KeyText(l.Name(), vals, open)
}
