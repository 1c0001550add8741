package stats

import (
	"slices"
	"strings"
)

// Op is the kind of access to a table or index.
type Op uint8

const (
	OpQuery   Op = iota // a statement reads the table or index
	OpRead              // the READ API reads the table or index
	OpWrite             // rows are inserted or updated, by DML or mutation
	OpDelete            // rows are deleted
	OpReplace           // rows are written, and existing ones deleted first
	OpCheck             // a write checks whether rows exist, which does not count as an operation
)

// Exists is a column name that no table has. The column READ_COLUMNS of the transaction statistics shows it for an
// access that only finds out whether a row exists, such as the check of an INSERT. For a READ of a table,
// READ_COLUMNS shows it in place of the primary key's columns, because the key itself holds their values.
const Exists = "_exists"

// An Access describes how a plan, a projection or a mutation accesses one table or index: by which operation, and
// which columns. It has the names that statistics show. An Access is made once, together with the plan, projection or
// mutation. Each statement or request that uses it then counts it once. Accesses are immutable; equal ones have equal
// hashes.
type Access struct {
	op      Op
	target  string    // name of the table or index
	columns []string  // names of the columns without Exists, sorted
	names   []string  // Target.Column for each column, sorted
	entries []*Access // if a table is written: the accesses to its indexes
	hash    uint64
	// fingerprint is the fingerprint of the elements of names, joined by commas.
	fingerprint int64
}

// NewAccess returns an access to columns of a table or index. columns may contain Exists; NewAccess does not keep the
// slice. entries are the accesses to indexes that a write to the table causes.
func NewAccess(op Op, target string, columns []string, entries ...*Access) *Access {
	return newAccess(op, target, columns, columns, entries)
}

// NewRead returns the access of a READ of columns of a table or index. shown holds the names that READ_COLUMNS shows
// for these columns.
func NewRead(target string, columns, shown []string) *Access {
	return newAccess(OpRead, target, columns, shown, nil)
}

func newAccess(op Op, target string, columns, shown []string, entries []*Access) *Access {
	a := &Access{op: op, target: target, entries: entries}
	for _, c := range sorted(columns) {
		if c != Exists {
			a.columns = append(a.columns, c)
		}
	}
	for _, c := range sorted(shown) {
		a.names = append(a.names, target+"."+c)
	}
	text := strings.Join(a.names, ",")
	a.fingerprint = fingerprint(text)
	a.hash = mix(uint64(fingerprint(target+"\x00"+text+"\x00"+strings.Join(a.columns, ","))) + uint64(op))
	for _, e := range entries {
		a.hash = mix(a.hash + e.hash)
	}
	return a
}

// sorted returns the names in order, without duplicates.
func sorted(names []string) []string {
	names = slices.Clone(names)
	slices.Sort(names)
	return slices.Compact(names)
}

// Target returns the name of the table or index.
func (a *Access) Target() string { return a.target }

// addTo adds n operations to the tallies of the access's table and columns, and to the tallies of the indexes that the
// access writes.
func (a *Access) addTo(tables, columns *board, n int64) {
	op := a.op
	switch op {
	case OpCheck:
		return
	case OpReplace:
		op = OpWrite
	}
	tables.operated(subject{fingerprint: fingerprint(a.target), name: a.target}, op, n)
	for _, column := range a.columns {
		columns.operated(subject{fingerprint: fingerprint(a.target + "\x00" + column), name: a.target, tag: column}, op, n)
	}
	for _, e := range a.entries {
		e.addTo(tables, columns, n)
	}
}

// A Footprint collects the accesses of a transaction until the transaction ends and is counted. The zero Footprint is
// empty. Only one goroutine at a time may use it.
type Footprint struct {
	accesses []*Access
	hash     uint64 // hash of the set of accesses
	written  []written

	roomForAccesses [8]*Access
	roomForWritten  [4]written
}

// Add adds an access, unless the footprint has an equal one or is full.
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

// Columns returns those columns of a table or index that the transaction has written if the parameter written is true,
// and otherwise those that it has read. Each column has the form Table.Column. A deletion counts as a write of Exists.
func (f *Footprint) Columns(target string, written bool) (list []string) {
	for _, a := range f.accesses {
		list = a.appendColumns(list, target, written)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func (a *Access) appendColumns(list []string, target string, written bool) []string {
	writes := a.op == OpWrite || a.op == OpDelete || a.op == OpReplace
	if a.target == target && writes == written {
		list = append(list, a.names...)
		if a.op == OpDelete {
			list = append(list, target+"."+Exists)
		}
	}
	for _, e := range a.entries {
		list = e.appendColumns(list, target, written)
	}
	return list
}

// Wrote adds a number of rows that were inserted or updated in a table, and their bytes, to the footprint's counts
// for that table.
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

// Indexes of the three lists that identify transactions without a tag. A table whose rows were replaced is also in
// deletedTables: https://cloud.google.com/spanner/docs/introspection/transaction-statistics#table_schema.
const (
	readColumns = iota
	writtenColumns
	deletedTables
)

// lists returns the columns read, the columns written, and the tables from which rows were deleted.
func (f *Footprint) lists() (lists [3][]string) {
	for _, a := range f.accesses {
		switch a.op {
		case OpWrite, OpReplace:
			lists[writtenColumns] = append(lists[writtenColumns], a.names...)
		case OpQuery, OpRead, OpCheck:
			lists[readColumns] = append(lists[readColumns], a.names...)
		}
		if a.op == OpDelete || a.op == OpReplace {
			lists[deletedTables] = append(lists[deletedTables], a.target)
		}
	}
	for i := range lists {
		slices.Sort(lists[i])
		lists[i] = slices.Compact(lists[i])
	}
	return lists
}
