package database

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// schemaModel is the schema and the rows of TestSchemaModel. All tables always have columns K, X, Y and S; other
// columns are added and dropped. A schemaStep changes the model in place. The method schemaModel.with returns a changed
// copy.
type schemaModel struct {
	tables []*tableModel
	number int                 // number of names that newName has made
	free   map[string][]string // names of dropped objects, by kind
}

type tableModel struct {
	name    string
	parent  string // "" for a root table; a child has a further key column L
	cascade bool   // for a child: its rows are deleted with their parent
	columns []columnModel
	notNull map[string]bool
	longest int // the greatest length that the type of S allows, in characters or bytes; 0 is MAX
	indexes []indexModel
	checks  map[string]int64  // for each name of a CHECK: the number that Y must be less than
	foreign map[string]string // for each name of a foreign key: the table to whose key X refers
	// cascades holds the names of those foreign keys that have ON DELETE CASCADE.
	cascades map[string]bool
	bytes    bool                // the type of column S is BYTES, not STRING
	synonym  string              // the table's synonym; "" if it has none
	views    map[string][]string // the columns of each view, by name
	policy   string              // the column of the table's ROW DELETION POLICY, "" for none; no row expires
	rows     map[rowKey]map[string]cell
}

// rowKey is the key of a row: K and, in a child, L.
type rowKey [2]int64

// columnModel is a column that can be added and dropped.
type columnModel struct {
	name, kind string // kind: plain, default, stored, virtual, stamp, identity or sequence
}

type indexModel struct {
	name         string
	key          []string
	storing      []string
	unique       bool
	nullFiltered bool
}

// cell is a value of a column: NULL, a number or a text.
type cell struct {
	set  bool
	text string
}

func number(n int64) cell     { return cell{true, strconv.FormatInt(n, 10)} }
func text(s string) cell      { return cell{true, s} }
func (c cell) String() string { return map[bool]string{true: c.text, false: "null"}[c.set] }

// literal returns the SQL literal for a value of a column.
func (t *tableModel) literal(column string, c cell) string {
	switch {
	case !c.set || column != "S":
		return c.String()
	case t.bytes:
		return "b'" + strings.ReplaceAll(c.text, noText, `\xff`) + "'"
	}
	return "'" + c.text + "'"
}

// noText is a value of BYTES that is no valid STRING.
const noText = "\xff"

func (c cell) int() int64 {
	n, _ := strconv.ParseInt(c.text, 10, 64)
	return n
}

func newSchemaModel() *schemaModel {
	return &schemaModel{tables: []*tableModel{newTableModel("A", ""), newTableModel("B", ""), newTableModel("C", "A")}, free: map[string][]string{}}
}

func newTableModel(name, parent string) *tableModel {
	return &tableModel{name: name, parent: parent, notNull: map[string]bool{}, checks: map[string]int64{}, foreign: map[string]string{}, cascades: map[string]bool{}, views: map[string][]string{}, rows: map[rowKey]map[string]cell{}}
}

func (t *tableModel) ddl() string {
	if t.parent != "" {
		return fmt.Sprintf("CREATE TABLE %s (K INT64, L INT64, X INT64, Y INT64, S STRING(MAX)) PRIMARY KEY (K, L), INTERLEAVE IN PARENT %s", t.name, t.parent)
	}
	return fmt.Sprintf("CREATE TABLE %s (K INT64, X INT64, Y INT64, S STRING(MAX)) PRIMARY KEY (K)", t.name)
}

func (m *schemaModel) ddl() []string {
	list := []string{"CREATE SCHEMA Named", "CREATE SEQUENCE Numbers OPTIONS (sequence_kind = 'bit_reversed_positive')"}
	for _, t := range m.tables {
		list = append(list, t.ddl())
	}
	return list
}

func (m *schemaModel) table(name string) *tableModel {
	at := slices.IndexFunc(m.tables, func(t *tableModel) bool { return t.name == name })
	if at < 0 {
		return nil
	}
	return m.tables[at]
}

// columnNames returns the non-key columns whose values the model can predict: all that no sequence generates.
func (t *tableModel) columnNames() []string {
	names := []string{"X", "Y", "S"}
	for _, c := range t.columns {
		if !c.generates() {
			names = append(names, c.name)
		}
	}
	return names
}

// generates reports whether a sequence generates the values of a column.
func (c columnModel) generates() bool { return c.kind == "identity" || c.kind == "sequence" }

// filled sets the columns of a row that have a DEFAULT and were not written, and the generated columns. It returns the
// row.
func (t *tableModel) filled(row map[string]cell) map[string]cell {
	for _, c := range t.columns {
		switch _, given := row[c.name]; c.kind {
		case "default":
			if !given {
				row[c.name] = number(4)
			}
		case "stamp":
			if !given {
				row[c.name] = text(modelStamp)
			}
		case "stored", "virtual":
			row[c.name] = cell{}
			if x, y := row["X"], row["Y"]; x.set && y.set {
				row[c.name] = number(x.int() + y.int())
			}
		}
	}
	return row
}

// rowWrite is a statement that writes a row: INSERT OR UPDATE of all columns, UPDATE of one column, or DELETE.
type rowWrite struct {
	sql    string
	table  string
	key    rowKey
	values map[string]cell // the written values by column; nil for a DELETE
	update bool            // the statement is an UPDATE, which changes only a row that exists
	// missed says that an UPDATE or DELETE found no row. Then it changes nothing, even if another transaction inserts
	// the row and commits before the statement's own transaction commits.
	missed bool
}

// randomWrite returns a random write. It is a DELETE only if deletes is true.
func (m *schemaModel) randomWrite(rng *rand.Rand, deletes bool) rowWrite {
	t := m.tables[rng.IntN(len(m.tables))]
	name := t.name
	if t.synonym != "" && rng.IntN(2) == 0 {
		name = t.synonym
	}
	w := rowWrite{table: t.name, key: rowKey{rng.Int64N(12)}}
	if rng.IntN(3) == 0 {
		w.key[0] = 1000 + rng.Int64N(modelFiller)
	}
	names, literals, where := "K", fmt.Sprint(w.key[0]), fmt.Sprintf("K = %d", w.key[0])
	if t.parent != "" {
		w.key[1] = rng.Int64N(2)
		names, literals, where = "K, L", literals+fmt.Sprintf(", %d", w.key[1]), where+fmt.Sprintf(" AND L = %d", w.key[1])
	}
	drawn := map[string]cell{"X": number(rng.Int64N(12)), "Y": number(rng.Int64N(18)), "S": text("s" + strconv.Itoa(rng.IntN(300)))}
	for _, c := range []string{"X", "Y", "S"} {
		if rng.IntN(12) == 0 {
			drawn[c] = cell{}
		}
	}
	if t.bytes && rng.IntN(8) == 0 {
		drawn["S"] = text(noText)
	}
	switch kind := rng.IntN(5); {
	case kind == 0 && deletes:
		w.sql = fmt.Sprintf("DELETE FROM %s WHERE %s", name, where)
	case kind == 1:
		c := []string{"X", "Y", "S"}[rng.IntN(3)]
		w.values, w.update = map[string]cell{c: drawn[c]}, true
		w.sql = fmt.Sprintf("UPDATE %s SET %s = %s WHERE %s", name, c, t.literal(c, drawn[c]), where)
	default:
		w.values = drawn
		for _, c := range []string{"X", "Y", "S"} {
			names, literals = names+", "+c, literals+", "+t.literal(c, drawn[c])
		}
		w.sql = fmt.Sprintf("INSERT OR UPDATE INTO %s (%s) VALUES (%s)", name, names, literals)
	}
	_, there := t.rows[w.key]
	w.missed = !there && (w.update || w.values == nil)
	return w
}

// with returns a copy of the model after a write. The rows of the copy may break constraints: see broken.
func (m *schemaModel) with(w rowWrite) *schemaModel {
	next := *m
	next.tables = slices.Clone(m.tables)
	own := func(i int) *tableModel {
		t := *next.tables[i]
		t.rows = maps.Clone(t.rows)
		next.tables[i] = &t
		return &t
	}
	at := slices.IndexFunc(m.tables, func(t *tableModel) bool { return t.name == w.table })
	if at < 0 || w.missed {
		return &next // the table was renamed or dropped after the statement: the transaction cannot commit a row of it
	}
	t := own(at)
	old, there := t.rows[w.key]
	switch {
	case w.values == nil:
		next.remove(own, at, w.key)
	case there || !w.update:
		row := maps.Clone(old)
		if row == nil {
			row = map[string]cell{}
		}
		maps.Copy(row, w.values)
		t.rows[w.key] = t.filled(row)
	}
	return &next
}

// remove removes a row, if it exists, and the rows that are deleted together with it. own(i) returns a copy of table i
// that belongs to the new model and may be changed.
func (m *schemaModel) remove(own func(at int) *tableModel, at int, key rowKey) {
	t := own(at)
	if _, there := t.rows[key]; !there {
		return
	}
	delete(t.rows, key)
	for i, other := range m.tables {
		for k, row := range other.rows {
			cascaded := other.parent == t.name && other.cascade && k[0] == key[0]
			for name, to := range other.foreign {
				cascaded = cascaded || to == t.name && other.cascades[name] && row["X"] == number(key[0])
			}
			if cascaded {
				m.remove(own, i, k)
			}
		}
	}
}

// broken returns the name of a constraint that some row breaks, or "" if there is none.
func (m *schemaModel) broken() string {
	for _, t := range m.tables {
		for c := range t.notNull {
			if t.hasNull(c) {
				return t.name + "." + c + " NOT NULL"
			}
		}
		for name, limit := range t.checks {
			if t.above(limit) {
				return name
			}
		}
		for name, to := range t.foreign {
			if m.dangles(t, to) {
				return name
			}
		}
		for _, x := range t.indexes {
			if x.unique && t.repeats(x) {
				return x.name
			}
		}
		if t.parent != "" && m.orphans(t) {
			return t.name + " in " + t.parent
		}
		if t.longest > 0 && t.longer(t.longest) {
			return t.name + ".S"
		}
	}
	return ""
}

func (t *tableModel) any(is func(k rowKey, row map[string]cell) bool) bool {
	for k, row := range t.rows {
		if is(k, row) {
			return true
		}
	}
	return false
}

func (t *tableModel) hasNull(column string) bool {
	return t.any(func(_ rowKey, row map[string]cell) bool { return !row[column].set })
}

func (t *tableModel) above(limit int64) bool {
	return t.any(func(_ rowKey, row map[string]cell) bool { return row["Y"].set && row["Y"].int() >= limit })
}

func (t *tableModel) longer(n int) bool {
	return t.any(func(_ rowKey, row map[string]cell) bool { return len(row["S"].text) > n })
}

func (m *schemaModel) dangles(t *tableModel, to string) bool {
	other := m.table(to)
	return t.any(func(_ rowKey, row map[string]cell) bool {
		_, found := other.rows[rowKey{row["X"].int()}]
		return row["X"].set && !found
	})
}

func (m *schemaModel) orphans(t *tableModel) bool {
	parent := m.table(t.parent)
	return t.any(func(k rowKey, _ map[string]cell) bool { _, found := parent.rows[rowKey{k[0]}]; return !found })
}

// entry returns the entry of an index for a row. key is the text of the index key; line is the text of the index key,
// the table's key and the stored columns. ok is false if the row has no entry.
func (t *tableModel) entry(x indexModel, k rowKey, row map[string]cell) (key string, line string, ok bool) {
	var parts []string
	for _, c := range x.key {
		if c == "K" {
			parts = append(parts, fmt.Sprint(k[0]))
			continue
		}
		if !row[c].set && x.nullFiltered {
			return "", "", false
		}
		parts = append(parts, row[c].String())
	}
	key = strings.Join(parts, " ")
	parts = append(parts, fmt.Sprint(k[0]))
	if t.parent != "" {
		parts = append(parts, fmt.Sprint(k[1]))
	}
	for _, c := range x.storing {
		parts = append(parts, row[c].String())
	}
	return key, strings.Join(parts, " "), true
}

func (t *tableModel) repeats(x indexModel) bool {
	keys := map[string]bool{}
	return t.any(func(k rowKey, row map[string]cell) bool {
		key, _, ok := t.entry(x, k, row)
		again := ok && keys[key]
		keys[key] = keys[key] || ok
		return again
	})
}

// modelQuery is a query with its expected rows, sorted.
type modelQuery struct {
	sql  string
	want []string
}

// queries returns queries that read every table and every index.
func (m *schemaModel) queries() (list []modelQuery) {
	for _, t := range m.tables {
		key := []string{"K"}
		if t.parent != "" {
			key = []string{"K", "L"}
		}
		columns := append(slices.Clone(key), t.columnNames()...)
		q := modelQuery{sql: fmt.Sprintf("SELECT %s FROM %s@{FORCE_INDEX=_BASE_TABLE}", strings.Join(columns, ", "), t.name)}
		for k, row := range t.rows {
			var line []string
			for i := range key {
				line = append(line, fmt.Sprint(k[i]))
			}
			for _, c := range t.columnNames() {
				line = append(line, row[c].String())
			}
			q.want = append(q.want, strings.Join(line, " "))
		}
		list = append(list, q)
		list = append(list, t.objectQueries()...)
		for _, x := range t.indexes {
			q := modelQuery{sql: fmt.Sprintf("SELECT %s FROM %s@{FORCE_INDEX=`%s`}", strings.Join(slices.Concat(x.key, key, x.storing), ", "), t.name, x.name)}
			if x.nullFiltered {
				q.sql += " WHERE " + strings.Join(x.key, " IS NOT NULL AND ") + " IS NOT NULL"
			}
			for k, row := range t.rows {
				if _, line, ok := t.entry(x, k, row); ok {
					q.want = append(q.want, line)
				}
			}
			list = append(list, q)
		}
	}
	for _, q := range list {
		slices.Sort(q.want)
	}
	return list
}
