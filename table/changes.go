package table

import (
	"bytes"
	"context"
	"time"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// Changes writes the rows of one commit's mutations or of one DML statement through a Writer. When it writes a row, it
// also writes the row's index entries and computes its defaults and generated columns. When it deletes a row, it also
// deletes the row's children. A later change may repair a violation of four kinds: a missing parent, a unique key that
// is taken, a CHECK, a foreign key. So Changes only records such a violation, and Finish checks again. Call Finish
// after the last change.
//
// Only one goroutine may use a Changes. After an error, the transaction must undo the writes.
type Changes struct {
	w     Writer
	now   time.Time
	count int64 // how many mutations the changes so far count as
	bytes int64 // size of the keys and values written, in bytes
	// maxCount and maxBytes are the highest permitted values of the fields count and bytes. A write that exceeds one
	// of them fails.
	maxCount, maxBytes int64
	// dml is set for a DML statement. SQL reads the rows that Insert, Update and other methods return, so the virtual
	// columns of these rows must be computed, too.
	dml     bool
	tables  *Descriptors
	targets []*target   // one for each table that was written so far; a short list
	last    *rowBuilder // the rowBuilder of the last insert or update; reused if it fits the next one
	// proposer makes the rows that Propose returns; nil before the first call.
	proposer *rowBuilder
	pending  []func(ctx context.Context) error
	deleted  []deletion // the keys and ranges that Delete mutations have deleted
	written  []Written
	touched  map[string]bool // keys of rows that InsertOrUpdate has written; it must not write a row twice
	actions  *actions        // finds mutations that conflict; nil for DML, and if no mutations can conflict
	// parent is the key of the last parent row that checkParent found. Further children of this row need no read.
	parent []byte
	change *Change // buffer for the argument of Writer.Capture; nil before the first captured change

	// Buffers for keys and values, reused for each row.
	key, val, oldKey   []byte
	entryKey, newKey   []byte
	pendKey, pendValue []Pending
	parts              []value.Value
}

// deletion holds the keys and ranges that one Delete mutation has deleted.
type deletion struct {
	table *schema.Table
	spans []Span
}

// NewChanges returns the Changes of one DML statement. tables has the tables of one schema version. now is the current
// time: a value for a column with allow_commit_timestamp must not be later than now.
func NewChanges(w Writer, tables *Descriptors, now time.Time) *Changes {
	room := make([]byte, keyRoom+valueRoom)
	return &Changes{
		w: w, tables: tables, now: now, dml: true,
		maxCount: MaxMutations, maxBytes: MaxCommitBytes,
		key: room[:0:keyRoom], val: room[keyRoom:keyRoom],
	}
}

// keyRoom and valueRoom are the initial sizes of buffers, in bytes. They suffice for the key and the value of most
// rows.
const (
	keyRoom   = 64
	valueRoom = 448
)

// Count returns how many mutations the changes so far count as towards the limit MaxMutations.
func (c *Changes) Count() int64 { return c.count }

// Bytes returns the size in bytes of the keys and values written so far. It includes index entries and the keys of
// deleted rows.
func (c *Changes) Bytes() int64 { return c.bytes }

// Written counts the rows of one table that were inserted or updated.
type Written struct {
	Table *schema.Table
	Rows  int64
	Bytes int64 // size of the keys and values of these rows, without index entries
}

// Written returns the rows and bytes written so far, by table.
func (c *Changes) Written() []Written { return c.written }

func (c *Changes) wrote(t *schema.Table, rows int64, bytes int) {
	for i := range c.written {
		if w := &c.written[i]; w.Table == t {
			w.Rows += rows
			w.Bytes += int64(bytes)
			return
		}
	}
	c.written = append(c.written, Written{t, rows, int64(bytes)})
}

// Insert inserts a row and returns the whole row, one value for each column, indexed by Ordinal. It fails if a row
// with this key exists. The rows that methods of Changes return are valid until the next call of a method.
func (c *Changes) Insert(ctx context.Context, t *schema.Table, columns []*schema.Column, vals []value.Value) ([]value.Value, error) {
	b, err := c.builder(t, Insert, columns)
	if err != nil {
		return nil, err
	}
	return b.row, c.insert(ctx, b, vals)
}

// Propose returns the row that an insert of these values would write, with its defaults and generated columns. INSERT
// ... ON CONFLICT reads that row as "excluded". Propose does not check or write anything.
func (c *Changes) Propose(t *schema.Table, columns []*schema.Column, vals []value.Value) ([]value.Value, error) {
	if b := c.proposer; b == nil || b.table != t || !sameColumns(b.columns, columns) {
		g, err := c.target(t)
		if err != nil {
			return nil, err
		}
		if c.proposer, err = makeRowBuilder(g, Insert, columns); err != nil {
			return nil, err
		}
	}
	row := c.proposer.row
	return row, c.proposer.propose(row, vals)
}

// InsertProposed inserts the row that Propose has made. It must be the next call after Propose.
func (c *Changes) InsertProposed(ctx context.Context) error {
	if err := c.proposer.checkProposed(c, c.proposer.row); err != nil {
		return err
	}
	return c.insertRow(ctx, c.proposer)
}

// InsertOrIgnore inserts a row, unless a row with the same key exists.
func (c *Changes) InsertOrIgnore(ctx context.Context, t *schema.Table, columns []*schema.Column, vals []value.Value) (row []value.Value, inserted bool, err error) {
	b, err := c.builder(t, Insert, columns)
	if err != nil {
		return nil, false, err
	}
	if err := b.fillNew(c, b.row, vals); err != nil {
		return nil, false, err
	}
	key, err := c.rowKey(b.target)
	if err != nil {
		return nil, false, err
	}
	if _, ok, err := c.w.Get(ctx, key, c.keyLock()); ok || err != nil {
		return nil, false, err
	}
	return b.row, true, c.write(ctx, b, key, nil, b.inserts)
}

// InsertOrUpdate inserts a row, or sets the given columns if the row exists. It fails if it was already called for a
// row with the same key.
func (c *Changes) InsertOrUpdate(ctx context.Context, t *schema.Table, columns []*schema.Column, vals []value.Value) (row []value.Value, inserted bool, err error) {
	b, err := c.builder(t, InsertOrUpdate, columns)
	if err != nil {
		return nil, false, err
	}
	if err := b.fillNew(c, b.row, vals); err != nil {
		return nil, false, err
	}
	key, err := c.rowKey(b.target)
	if err != nil {
		return nil, false, err
	}
	if c.touched[string(key)] {
		return nil, false, usererror.RowAffectedTwice(t.FullName(), b.layout.rowText(b.row))
	}
	if c.touched == nil {
		c.touched = map[string]bool{}
	}
	c.touched[string(key)] = true
	inserted, err = c.upsert(ctx, b, key, vals)
	return b.row, inserted, err
}

// Update sets columns of a row that the same transaction has read through Rows. columns must not contain key columns.
func (c *Changes) Update(ctx context.Context, t *schema.Table, old Stored, columns []*schema.Column, vals []value.Value) ([]value.Value, error) {
	g, err := c.target(t)
	if err != nil {
		return nil, err
	}
	if b := c.last; b == nil || b.target != g || b.op != Update || !sameColumns(b.columns, columns) {
		if c.last, err = newUpdateBuilder(g, columns); err != nil {
			return nil, err
		}
	}
	return g.row, c.update(ctx, c.last, old, vals)
}

// Delete deletes a row that the same transaction has read through Rows, and the children of the row.
func (c *Changes) Delete(ctx context.Context, t *schema.Table, old Stored) error {
	g, err := c.target(t)
	if err != nil {
		return err
	}
	if err := c.add(1); err != nil {
		return err
	}
	return c.delete(ctx, g, old)
}

// Get reads the row at key, for a later Update or Delete, and locks the row exclusively.
func (c *Changes) Get(ctx context.Context, key []byte) (s Stored, ok bool, err error) {
	val, ok, err := c.w.Get(ctx, key, LockExclusive)
	if !ok || err != nil {
		return Stored{}, false, err
	}
	return Stored{Key: bytes.Clone(key), Value: bytes.Clone(val)}, true, nil
}

// Finish repeats the checks that failed when a change was made, and returns an error if one fails again. It also
// returns an error if mutations of the commit conflict (see actions).
func (c *Changes) Finish(ctx context.Context) error {
	if err := c.checkActions(); err != nil {
		return err
	}
	for len(c.pending) > 0 {
		check := c.pending[0]
		c.pending = c.pending[1:]
		if err := check(ctx); err != nil {
			return err
		}
	}
	return nil
}

// later registers a check that Finish will make.
func (c *Changes) later(check func(ctx context.Context) error) { c.pending = append(c.pending, check) }

func (c *Changes) target(t *schema.Table) (*target, error) {
	for _, g := range c.targets {
		if g.table == t {
			return g, nil
		}
	}
	d, err := c.tables.of(t)
	if err != nil {
		return nil, err
	}
	g := newTarget(d, c.dml)
	c.targets = append(c.targets, g)
	return g, nil
}

// builder returns a rowBuilder for this table, operation and list of columns. It reuses c.last if that was made for the
// same table, operation and columns.
func (c *Changes) builder(t *schema.Table, op Op, columns []*schema.Column) (*rowBuilder, error) {
	if b := c.last; b != nil && b.table == t && b.op == op && sameColumns(b.columns, columns) {
		return b, nil
	}
	g, err := c.target(t)
	if err != nil {
		return nil, err
	}
	b, err := newRowBuilder(g, op, columns)
	if err == nil {
		c.last = b
	}
	return b, err
}

// sameColumns reports whether a and b are the same slice. Callers pass one slice for all rows of a statement.
func sameColumns(a, b []*schema.Column) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// add counts n more mutations. It returns an error if the count exceeds the limit.
func (c *Changes) add(n int64) error {
	if c.count += n; c.count > c.maxCount {
		return usererror.TooManyMutations(MaxMutations)
	}
	return nil
}

func (c *Changes) put(ctx context.Context, key, val []byte, pendKey, pendValue []Pending) error {
	if c.bytes += int64(len(key) + len(val)); c.bytes > c.maxBytes {
		return usererror.CommitTooLarge(MaxCommitBytes)
	}
	return c.w.Put(ctx, key, val, pendKey, pendValue)
}

func (c *Changes) remove(ctx context.Context, key []byte) error {
	if c.bytes += int64(len(key)); c.bytes > c.maxBytes {
		return usererror.CommitTooLarge(MaxCommitBytes)
	}
	return c.w.Delete(ctx, key)
}

// rowKey makes the key of g.row in the buffer c.key and returns it. It returns an error if the key is too long.
func (c *Changes) rowKey(g *target) ([]byte, error) {
	c.key, c.pendKey = g.layout.appendRowKey(c.key[:0], g.row, c.pendKey[:0])
	return c.key, g.layout.checkKeySize(len(c.key), g.row)
}

// keyLock returns the lock that a write must take for the key that rowKey made last.
func (c *Changes) keyLock() Lock {
	if len(c.pendKey) > 0 {
		return LockWriterSharedTimestamp
	}
	return LockExclusive
}

func (c *Changes) insert(ctx context.Context, b *rowBuilder, vals []value.Value) error {
	if err := b.fillNew(c, b.row, vals); err != nil {
		return err
	}
	return c.insertRow(ctx, b)
}

// insertRow inserts b.row, in which all columns are set. It fails if the row exists.
func (c *Changes) insertRow(ctx context.Context, b *rowBuilder) error {
	key, err := c.rowKey(b.target)
	if err != nil {
		return err
	}
	_, ok, err := c.w.Get(ctx, key, c.keyLock())
	if err != nil {
		return err
	}
	if ok {
		return usererror.RowExists(b.table.FullName(), b.layout.rowText(b.row))
	}
	return c.write(ctx, b, key, nil, b.inserts)
}

// upsert inserts b.row, which fillNew has made, at key. If a row exists at key, upsert updates that row instead.
func (c *Changes) upsert(ctx context.Context, b *rowBuilder, key []byte, vals []value.Value) (inserted bool, err error) {
	val, ok, err := c.w.Get(ctx, key, c.keyLock())
	if err != nil {
		return false, err
	}
	if ok {
		c.oldKey = append(c.oldKey[:0], key...)
		return false, c.update(ctx, b, Stored{c.oldKey, val}, vals)
	}
	return true, c.write(ctx, b, key, nil, b.inserts)
}

// update sets columns of the row old. It does not modify the bytes of old, which may belong to the Writer.
func (c *Changes) update(ctx context.Context, b *rowBuilder, old Stored, vals []value.Value) error {
	if err := b.decode(b.old, old); err != nil {
		return err
	}
	copy(b.row, b.old)
	if err := b.fillUpdate(c, b.row, vals); err != nil {
		return err
	}
	c.key, c.pendKey = b.layout.appendRowKey(c.key[:0], b.row, c.pendKey[:0])
	if !bytes.Equal(c.key, old.Key) {
		return usererror.GeneratedKeyChanged(b.changedKeyColumn())
	}
	return c.write(ctx, b, c.key, b.old, b.updates)
}

func (b *rowBuilder) changedKeyColumn() string {
	for _, p := range b.table.Key {
		if value.Compare(b.old[p.Column.Ordinal], b.row[p.Column.Ordinal], p.Column.Type) != 0 {
			return p.Column.Name
		}
	}
	return ""
}

// write stores b.row, in which all columns are set, at key. old is the row that b.row replaces, or nil. count is the
// number of mutations that the write counts as.
func (c *Changes) write(ctx context.Context, b *rowBuilder, key []byte, old []value.Value, count int64) error {
	if err := c.add(count); err != nil {
		return err
	}
	if err := c.checkRow(b.target, key, b.row); err != nil {
		return err
	}
	if old == nil && b.parent != nil {
		if err := c.checkParent(ctx, b.target, key); err != nil {
			return err
		}
	}
	c.val, c.pendValue = appendRowValue(c.val[:0], b.stored, b.row, c.pendValue[:0])
	if err := c.put(ctx, key, c.val, c.pendKey, c.pendValue); err != nil {
		return err
	}
	c.wrote(b.table, 1, len(key)+len(c.val))
	c.actions.wrote(b, key, old)
	if err := c.captureWrite(ctx, b, key, old); err != nil {
		return err
	}
	if err := c.writeEntries(ctx, b.target, old); err != nil {
		return err
	}
	return c.checkForeignKeys(ctx, b.target, old)
}

// checkParent checks that the parent row of g.row exists. If the parent is missing, Finish checks again, since a later
// change may write it.
func (c *Changes) checkParent(ctx context.Context, g *target, key []byte) error {
	c.parts = c.parts[:0]
	lock := LockCheck
	for _, p := range g.table.Key[:len(g.parent.Key)] {
		v := g.row[p.Column.Ordinal]
		if v.IsPending() {
			lock = LockWriterSharedTimestamp
		}
		c.parts = append(c.parts, v)
	}
	parent := g.parent.AppendKey(nil, c.parts)
	if bytes.Equal(parent, c.parent) {
		return nil
	}
	_, ok, err := c.w.Get(ctx, parent, lock)
	if err != nil {
		return err
	}
	if ok {
		c.parent = parent
		return nil
	}
	child := bytes.Clone(key)
	c.later(func(ctx context.Context) error { return c.recheckParent(ctx, g, parent, child) })
	return nil
}

func (c *Changes) recheckParent(ctx context.Context, g *target, parent, child []byte) error {
	if _, ok, err := c.w.Get(ctx, child, LockExclusive); !ok || err != nil {
		return err
	}
	if _, ok, err := c.w.Get(ctx, parent, LockCheck); ok || err != nil {
		return err
	}
	return usererror.ParentNotFound(g.table.Parent.FullName(), g.table.FullName(), g.parent.storedText(parent))
}
