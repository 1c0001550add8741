package database

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"unicode/utf8"
)

// modelStamp is the value of all TIMESTAMP columns. It is so late that no row expires.
const modelStamp = "2999-01-01T00:00:00Z"

// synonym returns a step that gives a table a synonym, or removes the synonym that the table has.
func (m *schemaModel) synonym(rng *rand.Rand, t *tableModel) *schemaStep {
	if t.synonym != "" {
		old := t.synonym
		return t.step(fmt.Sprintf("ALTER TABLE %s DROP SYNONYM %s", t.name, old), func(t *tableModel) {
			m.dropped(old)
			t.synonym = ""
		}, nil)
	}
	name := m.newName(rng, schemaOf(t.name)+"Synonym")
	return t.step(fmt.Sprintf("ALTER TABLE %s ADD SYNONYM %s", t.name, name), func(t *tableModel) { t.synonym = name }, nil)
}

// createView returns a step that creates a view of some columns of a table, or replaces an existing view by a view of
// other columns.
func (m *schemaModel) createView(rng *rand.Rand, t *tableModel) *schemaStep {
	columns := slices.DeleteFunc(t.columnNames(), func(c string) bool { return c == "S" })
	rng.Shuffle(len(columns), func(i, k int) { columns[i], columns[k] = columns[k], columns[i] })
	columns = append([]string{"K"}, columns[:2]...)
	create, name := "CREATE OR REPLACE VIEW", ""
	for old := range sortedKeys(t.views) {
		name = old
	}
	if name == "" {
		create, name = "CREATE VIEW", m.newName(rng, "View")
	}
	sql := fmt.Sprintf("%s %s SQL SECURITY INVOKER AS SELECT t.%s FROM %s AS t", create, name, strings.Join(columns, ", t."), t.name)
	return t.step(sql, func(t *tableModel) { t.views[name] = columns }, nil)
}

func (m *schemaModel) dropView(_ *rand.Rand, t *tableModel) *schemaStep {
	for name := range sortedKeys(t.views) {
		return t.step("DROP VIEW "+name, func(t *tableModel) {
			m.dropped(name)
			delete(t.views, name)
		}, nil)
	}
	return nil
}

// viewed reports whether a view uses a column.
func (t *tableModel) viewed(column string) bool {
	for _, columns := range t.views {
		if slices.Contains(columns, column) {
			return true
		}
	}
	return false
}

func (t *tableModel) kindOfS() string {
	return map[bool]string{true: "BYTES", false: "STRING"}[t.bytes]
}

// otherKind returns a step that changes column S from STRING to BYTES or back. The change from BYTES to STRING must
// fail if a value is not valid UTF-8.
func (m *schemaModel) otherKind(_ *rand.Rand, t *tableModel) *schemaStep {
	if t.depends("S") {
		return nil
	}
	length := "MAX"
	if t.longest > 0 {
		length = fmt.Sprint(t.longest)
	}
	to := *t
	to.bytes = !t.bytes
	var violated func(*schemaModel, *tableModel) bool
	if t.bytes {
		violated = func(_ *schemaModel, t *tableModel) bool {
			return t.any(func(_ rowKey, row map[string]cell) bool { return !utf8.ValidString(row["S"].text) })
		}
	}
	return t.step(fmt.Sprintf("ALTER TABLE %s ALTER COLUMN S %s(%s)", t.name, to.kindOfS(), length), func(t *tableModel) { t.bytes = to.bytes }, violated)
}

// referred reports whether another table has a foreign key to the table t, or is interleaved in it.
func (m *schemaModel) referred(t *tableModel) bool {
	return slices.ContainsFunc(m.tables, func(o *tableModel) bool {
		return o.parent == t.name || slices.Contains(slices.Collect(maps.Values(o.foreign)), t.name)
	})
}

// addPolicy returns a step that adds or replaces the ROW DELETION POLICY of a table. It returns nil if the table has no
// column for a policy, or if another table refers to it or is interleaved in it.
func (m *schemaModel) addPolicy(rng *rand.Rand, t *tableModel) *schemaStep {
	if m.referred(t) {
		return nil
	}
	for _, c := range t.columns {
		if c.kind == "stamp" {
			word := map[bool]string{true: "ADD", false: "REPLACE"}[t.policy == ""]
			return t.step(fmt.Sprintf("ALTER TABLE %s %s ROW DELETION POLICY (OLDER_THAN(%s, INTERVAL %d DAY))", t.name, word, c.name, rng.IntN(100)),
				func(t *tableModel) { t.policy = c.name }, nil)
		}
	}
	return nil
}

func (m *schemaModel) dropPolicy(_ *rand.Rand, t *tableModel) *schemaStep {
	if t.policy == "" {
		return nil
	}
	return t.step(fmt.Sprintf("ALTER TABLE %s DROP ROW DELETION POLICY", t.name), func(t *tableModel) { t.policy = "" }, nil)
}

// objectQueries returns queries that read a table by its synonym and its views, and that count the values which a
// sequence has given out twice.
func (t *tableModel) objectQueries() (list []modelQuery) {
	if t.synonym != "" {
		list = append(list, modelQuery{"SELECT COUNT(*) FROM " + t.synonym, []string{fmt.Sprint(len(t.rows))}})
	}
	for name := range sortedKeys(t.views) {
		q := modelQuery{sql: fmt.Sprintf("SELECT %s FROM %s", strings.Join(t.views[name], ", "), name)}
		for k, row := range t.rows {
			line := []string{fmt.Sprint(k[0])}
			for _, c := range t.views[name][1:] {
				line = append(line, row[c].String())
			}
			q.want = append(q.want, strings.Join(line, " "))
		}
		list = append(list, q)
	}
	for _, c := range t.columns {
		if c.generates() {
			list = append(list, modelQuery{fmt.Sprintf("SELECT COUNT(%s) - COUNT(DISTINCT %s) FROM %s", c.name, c.name, t.name), []string{"0"}})
		}
	}
	return list
}
