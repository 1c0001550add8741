package exec

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/sql/plan"
	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// dmlCode is a compiled DML statement.
type dmlCode struct {
	node   *plan.DML
	layout *table.Layout
	tables *table.Descriptors
	target *plan.Scan // the scan whose rows are kept until the statement changes them (see readRows); nil if none are
	input  maker
	rows   [][]eval // the expressions of VALUES, by row and column; a nil eval stands for DEFAULT
	assert eval
	// conflict is the compiled clause ON CONFLICT, nil without that clause.
	conflict *conflictCode
	// returns are the expressions of THEN RETURN, which are computed over rows with the columns
	// node.Return.Columns. A nil expression stands for the column of WITH ACTION.
	returns []eval
	columns []plan.Column
}

func (c *compiler) dml(n *plan.DML) (*dmlCode, error) {
	m := &dmlCode{node: n, layout: table.TableLayout(n.Table), tables: c.tables, target: targetOf(c.tables.Catalog(), n), columns: c.prog.plan.Columns}
	var err error
	if n.Input != nil {
		if m.input, err = c.node(n.Input); err != nil {
			return nil, err
		}
	}
	for _, row := range n.Rows {
		evals, err := c.exprs(row)
		if err != nil {
			return nil, err
		}
		m.rows = append(m.rows, evals)
	}
	if n.Return != nil {
		if m.returns, err = c.exprs(n.Return.Exprs); err != nil {
			return nil, err
		}
	}
	if n.Conflict != nil {
		if m.conflict, err = c.conflict(n); err != nil {
			return nil, err
		}
	}
	m.assert, err = c.optional(n.Assert)
	return m, err
}

// run runs the statement: it computes the rows to change, then changes them. It returns the rows of THEN RETURN.
func (m *dmlCode) run(r *run) (Rows, error) {
	if r.env.Writer == nil {
		return nil, fmt.Errorf("run plan: DML without a writer")
	}
	d := &change{dmlCode: m, run: r, changes: table.NewChanges(r.env.Writer, m.tables, r.fns.Now)}
	d.out.width = len(m.returns)
	r.target.scan = m.target
	var err error
	switch m.node.Kind {
	case plan.Insert:
		err = d.insert()
	case plan.Update:
		err = d.update()
	case plan.Delete:
		err = d.delete()
	}
	if err == nil {
		err = d.changes.Finish(r.ctx)
	}
	if err != nil {
		return nil, err
	}
	if d.assert != nil {
		v, err := d.assert(r, nil)
		if err != nil {
			return nil, err
		}
		if v.IsNull() || v.AsInt64() != d.count {
			return nil, usererror.AssertRowsModified(v.AsInt64(), d.count)
		}
	}
	return &changedRows{batchRows: batchRows{columns: m.columns, batch: &d.out}, run: r, count: d.count, changes: d.changes}, nil
}

// change is the state of one run of a DML statement.
type change struct {
	*dmlCode
	run       *run
	changes   *table.Changes
	count     int64   // the number of rows changed
	out       batch   // the rows of THEN RETURN
	collected rowList // the rows of the input
	scratch   []value.Value
	touched   map[string]bool // keys of rows that ON CONFLICT has inserted or updated
}

// collect computes all rows of the input before anything is changed.
func (d *change) collect() error {
	d.collected.types = plan.Types(d.node.Input)
	if err := drain(d.run, d.input(d.run), func(row []value.Value) error { return d.collected.add(d.run, row) }); err != nil {
		return err
	}
	return d.collected.finish()
}

// each calls f with each row that collect has computed. f may keep the row, because its memory is not reused.
func (d *change) each(f func(row []value.Value) error) error {
	rows := d.collected.read()
	for {
		row, ok, err := rows.nextRow()
		if !ok || err != nil {
			return err
		}
		if rows.disk != nil {
			row = slices.Clone(row)
		}
		if err := f(row); err != nil {
			return err
		}
	}
}

// changed counts a changed row and computes its row of THEN RETURN. row has a value for each column of the table;
// action is what THEN RETURN WITH ACTION returns.
func (d *change) changed(row []value.Value, action string) error {
	d.count++
	if d.node.Return == nil {
		return nil
	}
	d.scratch = d.scratch[:0]
	for _, c := range d.node.Return.Columns {
		v := row[c.Ordinal]
		if v.IsPending() {
			return usererror.PendingCommitTimestamp(d.node.Table.FullName(), c.Name)
		}
		d.scratch = append(d.scratch, v)
	}
	return d.returning(d.scratch, action)
}

// returning adds a row to the result of THEN RETURN. It computes the values of the new row from those of a changed row:
// the parameter row holds the columns node.Return.Columns of that row.
func (d *change) returning(row []value.Value, action string) error {
	made := d.out.appendRow()
	for i, f := range d.returns {
		if f == nil {
			made[i] = value.OfString(action)
			continue
		}
		v, err := f(d.run, row)
		if err != nil {
			return err
		}
		made[i] = v
	}
	return nil
}

// update changes the rows whose keys are in the input.
func (d *change) update() error {
	if err := d.collect(); err != nil {
		return err
	}
	nk := len(d.node.Table.Key)
	updated := map[string]bool{} // the keys that were updated so far; used only if the input can hold a key more than once
	var key []byte
	return d.each(func(row []value.Value) error {
		key = d.layout.AppendKey(key[:0], row[:nk])
		if d.node.Distinct {
			if updated[string(key)] {
				return usererror.UpdateTwice(d.node.Table.FullName())
			}
			updated[string(key)] = true
		}
		old, ok, err := d.stored(key)
		if !ok || err != nil {
			return err
		}
		vals := row[nk:]
		for i, c := range d.node.Columns {
			if d.node.Default[i] {
				if vals[i], err = table.DefaultOf(c); err != nil {
					return err
				}
			}
		}
		changed, err := d.changes.Update(d.run.ctx, d.node.Table, old, d.node.Columns, vals)
		if err != nil {
			return err
		}
		return d.changed(changed, "UPDATE")
	})
}

// delete deletes the rows whose keys are in the input. A row of the input holds the key, followed by the columns
// for THEN RETURN.
func (d *change) delete() error {
	if err := d.collect(); err != nil {
		return err
	}
	nk := len(d.node.Table.Key)
	var key []byte
	return d.each(func(row []value.Value) error {
		key = d.layout.AppendKey(key[:0], row[:nk])
		old, ok, err := d.stored(key)
		if !ok || err != nil {
			return err
		}
		if err := d.changes.Delete(d.run.ctx, d.node.Table, old); err != nil {
			return err
		}
		d.count++
		if d.node.Return == nil {
			return nil
		}
		return d.returning(row[nk:], "DELETE")
	})
}

// stored returns the stored row with a given key. If the statement's scan has read the row and d.run.target has kept it
// (see readRows), stored takes the row from d.run.target. Otherwise it reads the row.
func (d *change) stored(key []byte) (table.Stored, bool, error) {
	if s, ok := d.run.target.popKey(key); ok {
		return s, true, nil
	}
	return d.changes.Get(d.run.ctx, key)
}

// insert inserts the rows of VALUES, or those of the input. It computes all rows before it inserts the first one.
func (d *change) insert() error {
	if d.input != nil {
		if err := d.collect(); err != nil {
			return err
		}
		return d.each(func(row []value.Value) error { return d.insertRow(d.node.Columns, row) })
	}
	var lists givenColumns
	type inserted struct {
		columns []*schema.Column
		vals    []value.Value
	}
	rows := make([]inserted, 0, len(d.rows))
	for _, evals := range d.rows {
		row := inserted{columns: lists.of(d.node.Columns, evals), vals: make([]value.Value, 0, len(evals))}
		for _, f := range evals {
			if f == nil {
				continue
			}
			v, err := f(d.run, nil)
			if err != nil {
				return err
			}
			row.vals = append(row.vals, v)
		}
		rows = append(rows, row)
	}
	for _, row := range rows {
		if err := d.insertRow(row.columns, row.vals); err != nil {
			return err
		}
	}
	return nil
}

// givenColumns holds one list of columns for each combination of columns that rows of VALUES give. A row gives a
// column if the row's value for that column is not DEFAULT. Rows that give the same columns share one slice, so that
// package table analyzes each list only once.
type givenColumns []columnList

type columnList struct {
	missing string           // a byte for each column of the statement: 1 if the rows have DEFAULT for it, else 0
	columns []*schema.Column // the columns for which the rows have a value
}

func (g *givenColumns) of(columns []*schema.Column, evals []eval) []*schema.Column {
	if !slices.ContainsFunc(evals, func(f eval) bool { return f == nil }) {
		return columns
	}
	missing := make([]byte, len(evals))
	for i, f := range evals {
		if f == nil {
			missing[i] = 1
		}
	}
	for _, have := range *g {
		if have.missing == string(missing) {
			return have.columns
		}
	}
	list := columnList{missing: string(missing)}
	for i, c := range columns {
		if missing[i] == 0 {
			list.columns = append(list.columns, c)
		}
	}
	*g = append(*g, list)
	return list.columns
}

func (d *change) insertRow(columns []*schema.Column, vals []value.Value) error {
	if d.conflict != nil {
		return d.insertOrResolve(columns, vals)
	}
	inserted := true
	var row []value.Value
	var err error
	switch d.node.Mode {
	case tree.InsertOrIgnore:
		if row, inserted, err = d.changes.InsertOrIgnore(d.run.ctx, d.node.Table, columns, vals); err != nil || !inserted {
			return err
		}
	case tree.InsertOrUpdate:
		row, inserted, err = d.changes.InsertOrUpdate(d.run.ctx, d.node.Table, columns, vals)
	default:
		row, err = d.changes.Insert(d.run.ctx, d.node.Table, columns, vals)
	}
	if err != nil {
		return err
	}
	if inserted {
		return d.changed(row, "INSERT")
	}
	return d.changed(row, "UPDATE")
}

// changedRows are the Rows of a DML statement: the rows that THEN RETURN returns, none without that clause.
type changedRows struct {
	batchRows
	run     *run
	count   int64
	changes *table.Changes
}

func (c *changedRows) Next() (bool, error) {
	if c.next == c.batch.n {
		return false, nil
	}
	c.next++
	return true, nil
}

func (c *changedRows) RowCount() int64 { return c.count }
func (c *changedRows) Close() error    { return nil }

func (c *changedRows) Stats() Stats {
	s := c.run.cost()
	s.RowsReturned = int64(c.batch.n)
	s.Mutations, s.BytesWritten, s.Written = c.changes.Count(), c.changes.Bytes(), c.changes.Written()
	return s
}

// readRows keeps the stored rows that the scan of an UPDATE or DELETE has read and locked, in the order of the
// scan, so that the statement need not read them again to change them. Operators between the scan and the change
// may drop rows. If these operators change the order of the rows, or if the rows take too much memory, the
// statement reads some rows a second time.
type readRows struct {
	scan *plan.Scan // the scan that reads the rows; nil if they are not kept
	rows []table.Stored
	held held
}

// targetOf returns the scan that reads the rows that a statement changes. It returns nil in three cases: the statement
// is an INSERT; the rows are not read by exactly one scan of the table (for instance, a scan of an index reads them
// instead); or a DELETE can also delete other rows by a cascade.
func targetOf(catalog *schema.Catalog, n *plan.DML) *plan.Scan {
	if n.Input == nil || n.Kind == plan.Insert || n.Kind == plan.Delete && cascades(catalog, n.Table) {
		return nil
	}
	var found []*plan.Scan
	plan.Walk(n.Input, func(in plan.Node) {
		if s, ok := in.(*plan.Scan); ok && s.Table == n.Table && s.Index == nil && s.Exclusive {
			found = append(found, s)
		}
	})
	if len(found) != 1 {
		return nil
	}
	return found[0]
}

// cascades reports whether deleting a row of t can also delete other rows, of t or of other tables.
func cascades(catalog *schema.Catalog, t *schema.Table) bool {
	for _, child := range catalog.Children(t) {
		if child.Interleave == schema.InterleaveCascade {
			return true
		}
	}
	for _, fk := range catalog.ReferencedBy(t) {
		if fk.Cascade {
			return true
		}
	}
	return false
}

func (t *readRows) add(r *run, s table.Stored) error {
	t.rows = append(t.rows, s)
	if err := r.memory.keepBytes(&t.held, rowOverhead+int64(len(s.Key)+len(s.Value))); err != nil || !r.memory.full(t.held) {
		return err
	}
	t.scan, t.rows = nil, nil
	r.memory.release(&t.held)
	return nil
}

// popKey removes and returns the row with a given key. It also removes all rows before that row, so the caller
// should ask for keys in the order of the scan. If no row has the key, popKey removes all rows.
func (t *readRows) popKey(key []byte) (table.Stored, bool) {
	for len(t.rows) > 0 {
		s := t.rows[0]
		t.rows[0], t.rows = table.Stored{}, t.rows[1:]
		if bytes.Equal(s.Key, key) {
			return s, true
		}
	}
	return table.Stored{}, false
}

// conflictCode is a compiled ON CONFLICT clause.
type conflictCode struct {
	node  *plan.Conflict
	key   bool                // an existing row with the primary key of the new row is a conflict
	index []*table.Projection // for each unique index that can conflict, where an index entry holds the primary key
	old   *table.Projection
	set   []eval // the values that DO UPDATE SET assigns; a nil eval stands for DEFAULT
	where eval
}

func (c *compiler) conflict(n *plan.DML) (*conflictCode, error) {
	code := &conflictCode{node: n.Conflict}
	anyKey := !n.Conflict.Key && n.Conflict.Index == nil
	code.key = n.Conflict.Key || anyKey
	key := schema.KeyColumns(n.Table.Key)
	var err error
	for _, x := range n.Table.Indexes {
		if x != n.Conflict.Index && !(anyKey && x.Unique) {
			continue
		}
		p, err := table.NewProjection(n.Table, x, key)
		if err != nil {
			return nil, err
		}
		code.index = append(code.index, p)
	}
	if code.old, err = table.NewProjection(n.Table, nil, n.Conflict.Old); err != nil {
		return nil, err
	}
	if code.set, err = c.exprs(n.Conflict.Set); err != nil {
		return nil, err
	}
	code.where, err = c.optional(n.Conflict.Where)
	return code, err
}

// insertOrResolve inserts a row. If the row conflicts with an existing row, insertOrResolve does what ON CONFLICT
// says.
func (d *change) insertOrResolve(columns []*schema.Column, vals []value.Value) error {
	row, err := d.changes.Propose(d.node.Table, columns, vals)
	if err != nil {
		return err
	}
	there, ok, err := d.clash(row)
	if err != nil {
		return err
	}
	if d.touched == nil {
		d.touched = map[string]bool{}
	}
	if !ok {
		if err := d.changes.InsertProposed(d.run.ctx); err != nil {
			return err
		}
		d.touched[string(d.layout.AppendKey(nil, keyOf(d.node.Table, row)))] = true
		return d.changed(row, "INSERT")
	}
	if !d.conflict.node.Update {
		return nil
	}
	if d.touched[string(there)] {
		return usererror.RowAffectedTwice(d.node.Table.FullName(), d.layout.KeyText(there))
	}
	return d.resolve(there, row)
}

// clash looks for an existing row with which the new row conflicts. It returns the primary key of the existing row.
func (d *change) clash(row []value.Value) (key []byte, ok bool, err error) {
	if d.conflict.key {
		key := d.layout.AppendKey(nil, keyOf(d.node.Table, row))
		if _, ok, err := d.run.view.Get(d.run.ctx, key, table.LockExclusive); ok || err != nil {
			return key, ok, err
		}
	}
	for _, x := range d.conflict.index {
		if key, ok, err := d.clashIn(x, row); ok || err != nil {
			return key, ok, err
		}
	}
	return nil, false, nil
}

// clashIn looks in a unique index for an entry that has the index key of row. It returns the primary key of the row
// to which the entry belongs.
func (d *change) clashIn(p *table.Projection, row []value.Value) (key []byte, ok bool, err error) {
	for _, c := range p.Index.NotNullColumns {
		if row[c.Ordinal].IsNull() {
			return nil, false, nil
		}
	}
	var vals []value.Value
	for _, k := range p.Index.Key {
		vals = append(vals, row[k.Column.Ordinal])
	}
	spans, err := p.Spans(table.KeySet{Keys: [][]value.Value{vals}})
	if err != nil {
		return nil, false, err
	}
	rows := table.Read{Projection: p, Spans: spans, Lock: table.LockExclusive}.Open(d.run.ctx, d.run.view)
	defer rows.Close()
	if ok, err = rows.Next(); !ok || err != nil {
		return nil, false, err
	}
	return d.layout.AppendKey(nil, rows.Values(nil)), true, nil
}

// resolve applies DO UPDATE to an existing row. key is the primary key of this row. proposed is the row that the
// statement tried to insert.
func (d *change) resolve(key []byte, proposed []value.Value) error {
	rows := table.Read{Projection: d.conflict.old, Spans: []table.Span{{Start: key}}, Lock: table.LockExclusive}.Open(d.run.ctx, d.run.view)
	defer rows.Close()
	if ok, err := rows.Next(); !ok || err != nil {
		return err
	}
	both := rows.Values(nil)
	for _, c := range d.conflict.node.New {
		both = append(both, proposed[c.Ordinal])
	}
	if ok, err := isTrue(d.conflict.where, d.run, both); !ok || err != nil {
		return err
	}
	vals := make([]value.Value, len(d.conflict.set))
	for i, f := range d.conflict.set {
		var err error
		if f == nil {
			vals[i], err = table.DefaultOf(d.conflict.node.Columns[i])
		} else {
			vals[i], err = f(d.run, both)
		}
		if err != nil {
			return err
		}
	}
	old, ok, err := d.changes.Get(d.run.ctx, key)
	if !ok || err != nil {
		return err
	}
	row, err := d.changes.Update(d.run.ctx, d.node.Table, old, d.conflict.node.Columns, vals)
	if err != nil {
		return err
	}
	d.touched[string(key)] = true
	return d.changed(row, "UPDATE")
}

func keyOf(t *schema.Table, row []value.Value) []value.Value {
	var key []value.Value
	for _, k := range t.Key {
		key = append(key, row[k.Column.Ordinal])
	}
	return key
}
