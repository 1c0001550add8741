package database

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
)

// schemaStep is a schema change of TestSchemaModel that is valid for the present schema.
type schemaStep struct {
	sql   string
	apply func(m *schemaModel)
	// violated reports whether some row breaks the new condition of the change. The change must fail if a row breaks it
	// when the change ends. It may fail if a row broke it at any moment while the change ran.
	violated func(m *schemaModel) bool
	// cascades says that the change adds a foreign key with ON DELETE CASCADE.
	cascades bool
}

// never is schemaStep.violated for changes without conditions on rows.
func never(*schemaModel) bool { return false }

// step makes a schemaStep that changes one table, but not its name.
func (t *tableModel) step(sql string, apply func(t *tableModel), violated func(m *schemaModel, t *tableModel) bool) *schemaStep {
	name := t.name
	s := &schemaStep{sql: sql, violated: never, apply: func(m *schemaModel) { apply(m.table(name)) }}
	if violated != nil {
		s.violated = func(m *schemaModel) bool { return violated(m, m.table(name)) }
	}
	return s
}

// randomStep returns a random change that the present schema allows.
func (m *schemaModel) randomStep(rng *rand.Rand) *schemaStep {
	kinds := []func(*rand.Rand, *tableModel) *schemaStep{
		m.createIndex, m.createIndex, m.createIndex, m.dropIndex, m.alterIndex, m.addColumn, m.addColumn, m.dropColumn, m.notNull, m.nullable, m.length,
		m.addCheck, m.dropCheck, m.addForeignKey, m.dropForeignKey, m.onDelete, m.rename, m.dropTable, m.createTable,
		m.synonym, m.createView, m.dropView, m.otherKind, m.addPolicy, m.dropPolicy,
	}
	for {
		if s := kinds[rng.IntN(len(kinds))](rng, m.tables[rng.IntN(len(m.tables))]); s != nil {
			return s
		}
	}
}

// newName returns a name that no object has: a new one, or that of a dropped object of the same kind.
func (m *schemaModel) newName(rng *rand.Rand, kind string) string {
	if list := m.free[kind]; len(list) > 0 && rng.IntN(2) == 0 {
		m.free[kind] = list[1:]
		return list[0]
	}
	m.number++
	return fmt.Sprint(kind, m.number)
}

// dropped lets newName return a name again. The letters before the name's number are its kind.
func (m *schemaModel) dropped(name string) {
	kind := strings.TrimRight(name, "0123456789")
	m.free[kind] = append(slices.Clone(m.free[kind]), name)
}

// schemaOf returns the named schema of a table followed by a dot, "" if the table is in no named schema.
func schemaOf(table string) string { return table[:strings.IndexByte(table, '.')+1] }

func (m *schemaModel) createIndex(rng *rand.Rand, t *tableModel) *schemaStep {
	if len(t.indexes) == 4 {
		return nil
	}
	x := indexModel{name: m.newName(rng, schemaOf(t.name)+"Index"), unique: rng.IntN(2) == 0, nullFiltered: rng.IntN(3) == 0}
	columns := t.columnNames()
	rng.Shuffle(len(columns), func(i, k int) { columns[i], columns[k] = columns[k], columns[i] })
	n := 1 + rng.IntN(2)
	x.key = slices.Clone(columns[:n])
	if rng.IntN(2) == 0 {
		x.storing = slices.Clone(columns[n : n+1])
	}
	tail := ""
	if len(x.storing) > 0 {
		tail = " STORING (" + x.storing[0] + ")"
	}
	if t.parent != "" && rng.IntN(3) == 0 { // the index is interleaved in the parent
		x.key = append([]string{"K"}, x.key...)
		tail += ", INTERLEAVE IN " + t.parent
	}
	words := ""
	if x.unique {
		words += "UNIQUE "
	}
	if x.nullFiltered {
		words += "NULL_FILTERED "
	}
	var violated func(*schemaModel, *tableModel) bool
	if x.unique {
		violated = func(_ *schemaModel, t *tableModel) bool { return t.repeats(x) }
	}
	return t.step(fmt.Sprintf("CREATE %sINDEX %s ON %s (%s)%s", words, x.name, t.name, strings.Join(x.key, ", "), tail),
		func(t *tableModel) { t.indexes = append(slices.Clone(t.indexes), x) }, violated)
}

func (m *schemaModel) dropIndex(rng *rand.Rand, t *tableModel) *schemaStep {
	if len(t.indexes) == 0 {
		return nil
	}
	name := t.indexes[rng.IntN(len(t.indexes))].name
	return t.step("DROP INDEX "+name, func(t *tableModel) {
		m.dropped(name)
		t.indexes = slices.DeleteFunc(slices.Clone(t.indexes), func(x indexModel) bool { return x.name == name })
	}, nil)
}

// alterIndex returns a step that adds a stored column to an index, or drops the stored column that the index has.
func (m *schemaModel) alterIndex(rng *rand.Rand, t *tableModel) *schemaStep {
	if len(t.indexes) == 0 {
		return nil
	}
	at := rng.IntN(len(t.indexes))
	x := t.indexes[at]
	sql := ""
	if len(x.storing) > 0 {
		sql = fmt.Sprintf("ALTER INDEX %s DROP STORED COLUMN %s", x.name, x.storing[0])
		x.storing = x.storing[1:]
	} else {
		free := slices.DeleteFunc(t.columnNames(), func(c string) bool { return slices.Contains(x.key, c) })
		c := free[rng.IntN(len(free))]
		sql = fmt.Sprintf("ALTER INDEX %s ADD STORED COLUMN %s", x.name, c)
		x.storing = []string{c}
	}
	return t.step(sql, func(t *tableModel) {
		t.indexes = slices.Clone(t.indexes)
		t.indexes[at] = x
	}, nil)
}

func (m *schemaModel) addColumn(rng *rand.Rand, t *tableModel) *schemaStep {
	if len(t.columns) == 3 {
		return nil
	}
	kinds := []string{"plain", "default", "stored", "virtual", "stamp", "identity", "sequence"}
	c := columnModel{name: m.newName(rng, "Column"), kind: kinds[rng.IntN(len(kinds))]}
	words := map[string]string{
		"plain": "INT64", "default": "INT64 NOT NULL DEFAULT (4)", "stored": "INT64 AS (X + Y) STORED", "virtual": "INT64 AS (X + Y)",
		"stamp":    "TIMESTAMP NOT NULL DEFAULT (TIMESTAMP '" + modelStamp + "')",
		"identity": "INT64 GENERATED BY DEFAULT AS IDENTITY (BIT_REVERSED_POSITIVE)",
		"sequence": "INT64 DEFAULT (GET_NEXT_SEQUENCE_VALUE(SEQUENCE Numbers))",
	}[c.kind]
	return t.step(fmt.Sprintf("ALTER TABLE %s ADD COLUMN %s %s", t.name, c.name, words), func(t *tableModel) {
		t.columns = append(slices.Clone(t.columns), c)
		rows := t.rows
		t.rows = map[rowKey]map[string]cell{}
		for k, row := range rows {
			wider := map[string]cell{}
			for name, v := range row {
				wider[name] = v
			}
			t.rows[k] = t.filled(wider)
		}
	}, nil)
}

func (m *schemaModel) dropColumn(rng *rand.Rand, t *tableModel) *schemaStep {
	if len(t.columns) == 0 {
		return nil
	}
	name := t.columns[rng.IntN(len(t.columns))].name
	for _, x := range t.indexes {
		if slices.Contains(x.key, name) || slices.Contains(x.storing, name) {
			return nil
		}
	}
	if t.policy == name || t.viewed(name) {
		return nil
	}
	return t.step(fmt.Sprintf("ALTER TABLE %s DROP COLUMN %s", t.name, name), func(t *tableModel) {
		m.dropped(name)
		rows := t.rows
		t.rows = map[rowKey]map[string]cell{}
		for k, row := range rows {
			t.rows[k] = maps.Clone(row)
			delete(t.rows[k], name)
		}
		t.columns = slices.DeleteFunc(slices.Clone(t.columns), func(c columnModel) bool { return c.name == name })
	}, nil)
}

// depends reports whether the definition of a column cannot be changed, because an index, a generated column or a
// constraint uses the column.
func (t *tableModel) depends(column string) bool {
	for _, x := range t.indexes {
		if slices.Contains(x.key, column) || slices.Contains(x.storing, column) {
			return true
		}
	}
	generated := slices.ContainsFunc(t.columns, func(c columnModel) bool { return c.kind == "stored" || c.kind == "virtual" })
	return generated && column != "S" || column == "X" && len(t.foreign) > 0 || column == "Y" && len(t.checks) > 0
}

func (m *schemaModel) notNull(rng *rand.Rand, t *tableModel) *schemaStep {
	c := []string{"X", "Y"}[rng.IntN(2)]
	if t.notNull[c] || t.depends(c) {
		return nil
	}
	return t.step(fmt.Sprintf("ALTER TABLE %s ALTER COLUMN %s INT64 NOT NULL", t.name, c), func(t *tableModel) { t.notNull[c] = true },
		func(_ *schemaModel, t *tableModel) bool { return t.hasNull(c) })
}

func (m *schemaModel) nullable(rng *rand.Rand, t *tableModel) *schemaStep {
	c := []string{"X", "Y"}[rng.IntN(2)]
	if !t.notNull[c] || t.depends(c) {
		return nil
	}
	return t.step(fmt.Sprintf("ALTER TABLE %s ALTER COLUMN %s INT64", t.name, c), func(t *tableModel) { delete(t.notNull, c) }, nil)
}

func (m *schemaModel) length(rng *rand.Rand, t *tableModel) *schemaStep {
	if t.depends("S") {
		return nil
	}
	n := []int{0, 2, 3, 4}[rng.IntN(4)]
	if n == 0 {
		return t.step(fmt.Sprintf("ALTER TABLE %s ALTER COLUMN S %s(MAX)", t.name, t.kindOfS()), func(t *tableModel) { t.longest = 0 }, nil)
	}
	return t.step(fmt.Sprintf("ALTER TABLE %s ALTER COLUMN S %s(%d)", t.name, t.kindOfS(), n), func(t *tableModel) { t.longest = n },
		func(_ *schemaModel, t *tableModel) bool { return t.longer(n) })
}

func (m *schemaModel) addCheck(rng *rand.Rand, t *tableModel) *schemaStep {
	if len(t.checks) == 2 {
		return nil
	}
	name, limit := m.newName(rng, "Check"), 13+rng.Int64N(6)
	return t.step(fmt.Sprintf("ALTER TABLE %s ADD CONSTRAINT %s CHECK (Y < %d)", t.name, name, limit), func(t *tableModel) { t.checks[name] = limit },
		func(_ *schemaModel, t *tableModel) bool { return t.above(limit) })
}

func (m *schemaModel) dropCheck(_ *rand.Rand, t *tableModel) *schemaStep {
	for name := range sortedKeys(t.checks) {
		return t.step(fmt.Sprintf("ALTER TABLE %s DROP CONSTRAINT %s", t.name, name), func(t *tableModel) {
			m.dropped(name)
			delete(t.checks, name)
		}, nil)
	}
	return nil
}

func (m *schemaModel) addForeignKey(rng *rand.Rand, t *tableModel) *schemaStep {
	to := m.tables[rng.IntN(len(m.tables))]
	if len(t.foreign) > 0 || to.parent != "" || to.policy != "" {
		return nil
	}
	name, target, cascades := m.newName(rng, "Foreign"), to.name, rng.IntN(2) == 0
	words := map[bool]string{true: " ON DELETE CASCADE"}[cascades]
	s := t.step(fmt.Sprintf("ALTER TABLE %s ADD CONSTRAINT %s FOREIGN KEY (X) REFERENCES %s (K)%s", t.name, name, target, words), func(t *tableModel) {
		t.foreign[name], t.cascades[name] = target, cascades
	}, func(m *schemaModel, t *tableModel) bool { return m.dangles(t, target) })
	s.cascades = cascades
	return s
}

func (m *schemaModel) dropForeignKey(_ *rand.Rand, t *tableModel) *schemaStep {
	for name := range sortedKeys(t.foreign) {
		return t.step(fmt.Sprintf("ALTER TABLE %s DROP CONSTRAINT %s", t.name, name), func(t *tableModel) {
			m.dropped(name)
			delete(t.foreign, name)
		}, nil)
	}
	return nil
}

func (m *schemaModel) onDelete(_ *rand.Rand, t *tableModel) *schemaStep {
	if t.parent == "" || m.table(t.parent).policy != "" {
		return nil
	}
	words := map[bool]string{true: "NO ACTION", false: "CASCADE"}[t.cascade]
	return t.step(fmt.Sprintf("ALTER TABLE %s SET ON DELETE %s", t.name, words), func(t *tableModel) { t.cascade = !t.cascade }, nil)
}

// rename returns a step that renames a table. In the model, the foreign keys and children of the table then refer to
// the new name.
func (m *schemaModel) rename(rng *rand.Rand, t *tableModel) *schemaStep {
	if len(t.views) > 0 {
		return nil
	}
	old, name := t.name, m.newName(rng, strings.TrimRight(t.name, "0123456789"))
	synonym := t.synonym == "" && rng.IntN(2) == 0
	words := map[bool]string{true: ", ADD SYNONYM " + old}[synonym]
	return &schemaStep{sql: fmt.Sprintf("ALTER TABLE %s RENAME TO %s%s", old, name, words), violated: never, apply: func(m *schemaModel) {
		if synonym {
			m.table(old).synonym = old
		} else {
			m.dropped(old)
		}
		for _, o := range m.tables {
			if o.name == old {
				o.name = name
			}
			if o.parent == old {
				o.parent = name
			}
			for fk, to := range o.foreign {
				if to == old {
					o.foreign[fk] = name
				}
			}
		}
	}}
}

// dropTable returns a step that drops a table. It returns nil if other objects refer to the table, and also for the
// first table, which has the most rows.
func (m *schemaModel) dropTable(_ *rand.Rand, t *tableModel) *schemaStep {
	if t == m.tables[0] || len(t.indexes) > 0 || len(t.views) > 0 || m.referred(t) {
		return nil
	}
	name, synonym := t.name, t.synonym
	return &schemaStep{sql: "DROP TABLE " + name, violated: never, apply: func(m *schemaModel) {
		m.dropped(name)
		if synonym != "" {
			m.dropped(synonym)
		}
		m.tables = slices.DeleteFunc(slices.Clone(m.tables), func(t *tableModel) bool { return t.name == name })
	}}
}

func (m *schemaModel) createTable(rng *rand.Rand, t *tableModel) *schemaStep {
	if len(m.tables) == 4 {
		return nil
	}
	created := newTableModel(m.newName(rng, []string{"D", "Named.D"}[rng.IntN(2)]), "")
	if m.tables[0].policy == "" && rng.IntN(2) == 0 {
		created.parent = m.tables[0].name
	}
	return &schemaStep{sql: created.ddl(), violated: never, apply: func(m *schemaModel) { m.tables = append(slices.Clone(m.tables), created) }}
}

func sortedKeys[V any](of map[string]V) func(yield func(string) bool) {
	var keys []string
	for k := range of {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return slices.Values(keys)
}
