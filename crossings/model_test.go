package crossings

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// A model is the expected contents of the database. It has plain tables of rows, and no indexes, plans, copies or
// versions. Once a model belongs to a state of the history, it does not change.
type model struct {
	tables    []*table
	functions map[string]function
	views     []view
	roles     map[string]map[string]bool // tables and views that the role may read
	streamed  time.Time                  // when the change stream was created; zero if there is none
	columnar  bool                       // whether the database's own columnar_policy is enabled
	events    int                        // how many of world.events happened before the model was made
}

// A function is an SQL function in the database, which computes MOD(x, 1000) * times + plus.
type function struct {
	times, plus int64
	features    set
}

type table struct {
	id       int    // the number of the table, which a renaming does not change
	name     string // with the named schema, if it is in one
	synonym  string
	key      []keyPart
	columns  []*column // the key columns come first
	parent   string
	cascade  bool // INTERLEAVE IN PARENT has ON DELETE CASCADE
	indexes  []*index
	checks   []check
	foreign  []foreign
	ttl      string // the column of the row deletion policy; "" if the table has none
	columnar string // its columnar_policy: "", "enabled" or "disabled"
	features set    // features of its definition
	rows     map[string]*row
}

type keyPart struct {
	column string
	desc   bool
}

type column struct {
	name     string
	kind     *kind
	notNull  bool
	standard *cell // the value of its DEFAULT; nil if it has none
	sequence bool  // its default is a value of the sequence
	commit   bool  // whether the column has the option allow_commit_timestamp
	computed *expression
	stored   bool // whether the value of a generated column is stored, instead of computed by reads
	features set
}

// An expression computes a generated column.
type expression struct {
	sql      string
	uses     []string
	function string // the function that it calls, "" for none
	eval     func(m *model, get func(column string) cell) cell
}

type index struct {
	name         string
	key          []keyPart
	storing      []string
	unique       bool
	nullFiltered bool
	columnar     string
	features     set
}

// A check is the constraint column < limit.
type check struct {
	name, column string
	limit        int64
}

// foreign is a foreign key from one column to the key of another table.
type foreign struct {
	name, column, to string
	cascade          bool
}

// A view shows some columns of a table. If except is not nil, the view has only the rows that satisfy it; except has
// the form column != value.
type view struct {
	name, table string
	columns     []string
	except      *predicate
	definer     bool
	features    set
}

// A row has a cell for each column that is not computed.
type row struct {
	cells    map[string]cell
	features set // features of the row's last write and of its values
	written  int // how many of world.events happened before the row was written
}

// commitTime and unknown are cells whose values become known only after the commit. commitTime stands for the commit
// timestamp, and unknown for a value that the server takes from the sequence.
var (
	commitTime = cell{true, "\x00commit timestamp"}
	unknown    = cell{true, "\x00unknown"}
)

func (m *model) clone() *model {
	c := *m
	c.functions, c.views, c.roles = maps.Clone(m.functions), slices.Clone(m.views), map[string]map[string]bool{}
	for role, may := range m.roles {
		c.roles[role] = maps.Clone(may)
	}
	c.tables = nil
	for _, t := range m.tables {
		n := *t
		n.columns, n.indexes, n.checks, n.foreign, n.rows = slices.Clone(t.columns), slices.Clone(t.indexes), slices.Clone(t.checks), slices.Clone(t.foreign), maps.Clone(t.rows)
		c.tables = append(c.tables, &n)
	}
	return &c
}

func (m *model) table(name string) *table {
	for _, t := range m.tables {
		if t.name == name {
			return t
		}
	}
	return nil
}

func (m *model) children(t *table) (list []*table) {
	for _, c := range m.tables {
		if c.parent == t.name {
			list = append(list, c)
		}
	}
	return list
}

func (t *table) column(name string) *column {
	for _, c := range t.columns {
		if c.name == name {
			return c
		}
	}
	return nil
}

func (t *table) inKey(name string) bool {
	return slices.ContainsFunc(t.key, func(p keyPart) bool { return p.column == name })
}

// writable returns the columns to which a write gives values.
func (t *table) writable() (list []*column) {
	for _, c := range t.columns {
		if c.computed == nil {
			list = append(list, c)
		}
	}
	return list
}

// value returns the value of a column in a row.
func (m *model) value(t *table, r *row, name string) cell {
	c := t.column(name)
	if c.computed == nil {
		return r.cells[name]
	}
	return c.computed.eval(m, func(name string) cell { return m.value(t, r, name) })
}

// keyOf returns the row's key as text. Equal keys have the same text.
func (t *table) keyOf(r *row) string {
	return t.keyText(func(name string) cell { return r.cells[name] })
}

func (t *table) keyText(get func(string) cell) string {
	cells := make([]cell, len(t.key))
	for i, p := range t.key {
		cells[i] = t.column(p.column).kind.normal(get(p.column))
	}
	return line(cells)
}

// sorted returns the rows of a table, sorted first by the key parts in the parameter by, and then by the table's key.
func (m *model) sorted(t *table, by []keyPart) []*row {
	list := make([]*row, 0, len(t.rows))
	for _, r := range t.rows {
		list = append(list, r)
	}
	by = slices.Concat(by, t.key)
	slices.SortFunc(list, func(a, b *row) int {
		for _, p := range by {
			if n := t.column(p.column).kind.order(m.value(t, a, p.column), m.value(t, b, p.column)); n != 0 {
				if p.desc {
					return -n
				}
				return n
			}
		}
		return 0
	})
	return list
}

// A verb is the kind of an operation.
type verb int

const (
	insert verb = iota
	insertOrUpdate
	update
	replace
	remove
	updateWhere
	removeWhere
)

var verbs = []string{"insert", "insert or update", "update", "replace", "delete", "update where", "delete where"}

// An operation is a part of a write. It writes or deletes rows, or changes all rows that satisfy a predicate.
type operation struct {
	verb    verb
	table   string
	columns []string // the columns of the values in the field rows; only the key columns if the verb is remove
	rows    [][]cell
	where   *predicate
	column  string // the column that an operation with the verb updateWhere sets
	to      cell
}

func (o *operation) String() string {
	text := fmt.Sprintf("%s %s", verbs[o.verb], o.table)
	if o.where != nil {
		text += " where " + o.where.String()
	}
	if o.verb == updateWhere {
		text += fmt.Sprintf(": %s = %s", o.column, o.to)
	}
	for i, r := range o.rows {
		if i == 3 && len(o.rows) > 5 {
			text += fmt.Sprintf(" ... %d rows", len(o.rows))
			break
		}
		text += fmt.Sprintf(" (%s: %s)", strings.Join(o.columns, " "), line(r))
	}
	return text
}

// A refusal is the reason why a write must fail.
type refusal string

func (r refusal) Error() string { return string(r) }

// apply applies an operation to the model. The parameter by holds the features of the write that the operation belongs
// to.
func (m *model) apply(o *operation, by set) error {
	t := m.table(o.table)
	switch o.verb {
	case updateWhere:
		for _, r := range m.matching(t, o.where) {
			m.put(t, r, map[string]cell{o.column: o.to}, by)
		}
	case removeWhere:
		for _, r := range m.matching(t, o.where) {
			if err := m.remove(t, r); err != nil {
				return err
			}
		}
	default:
		for _, cells := range o.rows {
			if err := m.applyRow(o, t, cells, by); err != nil {
				return err
			}
		}
	}
	return m.broken(false)
}

func (m *model) applyRow(o *operation, t *table, cells []cell, by set) error {
	given := map[string]cell{}
	for i, name := range o.columns {
		given[name] = cells[i]
	}
	old := t.rows[t.keyText(func(name string) cell { return given[name] })]
	switch {
	case o.verb == insert && old != nil:
		return refusal("the row exists")
	case o.verb == update && old == nil:
		return refusal("the row does not exist")
	case (o.verb == remove || o.verb == replace) && old != nil:
		if err := m.remove(t, old); err != nil {
			return err
		}
		old = nil
	}
	if o.verb != remove {
		m.put(t, old, given, by)
	}
	return nil
}

// put stores a row in a table of the model. given has the values of columns that the write sets. The other columns keep
// the values of old, the row before the write. If the row is new, old is nil, and the other columns get their defaults.
// The parameter by holds the features of the write.
func (m *model) put(t *table, old *row, given map[string]cell, by set) {
	r := &row{cells: map[string]cell{}, features: by, written: m.events}
	for _, c := range t.writable() {
		v, ok := given[c.name]
		switch {
		case ok && t.inKey(c.name):
			v = c.kind.normal(v)
		case ok:
		case old != nil:
			v = old.cells[c.name]
		case c.standard != nil:
			v = *c.standard
		case c.sequence:
			v = unknown
		}
		r.cells[c.name] = v
		r.features = r.features.with(valueFeatures(c, v))
	}
	t.rows[t.keyOf(r)] = r
}

// remove deletes a row. Where ON DELETE CASCADE says so, it also deletes the children of the row and the rows that
// refer to it.
func (m *model) remove(t *table, r *row) error {
	for _, child := range m.children(t) {
		for _, c := range m.sorted(child, nil) {
			if !m.isChild(t, r, c) {
				continue
			}
			if !child.cascade {
				return refusal("the row has children")
			}
			if err := m.remove(child, c); err != nil {
				return err
			}
		}
	}
	delete(t.rows, t.keyOf(r))
	for _, from := range m.tables {
		for _, f := range from.foreign {
			if f.to != t.name || !f.cascade {
				continue
			}
			for _, c := range m.sorted(from, nil) {
				if v := m.value(from, c, f.column); v.set && v == r.cells[t.key[0].column] {
					if err := m.remove(from, c); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

// isChild reports whether child, a row of an interleaved table, is a child of r, a row of the parent table.
func (m *model) isChild(parent *table, r, child *row) bool {
	for _, p := range parent.key {
		if child.cells[p.column] != r.cells[p.column] {
			return false
		}
	}
	return true
}

// broken returns an error for a rule that rows violate, or nil. If ended is false, the transaction has not ended yet,
// and foreign keys need not be valid.
func (m *model) broken(ended bool) error {
	for _, t := range m.tables {
		for _, r := range t.rows {
			if err := m.brokenRow(t, r, ended); err != nil {
				return err
			}
		}
		for _, x := range t.indexes {
			if x.unique && m.repeats(t, x) {
				return refusal("two rows have the same key in " + x.name)
			}
		}
	}
	return nil
}

func (m *model) brokenRow(t *table, r *row, ended bool) error {
	for _, c := range t.columns {
		if c.notNull && !m.value(t, r, c.name).set {
			return refusal(c.name + " is NULL")
		}
	}
	for _, c := range t.checks {
		if v := m.value(t, r, c.column); v.set && v.int() >= c.limit {
			return refusal("against " + c.name)
		}
	}
	if t.parent != "" {
		parent := m.table(t.parent)
		if parent.rows[parent.keyText(func(name string) cell { return r.cells[name] })] == nil {
			return refusal("the row has no parent")
		}
	}
	if !ended {
		return nil
	}
	for _, f := range t.foreign {
		to := m.table(f.to)
		if v := m.value(t, r, f.column); v.set && to.rows[to.keyText(func(string) cell { return v })] == nil {
			return refusal("against " + f.name)
		}
	}
	return nil
}

func (m *model) repeats(t *table, x *index) bool {
	entries := map[string]bool{}
	for _, r := range t.rows {
		cells, filtered := m.entry(t, x, r)
		if text := line(cells); !filtered {
			if entries[text] {
				return true
			}
			entries[text] = true
		}
	}
	return false
}

// entry returns the key of the index entry of a row. filtered says that the index has no such entry, because it is
// NULL_FILTERED.
func (m *model) entry(t *table, x *index, r *row) (cells []cell, filtered bool) {
	for _, p := range x.key {
		v := t.column(p.column).kind.normal(m.value(t, r, p.column))
		cells = append(cells, v)
		filtered = filtered || x.nullFiltered && !v.set
	}
	return cells, filtered
}

// matching returns the rows that satisfy a predicate, in the order of the key. If the predicate is nil, it returns all
// rows.
func (m *model) matching(t *table, p *predicate) (list []*row) {
	for _, r := range m.sorted(t, nil) {
		if p == nil || p.holds(t.column(p.column).kind, m.value(t, r, p.column)) {
			list = append(list, r)
		}
	}
	return list
}

// committed replaces the cells that hold commitTime by the commit timestamp.
func (m *model) committed(at time.Time) {
	for _, t := range m.tables {
		for key, r := range t.rows {
			for name, c := range r.cells {
				if c == commitTime {
					n := *r
					n.cells = maps.Clone(r.cells)
					n.cells[name] = timeCell(at)
					t.rows[key] = &n
					r = &n
				}
			}
		}
	}
}

// A predicate compares a column with a constant.
type predicate struct {
	column   string
	operator string // =, <, >=, !=, IS NULL
	value    cell
	literal  string
}

func (p *predicate) String() string {
	if p.operator == "IS NULL" {
		return p.column + " IS NULL"
	}
	return p.column + " " + p.operator + " " + p.literal
}

func (p *predicate) holds(k *kind, v cell) bool {
	if p.operator == "IS NULL" || !v.set {
		return p.operator == "IS NULL" && !v.set
	}
	if k == floatKind && (v.text == "NaN" || p.value.text == "NaN") {
		return p.operator == "!="
	}
	n := k.compare(v, p.value)
	switch p.operator {
	case "=":
		return n == 0
	case "!=":
		return n != 0
	case "<":
		return n < 0
	}
	return n >= 0
}
