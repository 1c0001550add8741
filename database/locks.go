package database

import (
	"github.com/crowfoot-db/crowfoot/stats"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/txn"
)

// A LockOwner runs a transaction and knows which columns of a table or index it has read, and which it has written, so
// far, as Table.Column. It may be asked at any time.
type LockOwner interface {
	LockColumns(target string, written bool) []string
}

// lockWaited counts a wait for a lock. Locks are on whole rows; statistics show the columns for which they were taken.
func (d *Database) lockWaited(w *txn.LockWait) {
	target, text := d.locate(w.Start, len(w.End) > 0)
	d.Stats().LockWait(&stats.LockWait{Key: text, End: w.Began.Add(w.Waited), Wait: w.Waited, Requests: lockRequests(target, append(w.Held, w.Wanted))})
}

// lockRequests are the requests of parties: the first column of each, then the second of each, and so on. Statistics keep the first
// few, which thus are of all parties.
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

// lockColumns are the columns for which a party locks a row: those that it writes, or else reads. If it has named none (it checks
// a parent, or a foreign key), it locks for the existence of the row.
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

// LockText prints what was waited for, as ROW_RANGE_START_KEY does.
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

// locate finds which table or index a key, or the start of a range, is of, and prints it.
func (d *Database) locate(key []byte, open bool) (name, text string) {
	l, vals := table.Locate(d.Catalog(), key)
	if l == nil {
		return "", ""
	}
	return l.Name(), stats.KeyText(l.Name(), vals, open)
}
