package changestream

import (
	"slices"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/value"
)

// A Transaction holds those properties of a transaction that change streams record or depend on.
type Transaction struct {
	Tag string
	// Excluded says that the client asked for exclude_txn_from_change_streams. Streams with allow_txn_exclusion do not
	// record such a transaction.
	Excluded bool
	// System marks a transaction of the server itself, which back-fills columns or deletes rows by a row deletion
	// policy.
	System bool
}

// Changes holds the changes of one transaction in the order in which they were made. The changes are already encoded,
// except for the commit timestamp, which is not known yet. The zero Changes is empty.
type Changes struct {
	mods []Mod
}

// A Mod is the entry for one changed row in a record of one change stream.
type Mod struct {
	watch   *table.Watch
	table   *schema.Table
	op      table.Op
	columns []*schema.Column // the columns, other than those of the key, that have values in the mod
	// data has two parts. data[:start] is the logical key of the row. data[start:] is the encoded mod, as it appears in
	// the list mods of a data change record.
	data       []byte
	start      int
	pendingKey []table.Pending // positions in the logical key at which the commit timestamp must be filled in
	pending    []int           // offsets in data at which the text of the commit timestamp must be filled in
	next       int             // index in Changes.mods of the next mod of the same record; 0 if there is none
}

const (
	// modBytes estimates the memory in bytes that a Mod takes in addition to its data. It includes spare capacity of
	// the slice of Mods.
	modBytes = 320
	// recordBytes estimates the size in bytes of a record without its mods and columns. columnBytes estimates the size
	// of an entry of column_types without the column's name and type.
	recordBytes = 200
	columnBytes = 24
)

// size returns the number of bytes that the mod takes in its record.
func (m *Mod) size() int { return len(m.data) - m.start }

// recordSize estimates the number of bytes of the mod's record without the mods.
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

// Add adds a mod. It returns two estimates in bytes: size is how much the mod adds to the commit, and memory is how
// much memory it takes until the commit is written. If the mod needs a new record, size includes that record.
func (c *Changes) Add(m Mod) (size, memory int) {
	size = m.size()
	if before := c.last(m.watch.Stream.ID); before == nil || !m.joins(before) {
		size += m.recordSize()
	}
	c.mods = append(c.mods, m)
	return size, modBytes + len(m.data) + size
}

// last returns the last mod that was added for a stream; nil if there is none.
func (c *Changes) last(id schema.ChangeStreamID) *Mod {
	for i := len(c.mods) - 1; i >= 0; i-- {
		if m := &c.mods[i]; m.watch.Stream.ID == id {
			return m
		}
	}
	return nil
}

// Len returns the number of mods. A caller may pass it to Truncate later.
func (c *Changes) Len() int { return len(c.mods) }

// Truncate removes all but the first n mods.
func (c *Changes) Truncate(n int) {
	clear(c.mods[n:])
	c.mods = c.mods[:n]
}

// An Encoder encodes changes. Only one goroutine may use it.
type Encoder struct {
	keys, values, olds []byte           // buffers for the JSON of the key, the new values and the old values of a mod
	columns            []*schema.Column // the slice that Encoder.written made last; mods with equal columns share it
	scratch            []*schema.Column
	pending            []int
}

// maxKept is the maximum total size in bytes of the buffers values and olds that an Encoder keeps for the next row.
const maxKept = 64 << 10

// Encode encodes the change of a row for a stream that watches the row's table. ok is false if the stream does not
// record the change.
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

// records reports whether a stream records changes with this operation by this transaction.
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

// captured returns two lists of columns, without those of the key: the columns whose new values a mod has, and the
// columns whose old values it has. The lists depend on the stream's value capture type:
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

// written returns the watched columns that a change has written. Consecutive mods with equal columns mostly share a
// slice, so that comparing the columns is cheap.
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

// encode sets the data of the mod m: the logical key of the row, and the encoded mod with the key, the new values and
// the old values. newColumns and oldColumns are the columns whose new and old values it encodes.
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

// object encodes columns of a row as a JSON object. It reuses the buffer in the parameter room. It appends the offsets
// of pending commit timestamps to e.pending.
func (e *Encoder) object(room []byte, columns []*schema.Column, row []value.Value) []byte {
	room, e.pending = appendObject(room[:0], columns, row, e.pending)
	return room
}

// appendObject appends a JSON object to dst, encoded as an element of a google.protobuf.ListValue. pending holds
// offsets of bytes in object. appendObject replaces each of them by the offset that the same byte has in the result.
func (e *Encoder) appendObject(dst, object []byte, pending []int) []byte {
	dst = appendTextHead(dst, len(object))
	for i := range pending {
		pending[i] += len(dst)
	}
	return append(dst, object...)
}
