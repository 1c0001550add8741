package stats

import (
	"slices"
	"strings"
)

// Op is what an access does with a table.
type Op uint8

const (
	OpQuery  Op = iota // a statement reads it
	OpRead             // the READ API reads it
	OpWrite            // rows are inserted or updated, by DML or mutation
	OpDelete           // rows are deleted
)

// Exists is the column of READ_COLUMNS that marks that it was only looked whether rows are there.
const Exists = "_exists"

// An Access is one operation on one table as statistics name it. It is made
// once for a plan, a projection or a mutation's shape, and counted once per
// statement or request. Accesses are immutable; equal ones have equal hashes.
type Access struct {
	op      Op
	table   string
	columns []string // without Exists
	names   []string // Table.Column or Index.Column, sorted
	hash    uint64
	// fingerprint is that of names.
	fingerprint int64
}

// NewAccess describes an access; index is "" for the table itself. columns may hold Exists, and is not kept.
func NewAccess(op Op, table, index string, columns []string) *Access {
	a := &Access{op: op, table: table}
	prefix := table
	if index != "" {
		prefix = index
	}
	for _, c := range columns {
		a.names = append(a.names, prefix+"."+c)
		if c != Exists {
			a.columns = append(a.columns, c)
		}
	}
	slices.Sort(a.names)
	a.names = slices.Compact(a.names)
	text := strings.Join(a.names, ",")
	a.fingerprint = fingerprint(text)
	a.hash = mix(uint64(fingerprint(table+"\x00"+text)) + uint64(op))
	return a
}

// Table is the table that is accessed.
func (a *Access) Table() string { return a.table }

// A Footprint is what a transaction touches: it grows with the transaction and is counted at its end. The zero
// Footprint is empty. It is not safe for concurrent use.
type Footprint struct {
	accesses []*Access
	hash     uint64 // of the set of accesses
	written  []written

	roomForAccesses [8]*Access
	roomForWritten  [4]written
}

// Add notes an access.
func (f *Footprint) Add(a *Access) {
	for _, have := range f.accesses {
		if have == a || have.hash == a.hash {
			return
		}
	}
	if len(f.accesses) == footprintAccesses {
		return
	}
	if f.accesses == nil {
		f.accesses = f.roomForAccesses[:0]
	}
	f.accesses = append(f.accesses, a)
	f.hash += a.hash
}

// Wrote notes rows inserted or updated in a table, and their bytes.
func (f *Footprint) Wrote(table string, rows, bytes int64) {
	for i := range f.written {
		if w := &f.written[i]; w.table == table {
			w.rows += rows
			w.bytes += bytes
			return
		}
	}
	if len(f.written) == footprintAccesses {
		return
	}
	if f.written == nil {
		f.written = f.roomForWritten[:0]
	}
	f.written = append(f.written, written{table, rows, bytes})
}

// The lists of a transaction's subject.
const (
	readColumns = iota
	writtenColumns
	deletedTables
)

// lists are the columns read, the columns written, and the tables deleted from.
func (f *Footprint) lists() (lists [3][]string) {
	for _, a := range f.accesses {
		switch a.op {
		case OpWrite:
			lists[writtenColumns] = append(lists[writtenColumns], a.names...)
		case OpDelete:
			lists[deletedTables] = append(lists[deletedTables], a.table)
		default:
			lists[readColumns] = append(lists[readColumns], a.names...)
		}
	}
	for i := range lists {
		slices.Sort(lists[i])
		lists[i] = slices.Compact(lists[i])
	}
	return lists
}
