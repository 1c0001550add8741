package changestream

import (
	"slices"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/value"
)

// A Transaction is what change streams want to know of the transaction that writes.
type Transaction struct {
	Tag string
	// Excluded says that the client asked for exclude_txn_from_change_streams. Streams with allow_txn_exclusion obey.
	Excluded bool
	// System says that the server writes by itself: it back-fills columns, or deletes the rows of a row deletion policy.
	System bool
}

// Changes are the changes of one transaction, encoded as far as that can be done before its commit timestamp is known, in the order in which
// they were made. The zero Changes is empty.
type Changes struct {
	mods []Mod
}

// A Mod is what one change stream records of the change of one row.
type Mod struct {
	watch   *table.Watch
	table   *schema.Table
	op      table.Op
	columns []*schema.Column // beside the key, those that values are given of
	// data is the logical key of the row and, from start on, an element of a record's mods.
	data       []byte
	start      int
	pendingKey []table.Pending // in the key
	pending    []int           // offsets in data of the texts of commit timestamps
	next       int             // the next mod of the same record; 0: none
}

const (
	// modBytes is about what a Mod takes in memory beside its data, with room for further ones.
	modBytes = 320
	// recordBytes and columnBytes are about what a record has beside its mods, and what its column_types have of each column beside names and types.
	recordBytes = 200
	columnBytes = 24
)

// size is how many bytes the mod has in its record.
func (m *Mod) size() int { return len(m.data) - m.start }

// recordSize is about how many bytes the record of the mod has beside its mods.
func (m *Mod) recordSize() int {
	n := recordBytes + len(m.table.FullName())
	var room [64]byte
	for _, list := range [][]*schema.Column{m.watch.Key, m.columns} {
		for _, c := range list {
			n += columnBytes + len(c.Name) + len(appendType(room[:0], c.Type))
		}
	}
	return n
}

// Add adds a mod. It returns about how many bytes that adds to the commit, those of a record of its own included if the mod needs one, and how much
// memory it takes until the commit is written.
func (c *Changes) Add(m Mod) (size, memory int) {
	size = m.size()
	if before := c.last(m.watch.Stream.ID); before == nil || !m.joins(before) {
		size += m.recordSize()
	}
	c.mods = append(c.mods, m)
	return size, modBytes + len(m.data) + size
}

// last is the last mod of a stream; nil if there is none.
func (c *Changes) last(id schema.ChangeStreamID) *Mod {
	for i := len(c.mods) - 1; i >= 0; i-- {
		if m := &c.mods[i]; m.watch.Stream.ID == id {
			return m
		}
	}
	return nil
}

// Len is how many mods there are, to be given to Truncate.
func (c *Changes) Len() int { return len(c.mods) }

// Truncate takes back all but the first n mods.
func (c *Changes) Truncate(n int) {
	clear(c.mods[n:])
	c.mods = c.mods[:n]
}

// An Encoder encodes changes. It serves one goroutine.
type Encoder struct {
	keys, values, olds []byte           // JSON
	columns            []*schema.Column // that the last change wrote that did not write all watched ones; mods of the same columns share the slice
	scratch            []*schema.Column
	pending            []int
}

// maxKept is how much room for JSON an Encoder keeps from one row to the next.
const maxKept = 64 << 10

// Encode makes what a stream that watches the row's table records of a change. ok is false if it records nothing.
func (e *Encoder) Encode(c *table.Change, w *table.Watch, tx *Transaction) (m Mod, ok bool) {
	if !records(w.Stream, c.Op, tx) {
		return Mod{}, false
	}
	written := w.Columns
	if c.Op != table.Delete {
		if written = e.written(c, w); c.Op == table.Update && len(written) == 0 {
			return Mod{}, false
		}
	}
	newColumns, oldColumns := captured(w, c.Op, written)
	m = Mod{watch: w, table: c.Table, op: c.Op, columns: newColumns, pendingKey: slices.Clone(c.PendingKey)}
	if c.Op == table.Delete {
		m.columns = oldColumns
	}
	e.encode(&m, c, newColumns, oldColumns)
	return m, true
}

// records says whether a stream records an operation of a transaction.
func records(s *schema.ChangeStream, op table.Op, tx *Transaction) bool {
	switch {
	case tx.Excluded && s.AllowTxnExclusion:
		return false
	case op == table.Insert:
		return !s.ExcludeInsert
	case op == table.Update:
		return !s.ExcludeUpdate
	}
	return !s.ExcludeDelete && !(tx.System && s.ExcludeTTLDeletes)
}

// captured are the columns beside the key of which a mod has new and old values, by the stream's value capture type:
// https://cloud.google.com/spanner/docs/change-streams#value-capture-type.
func captured(w *table.Watch, op table.Op, written []*schema.Column) (newColumns, oldColumns []*schema.Column) {
	capture := w.Stream.ValueCapture
	keepsOld := capture == schema.OldAndNewValues || capture == schema.NewRowAndOldValues
	if op != table.Delete {
		newColumns = written
		if capture == schema.NewRow || capture == schema.NewRowAndOldValues {
			newColumns = w.Columns
		}
	}
	switch {
	case !keepsOld || op == table.Insert:
	case op == table.Update:
		oldColumns = written
	default:
		oldColumns = w.Columns
	}
	return newColumns, oldColumns
}

// written are the watched columns that a change has written. Mods of the same columns mostly share a slice, so that comparing them is cheap.
func (e *Encoder) written(c *table.Change, w *table.Watch) []*schema.Column {
	e.scratch = e.scratch[:0]
	for _, col := range w.Columns {
		if c.Written[col.Ordinal] {
			e.scratch = append(e.scratch, col)
		}
	}
	switch {
	case len(e.scratch) == len(w.Columns):
		return w.Columns
	case !slices.Equal(e.scratch, e.columns):
		e.columns = slices.Clone(e.scratch)
	}
	return e.columns
}

// encode makes the data of a mod.
func (e *Encoder) encode(m *Mod, c *table.Change, newColumns, oldColumns []*schema.Column) {
	row := c.New
	if c.Op == table.Delete {
		row = c.Old
	}
	e.pending = e.pending[:0]
	e.keys = e.object(e.keys, m.watch.Key, row)
	keyPending := len(e.pending)
	e.values = e.object(e.values, newColumns, c.New)
	newPending := len(e.pending)
	e.olds = e.object(e.olds, oldColumns, c.Old)

	body := valueSize(len(e.keys)) + valueSize(len(e.values)) + valueSize(len(e.olds))
	m.start = len(c.Key)
	dst := append(make([]byte, 0, m.start+valueSize(body)), c.Key...)
	dst = appendListHead(dst, body)
	dst = e.appendObject(dst, e.keys, e.pending[:keyPending])
	dst = e.appendObject(dst, e.values, e.pending[keyPending:newPending])
	m.data = e.appendObject(dst, e.olds, e.pending[newPending:])
	if len(e.pending) > 0 {
		m.pending = slices.Clone(e.pending)
	}
	if cap(e.values)+cap(e.olds) > maxKept {
		e.values, e.olds = nil, nil
	}
}

// object makes the JSON object of columns of a row, in room. The places of pending commit timestamps in it are added to e.pending.
func (e *Encoder) object(room []byte, columns []*schema.Column, row []value.Value) []byte {
	room, e.pending = appendObject(room[:0], columns, row, e.pending)
	return room
}

// appendObject appends the object as an element of a list. pending are made offsets in dst.
func (e *Encoder) appendObject(dst, object []byte, pending []int) []byte {
	dst = appendTextHead(dst, len(object))
	for i := range pending {
		pending[i] += len(dst)
	}
	return append(dst, object...)
}
