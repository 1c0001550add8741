package database

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// schemaStep is a schema change of TestSchemaModel that the schema allows.
type schemaStep struct {
	sql   string
	apply func(m *schemaModel)
	// violated says that the rows do not meet what the change demands of them: it may succeed only if they do in the end, and fail only if they did not
	// at some time.
	violated func(m *schemaModel) bool
}

// never is the violated of changes that demand nothing of rows.
func never(*schemaModel) bool { return false }

// step makes a step of one table, whose name stays the same while it runs.
func (t *tableModel) step(sql string, apply func(t *tableModel), violated func(m *schemaModel, t *tableModel) bool) *schemaStep {
	name := t.name
	s := &schemaStep{sql: sql, violated: never, apply: func(m *schemaModel) { apply(m.table(name)) }}
	if violated != nil {
		s.violated = func(m *schemaModel) bool { return violated(m, m.table(name)) }
	}
	return s
}

// randomStep draws a change that is possible.
func (m *schemaModel) randomStep(rng *rand.Rand) *schemaStep {
	kinds := []func(*rand.Rand, *tableModel) *schemaStep{
		m.createIndex, m.createIndex, m.createIndex, m.dropIndex, m.alterIndex, m.addColumn, m.addColumn, m.dropColumn, m.notNull, m.nullable, m.length,
		m.addCheck, m.dropCheck, m.addForeignKey, m.dropForeignKey, m.onDelete, m.rename, m.dropTable, m.createTable,
	}
	for {
		if s := kinds[rng.IntN(len(kinds))](rng, m.tables[rng.IntN(len(m.tables))]); s != nil {
			return s
		}
	}
}

// newName gives out a name that no object has had.
func (m *schemaModel) newName(kind string) string {
	m.number++
	return fmt.Sprint(kind, m.number)
}

func (m *schemaModel) createIndex(rng *rand.Rand, t *tableModel) *schemaStep {
	if len(t.indexes) == 4 {
		return nil
	}
	x := indexModel{name: m.newName("Index"), unique: rng.IntN(2) == 0, nullFiltered: rng.IntN(3) == 0}
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
	if t.parent != "" && rng.IntN(3) == 0 { // it lies among the rows of the parent
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
		t.indexes = slices.DeleteFunc(slices.Clone(t.indexes), func(x indexModel) bool { return x.name == name })
	}, nil)
}

// alterIndex adds a column to an index, or drops it again.
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
	c := columnModel{name: m.newName("Column"), kind: []string{"plain", "default", "stored", "virtual"}[rng.IntN(4)]}
	words := map[string]string{"plain": "", "default": " NOT NULL DEFAULT (4)", "stored": " AS (X + Y) STORED", "virtual": " AS (X + Y)"}[c.kind]
	return t.step(fmt.Sprintf("ALTER TABLE %s ADD COLUMN %s INT64%s", t.name, c.name, words), func(t *tableModel) {
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
	return t.step(fmt.Sprintf("ALTER TABLE %s DROP COLUMN %s", t.name, name), func(t *tableModel) {
		t.columns = slices.DeleteFunc(slices.Clone(t.columns), func(c columnModel) bool { return c.name == name })
	}, nil)
}

// depends says that an index or a generated column, which would have to be of another definition, keeps a column as it is.
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
		return t.step(fmt.Sprintf("ALTER TABLE %s ALTER COLUMN S STRING(MAX)", t.name), func(t *tableModel) { t.longest = 0 }, nil)
	}
	return t.step(fmt.Sprintf("ALTER TABLE %s ALTER COLUMN S STRING(%d)", t.name, n), func(t *tableModel) { t.longest = n },
		func(_ *schemaModel, t *tableModel) bool { return t.longer(n) })
}

func (m *schemaModel) addCheck(rng *rand.Rand, t *tableModel) *schemaStep {
	if len(t.checks) == 2 {
		return nil
	}
	name, limit := m.newName("Check"), 13+rng.Int64N(6)
	return t.step(fmt.Sprintf("ALTER TABLE %s ADD CONSTRAINT %s CHECK (Y < %d)", t.name, name, limit), func(t *tableModel) { t.checks[name] = limit },
		func(_ *schemaModel, t *tableModel) bool { return t.above(limit) })
}

func (m *schemaModel) dropCheck(_ *rand.Rand, t *tableModel) *schemaStep {
	for name := range sortedKeys(t.checks) {
		return t.step(fmt.Sprintf("ALTER TABLE %s DROP CONSTRAINT %s", t.name, name), func(t *tableModel) { delete(t.checks, name) }, nil)
	}
	return nil
}

func (m *schemaModel) addForeignKey(rng *rand.Rand, t *tableModel) *schemaStep {
	to := m.tables[rng.IntN(len(m.tables))]
	if len(t.foreign) > 0 || to.parent != "" {
		return nil
	}
	name, target := m.newName("Foreign"), to.name
	return t.step(fmt.Sprintf("ALTER TABLE %s ADD CONSTRAINT %s FOREIGN KEY (X) REFERENCES %s (K)", t.name, name, target), func(t *tableModel) { t.foreign[name] = target },
		func(m *schemaModel, t *tableModel) bool { return m.dangles(t, target) })
}

func (m *schemaModel) dropForeignKey(_ *rand.Rand, t *tableModel) *schemaStep {
	for name := range sortedKeys(t.foreign) {
		return t.step(fmt.Sprintf("ALTER TABLE %s DROP CONSTRAINT %s", t.name, name), func(t *tableModel) { delete(t.foreign, name) }, nil)
	}
	return nil
}

func (m *schemaModel) onDelete(_ *rand.Rand, t *tableModel) *schemaStep {
	if t.parent == "" {
		return nil
	}
	words := map[bool]string{true: "NO ACTION", false: "CASCADE"}[t.cascade]
	return t.step(fmt.Sprintf("ALTER TABLE %s SET ON DELETE %s", t.name, words), func(t *tableModel) { t.cascade = !t.cascade }, nil)
}

// rename gives a table another name. Those that name it follow.
func (m *schemaModel) rename(_ *rand.Rand, t *tableModel) *schemaStep {
	old, name := t.name, m.newName(t.name[:1])
	return &schemaStep{sql: fmt.Sprintf("ALTER TABLE %s RENAME TO %s", old, name), violated: never, apply: func(m *schemaModel) {
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

// dropTable drops the child: it is the one that nothing refers to.
func (m *schemaModel) dropTable(_ *rand.Rand, t *tableModel) *schemaStep {
	if t.parent == "" || len(t.indexes) > 0 {
		return nil
	}
	name := t.name
	return &schemaStep{sql: "DROP TABLE " + name, violated: never, apply: func(m *schemaModel) {
		m.tables = slices.DeleteFunc(slices.Clone(m.tables), func(t *tableModel) bool { return t.name == name })
	}}
}

func (m *schemaModel) createTable(_ *rand.Rand, t *tableModel) *schemaStep {
	if len(m.tables) == 3 {
		return nil
	}
	created := newTableModel(m.newName("C"), m.tables[0].name)
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
