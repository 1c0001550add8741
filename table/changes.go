package table

import (
	"bytes"
	"context"
	"time"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// Changes writes rows through a Writer: one commit's mutations, or one DML
// statement. All that goes with a row is done with it: its index entries,
// defaults, generated columns, children. What a later change may still put right
// (a missing parent, a unique key that is taken, a CHECK, a foreign key) is noted
// and looked at again by Finish, without which nothing is settled.
//
// A Changes serves one goroutine. After an error what it has written must be undone by the transaction.
type Changes struct {
	w     Writer
	now   time.Time
	count int64 // mutations
	bytes int64 // of keys and values
	// maxCount and maxBytes are the limits of these.
	maxCount, maxBytes int64
	// dml says that rows are returned to SQL: virtual columns are then wanted too.
	dml     bool
	targets []*target // few
	shape   *shape    // of the last row
	pending []func(ctx context.Context) error
	deleted []deletion // by Delete mutations
	written []Written
	touched map[string]bool // keys that INSERT OR UPDATE has written
	parent  []byte          // the last parent found, so that its next child need not look

	// Room for what is written.
	key, val, oldKey   []byte
	entryKey, newKey   []byte
	pendKey, pendValue []Pending
	parts              []value.Value
}

// deletion is what a Delete mutation covered.
type deletion struct {
	table *schema.Table
	spans []Span
}

// NewChanges begins the changes of one DML statement. now is the time that no written commit timestamp may lie behind.
func NewChanges(w Writer, now time.Time) *Changes {
	room := make([]byte, keyRoom+valueRoom)
	return &Changes{
		w: w, now: now, dml: true,
		maxCount: MaxMutations, maxBytes: MaxCommitBytes,
		key: room[:0:keyRoom], val: room[keyRoom:keyRoom],
	}
}

// Room for the key and the value of most rows.
const (
	keyRoom   = 64
	valueRoom = 448
)

// Count is the number of mutations so far.
func (c *Changes) Count() int64 { return c.count }

// Bytes are those of the keys and values written so far, of index entries and of deleted keys too.
func (c *Changes) Bytes() int64 { return c.bytes }

// Written is what was inserted or updated in a table.
type Written struct {
	Table *schema.Table
	Rows  int64
	Bytes int64 // of keys and values, without those of index entries
}

// Written is what was written so far, by table.
func (c *Changes) Written() []Written { return c.written }

func (c *Changes) wrote(t *schema.Table, bytes int) {
	for i := range c.written {
		if w := &c.written[i]; w.Table == t {
			w.Rows++
			w.Bytes += int64(bytes)
			return
		}
	}
	c.written = append(c.written, Written{t, 1, int64(bytes)})
}

// Insert inserts a row and returns it, by ordinal; a row that is there is an error. Rows that methods
// of Changes return are good until the next call.
func (c *Changes) Insert(ctx context.Context, t *schema.Table, columns []*schema.Column, vals []value.Value) ([]value.Value, error) {
	s, err := c.shapeOf(t, Insert, columns)
	if err != nil {
		return nil, err
	}
	return s.row, c.insert(ctx, s, vals)
}

// InsertOrIgnore inserts a row unless one with its key is there.
func (c *Changes) InsertOrIgnore(ctx context.Context, t *schema.Table, columns []*schema.Column, vals []value.Value) (row []value.Value, inserted bool, err error) {
	s, err := c.shapeOf(t, Insert, columns)
	if err != nil {
		return nil, false, err
	}
	if err := s.fillNew(c, s.row, vals); err != nil {
		return nil, false, err
	}
	key, err := c.rowKey(s.target)
	if err != nil {
		return nil, false, err
	}
	if _, ok, err := c.w.Get(ctx, key, LockExclusive); ok || err != nil {
		return nil, false, err
	}
	return s.row, true, c.write(ctx, s, key, nil, s.inserts)
}

// InsertOrUpdate inserts a row, or sets the given columns of the one that is there. It refuses to do so twice for one key.
func (c *Changes) InsertOrUpdate(ctx context.Context, t *schema.Table, columns []*schema.Column, vals []value.Value) (row []value.Value, inserted bool, err error) {
	s, err := c.shapeOf(t, InsertOrUpdate, columns)
	if err != nil {
		return nil, false, err
	}
	if err := s.fillNew(c, s.row, vals); err != nil {
		return nil, false, err
	}
	key, err := c.rowKey(s.target)
	if err != nil {
		return nil, false, err
	}
	if c.touched[string(key)] {
		return nil, false, usererror.RowAffectedTwice(t.FullName(), s.layout.rowText(s.row))
	}
	if c.touched == nil {
		c.touched = map[string]bool{}
	}
	c.touched[string(key)] = true
	inserted, err = c.upsert(ctx, s, key, vals)
	return s.row, inserted, err
}

// Update sets columns of a row that a Rows of this transaction has read; columns do not name the key.
func (c *Changes) Update(ctx context.Context, t *schema.Table, old Stored, columns []*schema.Column, vals []value.Value) ([]value.Value, error) {
	g, err := c.target(t)
	if err != nil {
		return nil, err
	}
	if s := c.shape; s == nil || s.target != g || s.op != Update || !sameColumns(s.columns, columns) {
		if c.shape, err = newUpdateShape(g, columns); err != nil {
			return nil, err
		}
	}
	return g.row, c.update(ctx, c.shape, old, vals)
}

// Delete deletes a row that a Rows of this transaction has read, and its children.
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

// Get reads a row, locked exclusively, for Update or Delete.
func (c *Changes) Get(ctx context.Context, key []byte) (s Stored, ok bool, err error) {
	val, ok, err := c.w.Get(ctx, key, LockExclusive)
	if !ok || err != nil {
		return Stored{}, false, err
	}
	return Stored{Key: bytes.Clone(key), Value: bytes.Clone(val)}, true, nil
}

// Finish checks what had to wait for the last change.
func (c *Changes) Finish(ctx context.Context) error {
	for len(c.pending) > 0 {
		check := c.pending[0]
		c.pending = c.pending[1:]
		if err := check(ctx); err != nil {
			return err
		}
	}
	return nil
}

// later has a check made again by Finish.
func (c *Changes) later(check func(ctx context.Context) error) { c.pending = append(c.pending, check) }

func (c *Changes) target(t *schema.Table) (*target, error) {
	for _, g := range c.targets {
		if g.table == t {
			return g, nil
		}
	}
	g, err := newTarget(t, c.dml)
	if err == nil {
		c.targets = append(c.targets, g)
	}
	return g, err
}

func (c *Changes) shapeOf(t *schema.Table, op Op, columns []*schema.Column) (*shape, error) {
	if s := c.shape; s != nil && s.table == t && s.op == op && sameColumns(s.columns, columns) {
		return s, nil
	}
	g, err := c.target(t)
	if err != nil {
		return nil, err
	}
	s, err := newShape(g, op, columns)
	if err == nil {
		c.shape = s
	}
	return s, err
}

// sameColumns says whether a and b are one and the same slice: callers use one for all rows.
func sameColumns(a, b []*schema.Column) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// add counts mutations.
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

// rowKey makes the key of g.row, in c.key.
func (c *Changes) rowKey(g *target) ([]byte, error) {
	c.key, c.pendKey = g.layout.appendRowKey(c.key[:0], g.row, c.pendKey[:0])
	return c.key, g.layout.checkKeySize(len(c.key), g.row)
}

func (c *Changes) insert(ctx context.Context, s *shape, vals []value.Value) error {
	if err := s.fillNew(c, s.row, vals); err != nil {
		return err
	}
	key, err := c.rowKey(s.target)
	if err != nil {
		return err
	}
	_, ok, err := c.w.Get(ctx, key, LockExclusive)
	if err != nil {
		return err
	}
	if ok {
		return usererror.RowExists(s.table.FullName(), s.layout.rowText(s.row))
	}
	return c.write(ctx, s, key, nil, s.inserts)
}

// upsert writes the row that fillNew has made at key, or updates the one that is there.
func (c *Changes) upsert(ctx context.Context, s *shape, key []byte, vals []value.Value) (inserted bool, err error) {
	val, ok, err := c.w.Get(ctx, key, LockExclusive)
	if err != nil {
		return false, err
	}
	if ok {
		c.oldKey = append(c.oldKey[:0], key...)
		return false, c.update(ctx, s, Stored{c.oldKey, val}, vals)
	}
	return true, c.write(ctx, s, key, nil, s.inserts)
}

// update sets columns of the row old, which may lie in the Writer's memory.
func (c *Changes) update(ctx context.Context, s *shape, old Stored, vals []value.Value) error {
	if err := s.decode(s.old, old); err != nil {
		return err
	}
	copy(s.row, s.old)
	if err := s.fillUpdate(c, s.row, vals); err != nil {
		return err
	}
	c.key, c.pendKey = s.layout.appendRowKey(c.key[:0], s.row, c.pendKey[:0])
	if !bytes.Equal(c.key, old.Key) {
		return usererror.KeyColumnChanged(s.table.FullName(), s.changedKeyColumn())
	}
	return c.write(ctx, s, c.key, s.old, s.updates)
}

func (s *shape) changedKeyColumn() string {
	for _, p := range s.table.Key {
		if value.Compare(s.old[p.Column.Ordinal], s.row[p.Column.Ordinal], p.Column.Type) != 0 {
			return p.Column.Name
		}
	}
	return ""
}

// write stores s.row, which is complete, at key; old is the row that was there, or nil.
func (c *Changes) write(ctx context.Context, s *shape, key []byte, old []value.Value, count int64) error {
	if err := c.add(count); err != nil {
		return err
	}
	if err := c.checkRow(s.target, key, s.row); err != nil {
		return err
	}
	if old == nil && s.parent != nil {
		if err := c.checkParent(ctx, s.target, key); err != nil {
			return err
		}
	}
	c.val, c.pendValue = appendRowValue(c.val[:0], s.stored, s.row, c.pendValue[:0])
	if err := c.put(ctx, key, c.val, c.pendKey, c.pendValue); err != nil {
		return err
	}
	c.wrote(s.table, len(key)+len(c.val))
	if err := c.writeEntries(ctx, s.target, old); err != nil {
		return err
	}
	return c.checkForeignKeys(ctx, s.target, old)
}

// checkParent looks for the parent of s.row. One that is missing may still be written.
func (c *Changes) checkParent(ctx context.Context, g *target, key []byte) error {
	c.parts = c.parts[:0]
	for _, p := range g.table.Key[:len(g.parent.Key)] {
		c.parts = append(c.parts, g.row[p.Column.Ordinal])
	}
	parent := g.parent.AppendKey(nil, c.parts)
	if bytes.Equal(parent, c.parent) {
		return nil
	}
	_, ok, err := c.w.Get(ctx, parent, LockCheck)
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
