package crossings

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"unicode/utf8"
)

// A change is a schema change that is valid for the present schema.
type change struct {
	statements []string
	features   set
	apply      func(m *model)
	// violated reports whether the change must fail because of existing rows or stored values. It is nil if the change
	// never fails because of them.
	violated func(m *model) bool
}

// alter returns a schema change by an ALTER TABLE statement that does not rename the table.
func (t *table) alter(sql string, features set, apply func(t *table)) *change {
	name := t.name
	return &change{statements: []string{"ALTER TABLE " + name + " " + sql}, features: features, apply: func(m *model) { apply(m.table(name)) }}
}

// ddl returns the definition of the column.
func (c *column) ddl() string {
	text := c.name + " " + c.kind.name
	if c.notNull {
		text += " NOT NULL"
	}
	switch {
	case c.standard != nil:
		text += " DEFAULT (" + c.kind.sql(*c.standard) + ")"
	case c.sequence:
		text += " DEFAULT (GET_NEXT_SEQUENCE_VALUE(SEQUENCE Numbers))"
	case c.computed != nil:
		text += " AS (" + c.computed.sql + ")"
		if c.stored {
			text += " STORED"
		}
	case c.commit:
		text += " OPTIONS (allow_commit_timestamp = true)"
	}
	return text
}

func keyDDL(key []keyPart) string {
	var parts []string
	for _, p := range key {
		if p.desc {
			p.column += " DESC"
		}
		parts = append(parts, p.column)
	}
	return "(" + strings.Join(parts, ", ") + ")"
}

func (t *table) ddl() string {
	var columns []string
	for _, c := range t.columns {
		columns = append(columns, c.ddl())
	}
	text := fmt.Sprintf("CREATE TABLE %s (%s) PRIMARY KEY %s", t.name, strings.Join(columns, ", "), keyDDL(t.key))
	if t.parent != "" {
		text += ",\n  INTERLEAVE IN PARENT " + t.parent + map[bool]string{true: " ON DELETE CASCADE"}[t.cascade]
	}
	return text
}

// newName returns a name that no object has, or has had before.
func (w *world) newName(kind string) string {
	w.number++
	return fmt.Sprint(kind, w.number)
}

// schemaOf returns the named schema in a table's name, followed by a dot; "" if there is none.
func schemaOf(name string) string { return name[:strings.IndexByte(name, '.')+1] }

// newTable returns a random table. If parent is nil, it is a root table.
func (w *world) newTable(name string, parent *table) *table {
	t := &table{id: w.number, name: name, rows: map[string]*row{}, features: schemaFeatures(name)}
	w.number++
	if parent == nil {
		t.key = []keyPart{{"K", w.rng.IntN(4) == 0}}
		t.columns = []*column{{name: "K", kind: intKind, notNull: true}}
		t.features = t.features.with(keyFeatures(intKind, t.key[0].desc))
	} else {
		t.parent, t.cascade = parent.name, w.rng.IntN(3) > 0
		t.key = slices.Clone(parent.key)
		for _, p := range parent.key {
			c := *parent.column(p.column)
			t.columns = append(t.columns, &c)
		}
		t.features = t.features.with(parent.features).and(interleaved)
	}
	if parent != nil || w.rng.IntN(3) == 0 {
		k := pick(w.rng, []*kind{intKind, floatKind, numericKind, stringKind, bytesKind, timeKind})
		c := &column{name: w.newName("K"), kind: k}
		t.columns, t.key = append(t.columns, c), append(t.key, keyPart{c.name, w.rng.IntN(3) == 0})
		t.features = t.features.with(keyFeatures(k, t.key[len(t.key)-1].desc))
	}
	for _, k := range []*kind{intKind, floatKind, stringKind} {
		t.columns = append(t.columns, &column{name: w.newName("C"), kind: k})
	}
	for range w.rng.IntN(4) {
		t.columns = append(t.columns, w.newColumn(t))
	}
	return t
}

func schemaFeatures(name string) (s set) {
	if schemaOf(name) != "" {
		s = of(namedSchema)
	}
	return s
}

func keyFeatures(k *kind, desc bool) (s set) {
	switch k {
	case floatKind:
		s = of(floatKey)
	case numericKind:
		s = of(numericKey)
	}
	if desc {
		s = s.and(descending)
	}
	return s
}

// columnsOf returns the names of the columns of a kind, except key columns.
func (t *table) columnsOf(k *kind) (names []string) {
	for _, c := range t.columns {
		if c.kind == k && !t.inKey(c.name) {
			names = append(names, c.name)
		}
	}
	return names
}

// newColumn returns a random column that can be added to a table with rows.
func (w *world) newColumn(t *table) *column {
	c := &column{name: w.newName("C"), kind: pick(w.rng, plainKinds)}
	switch w.rng.IntN(10) {
	case 0, 1:
		for !c.notNull || !c.standard.set {
			v := c.kind.random(w.rng)
			c.standard, c.notNull = &v, v.set
		}
		c.features = of(defaulted)
	case 2:
		c.kind, c.sequence, c.features = intKind, true, of(sequence)
	case 3:
		c.kind, c.commit, c.features = timeKind, true, of(commitTimestamp)
	case 4:
		c.kind, c.features = protoKind, of(protos)
	case 5, 6, 7:
		if e, k, features := w.newExpression(t); e != nil {
			c.kind, c.computed, c.stored = k, e, w.rng.IntN(2) == 0
			c.features = features.and(map[bool]string{true: storedColumn, false: virtualColumn}[c.stored])
		}
	}
	return c
}

// newExpression returns a random expression for a generated column, computed from other columns.
func (w *world) newExpression(t *table) (e *expression, k *kind, features set) {
	one := func(k *kind) string {
		names := t.columnsOf(k)
		if len(names) == 0 {
			return ""
		}
		return pick(w.rng, names)
	}
	for _, name := range []string{one(intKind), one(floatKind), one(stringKind)} {
		if c := t.column(name); c != nil && c.computed != nil {
			features = features.with(c.features)
		}
	}
	ints, floats, strs := one(intKind), one(floatKind), one(stringKind)
	switch n := w.rng.IntN(5); {
	case n <= 1 && ints != "":
		name := pick(w.rng, sortedKeys(w.now().m.functions))
		return &expression{sql: name + "(" + ints + ")", uses: []string{ints}, function: name, eval: func(m *model, get func(string) cell) cell { return m.functions[name].of(get(ints)) }},
			intKind, features.and(functions)
	case n == 2 && ints != "":
		return &expression{sql: "COALESCE(" + ints + ", 12)", uses: []string{ints}, eval: func(_ *model, get func(string) cell) cell {
			if v := get(ints); v.set {
				return v
			}
			return intCell(12)
		}}, intKind, features
	case n == 3 && floats != "":
		return &expression{sql: "-" + floats, uses: []string{floats}, eval: func(_ *model, get func(string) cell) cell {
			if v := get(floats); v.set {
				return floatCell(-v.float())
			}
			return cell{}
		}}, floatKind, features
	case strs != "":
		return &expression{sql: "CONCAT(" + strs + ", '!')", uses: []string{strs}, eval: func(_ *model, get func(string) cell) cell {
			if v := get(strs); v.set {
				return textCell(v.text + "!")
			}
			return cell{}
		}}, stringKind, features
	}
	return nil, nil, set{}
}

// of returns the result of the function for the argument v.
func (f function) of(v cell) cell {
	if !v.set {
		return v
	}
	return intCell(v.int()%1000*f.times + f.plus)
}

func (f function) ddl(create, name string) string {
	return fmt.Sprintf("%s FUNCTION %s(x INT64) RETURNS INT64 AS (MOD(x, 1000) * %d + %d)", create, name, f.times, f.plus)
}

// dependsOn reports whether a column is computed with a function, directly or through other columns.
func (t *table) dependsOn(c *column, function string) bool {
	if c.computed == nil {
		return false
	}
	return c.computed.function == function || slices.ContainsFunc(c.computed.uses, func(name string) bool { return t.dependsOn(t.column(name), function) })
}

// kept reports whether the values of column c are stored in an index, or c is a generated column whose values are
// stored.
func (t *table) kept(c *column) bool {
	return c.stored || slices.ContainsFunc(t.indexes, func(x *index) bool { return x.has(c.name) })
}

func (x *index) has(column string) bool {
	return slices.Contains(x.storing, column) || slices.ContainsFunc(x.key, func(p keyPart) bool { return p.column == column })
}

// needed reports whether a column cannot be dropped, because another object uses it.
func (m *model) needed(t *table, name string) bool {
	return t.inKey(name) || t.ttl == name || slices.ContainsFunc(t.indexes, func(x *index) bool { return x.has(name) }) ||
		slices.ContainsFunc(t.columns, func(c *column) bool { return c.computed != nil && slices.Contains(c.computed.uses, name) }) ||
		slices.ContainsFunc(t.checks, func(c check) bool { return c.column == name }) ||
		slices.ContainsFunc(t.foreign, func(f foreign) bool { return f.column == name }) ||
		slices.ContainsFunc(m.views, func(v view) bool {
			return v.table == t.name && (slices.Contains(v.columns, name) || v.except != nil && v.except.column == name)
		})
}

// referred reports whether a table cannot be dropped, because children, views or foreign keys refer to it.
func (m *model) referred(t *table) bool {
	return len(m.children(t)) > 0 || m.viewed(t) || slices.ContainsFunc(m.tables, func(o *table) bool {
		return slices.ContainsFunc(o.foreign, func(f foreign) bool { return f.to == t.name })
	})
}

func (m *model) viewed(t *table) bool {
	return slices.ContainsFunc(m.views, func(v view) bool { return v.table == t.name })
}

// granted reports whether any role may read a table or a view.
func (m *model) granted(name string) bool {
	for _, may := range m.roles {
		if may[name] {
			return true
		}
	}
	return false
}

func (w *world) addColumn(m *model) *change {
	t := pick(w.rng, m.tables)
	if len(t.columns) > 9 {
		return nil
	}
	c := w.newColumn(t)
	return t.alter("ADD COLUMN "+c.ddl(), c.features.and(addedColumn), func(t *table) {
		t.columns = append(t.columns, c)
		t.fill(c)
	})
}

// fill sets the value of a new column in all rows of the model.
func (t *table) fill(c *column) {
	for key, r := range t.rows {
		n := &row{cells: map[string]cell{}, features: r.features, written: r.written}
		for name, v := range r.cells {
			n.cells[name] = v
		}
		switch {
		case c.standard != nil:
			n.cells[c.name] = *c.standard
			n.features = n.features.with(valueFeatures(c, *c.standard))
		case c.sequence:
			n.cells[c.name] = unknown
		case c.computed == nil:
			n.cells[c.name] = cell{}
		}
		t.rows[key] = n
	}
}

func (w *world) dropColumn(m *model) *change {
	t := pick(w.rng, m.tables)
	c := pick(w.rng, t.columns)
	if m.needed(t, c.name) || len(t.columns) < len(t.key)+3 {
		return nil
	}
	return t.alter("DROP COLUMN "+c.name, c.features.and(droppedColumn), func(t *table) {
		t.columns = slices.DeleteFunc(t.columns, func(o *column) bool { return o.name == c.name })
		for key, r := range t.rows {
			n := &row{cells: map[string]cell{}, features: r.features, written: r.written}
			for name, v := range r.cells {
				if name != c.name {
					n.cells[name] = v
				}
			}
			t.rows[key] = n
		}
	})
}

// alterColumn returns a change that converts a column from STRING to BYTES or back, or that adds or removes NOT NULL.
// It returns nil if the column that it has chosen cannot be changed.
func (w *world) alterColumn(m *model) *change {
	t := pick(w.rng, m.tables)
	c := *pick(w.rng, t.columns)
	if m.needed(t, c.name) || c.standard != nil || c.computed != nil || c.sequence || c.commit || c.kind == protoKind {
		return nil
	}
	from := c.kind
	if to := map[*kind]*kind{stringKind: bytesKind, bytesKind: stringKind}[from]; to != nil && w.rng.IntN(2) == 0 {
		c.kind = to
	} else {
		c.notNull = !c.notNull
	}
	name := t.name
	s := t.alter("ALTER COLUMN "+c.ddl(), c.features.and(alteredColumn), func(t *table) {
		t.columns[slices.IndexFunc(t.columns, func(o *column) bool { return o.name == c.name })] = &c
		for key, r := range t.rows {
			n := *r
			n.cells = map[string]cell{}
			for name, v := range r.cells {
				n.cells[name] = v
			}
			if v := r.cells[c.name]; v.set && from != c.kind {
				n.cells[c.name] = map[*kind]func(cell) cell{bytesKind: toBytes, stringKind: toText}[c.kind](v)
			}
			t.rows[key] = &n
		}
	})
	s.violated = func(m *model) bool {
		for _, r := range m.table(name).rows {
			v := r.cells[c.name]
			if c.notNull && !v.set || from == bytesKind && c.kind == stringKind && !utf8.Valid(decoded(v)) {
				return true
			}
		}
		return false
	}
	return s
}

func (w *world) createIndex(m *model) *change {
	t := pick(w.rng, m.tables)
	if len(t.indexes) == 4 {
		return nil
	}
	x := &index{name: schemaOf(t.name) + w.newName("Index"), unique: w.rng.IntN(4) == 0, nullFiltered: w.rng.IntN(4) == 0, features: of(indexed)}
	var names []string
	for _, c := range t.columns {
		if c.kind != protoKind && !t.inKey(c.name) {
			names = append(names, c.name)
		}
	}
	w.rng.Shuffle(len(names), func(i, k int) { names[i], names[k] = names[k], names[i] })
	n := 1 + w.rng.IntN(2)
	for _, name := range names[:n] {
		p := keyPart{name, w.rng.IntN(3) == 0}
		x.key = append(x.key, p)
		x.features = x.features.with(keyFeatures(t.column(name).kind, p.desc)).with(t.column(name).features)
	}
	if w.rng.IntN(3) > 0 {
		for _, name := range names[n:min(len(names), n+2)] {
			x.storing = append(x.storing, name)
			x.features = x.features.with(t.column(name).features).and(storing)
		}
	}
	words, tail := "", ""
	if x.unique {
		words, x.features = "UNIQUE ", x.features.and(unique)
	}
	if x.nullFiltered {
		words, x.features = words+"NULL_FILTERED ", x.features.and(nullFiltered)
	}
	if len(x.storing) > 0 {
		tail = " STORING (" + strings.Join(x.storing, ", ") + ")"
	}
	if t.parent != "" && w.rng.IntN(3) == 0 {
		x.key = append(slices.Clone(t.key[:len(t.key)-1]), x.key...)
		tail += ", INTERLEAVE IN " + t.parent
		x.features = x.features.and(interleavedIndex)
	}
	name := t.name
	s := &change{
		statements: []string{fmt.Sprintf("CREATE %sINDEX %s ON %s %s%s", words, x.name, t.name, keyDDL(x.key), tail)},
		features:   of(createdIndex), apply: func(m *model) { t := m.table(name); t.indexes = append(t.indexes, x) },
	}
	if x.unique {
		s.violated = func(m *model) bool { return m.repeats(m.table(name), x) }
	}
	return s
}

func (w *world) dropIndex(m *model) *change {
	t := pick(w.rng, m.tables)
	if len(t.indexes) == 0 {
		return nil
	}
	x, name := pick(w.rng, t.indexes), t.name
	return &change{statements: []string{"DROP INDEX " + x.name}, features: of(droppedIndex), apply: func(m *model) {
		t := m.table(name)
		t.indexes = slices.DeleteFunc(t.indexes, func(o *index) bool { return o.name == x.name })
	}}
}

// alterIndex returns a change that adds a stored column to an index, or removes one.
func (w *world) alterIndex(m *model) *change {
	t := pick(w.rng, m.tables)
	if len(t.indexes) == 0 {
		return nil
	}
	at, name := w.rng.IntN(len(t.indexes)), t.name
	x := *t.indexes[at]
	sql := ""
	if len(x.storing) > 0 && w.rng.IntN(2) == 0 {
		sql, x.storing = "DROP STORED COLUMN "+x.storing[0], x.storing[1:]
	} else {
		c := pick(w.rng, t.columns)
		if x.has(c.name) || t.inKey(c.name) {
			return nil
		}
		sql, x.storing = "ADD STORED COLUMN "+c.name, append(slices.Clone(x.storing), c.name)
		x.features = x.features.with(c.features).and(storing)
	}
	return &change{statements: []string{"ALTER INDEX " + x.name + " " + sql}, features: of(alteredIndex), apply: func(m *model) { m.table(name).indexes[at] = &x }}
}

func (w *world) changeCheck(m *model) *change {
	t := pick(w.rng, m.tables)
	if len(t.checks) > 0 {
		c := t.checks[0]
		return t.alter("DROP CONSTRAINT "+c.name, of(checks), func(t *table) { t.checks = t.checks[1:] })
	}
	names := t.columnsOf(intKind)
	if len(names) == 0 {
		return nil
	}
	c := check{w.newName("Check"), pick(w.rng, names), pick(w.rng, []int64{9, 1000, 1 << 62})}
	// The model does not know the values of the sequence before the commit. Spanner requires that a CHECK uses a column
	// that is not computed.
	if t.column(c.column).sequence || t.column(c.column).computed != nil {
		return nil
	}
	name := t.name
	s := t.alter(fmt.Sprintf("ADD CONSTRAINT %s CHECK (%s < %d)", c.name, c.column, c.limit), of(checks).with(t.column(c.column).features), func(t *table) { t.checks = append(t.checks, c) })
	s.violated = func(m *model) bool {
		t := m.table(name)
		return slices.ContainsFunc(m.sorted(t, nil), func(r *row) bool { v := m.value(t, r, c.column); return v.set && v.int() >= c.limit })
	}
	return s
}

func (w *world) changeForeignKey(m *model) *change {
	t := pick(w.rng, m.tables)
	if len(t.foreign) > 0 {
		f := t.foreign[0]
		return t.alter("DROP CONSTRAINT "+f.name, of(foreignKey), func(t *table) { t.foreign = t.foreign[1:] })
	}
	to, names := pick(w.rng, m.tables), t.columnsOf(intKind)
	if len(to.key) > 1 || to.ttl != "" || len(names) == 0 {
		return nil
	}
	f := foreign{w.newName("Foreign"), pick(w.rng, names), to.name, w.rng.IntN(2) == 0}
	if c := t.column(f.column); c.sequence || c.computed != nil {
		return nil
	}
	name, features := t.name, of(foreignKey)
	words := ""
	if f.cascade {
		words, features = " ON DELETE CASCADE", features.and(cascadingKey)
	}
	s := t.alter(fmt.Sprintf("ADD CONSTRAINT %s FOREIGN KEY (%s) REFERENCES %s (%s)%s", f.name, f.column, to.name, to.key[0].column, words), features,
		func(t *table) { t.foreign = append(t.foreign, f) })
	s.violated = func(m *model) bool {
		t, to := m.table(name), m.table(f.to)
		return slices.ContainsFunc(m.sorted(t, nil), func(r *row) bool {
			v := m.value(t, r, f.column)
			return v.set && to.rows[to.keyText(func(string) cell { return v })] == nil
		})
	}
	return s
}

func (w *world) changePolicy(m *model) *change {
	t := pick(w.rng, m.tables)
	if t.ttl != "" {
		return t.alter("DROP ROW DELETION POLICY", of(rowDeletion), func(t *table) { t.ttl = "" })
	}
	names := t.columnsOf(timeKind)
	referred := slices.ContainsFunc(m.tables, func(o *table) bool {
		return o.parent == t.name || slices.ContainsFunc(o.foreign, func(f foreign) bool { return f.to == t.name })
	})
	if len(names) == 0 || referred {
		return nil
	}
	name := pick(w.rng, names)
	return t.alter("ADD ROW DELETION POLICY (OLDER_THAN("+name+", INTERVAL 1 DAY))", of(rowDeletion), func(t *table) { t.ttl = name })
}

func (w *world) renameTable(m *model) *change {
	t := pick(w.rng, m.tables)
	if m.viewed(t) || m.granted(t.name) {
		return nil
	}
	old, name := t.name, schemaOf(t.name)+w.newName("Table")
	words, synonym := "", t.synonym == "" && w.rng.IntN(2) == 0
	if synonym {
		words = ", ADD SYNONYM " + old
	}
	return &change{statements: []string{fmt.Sprintf("ALTER TABLE %s RENAME TO %s%s", old, name, words)}, features: of(renamed), apply: func(m *model) {
		if t := m.table(old); synonym {
			t.synonym = old
		}
		for _, o := range m.tables {
			if o.name == old {
				o.name = name
			}
			if o.parent == old {
				o.parent = name
			}
			for i := range o.foreign {
				if o.foreign[i].to == old {
					o.foreign[i].to = name
				}
			}
		}
	}}
}

func (w *world) changeSynonym(m *model) *change {
	t := pick(w.rng, m.tables)
	if t.synonym != "" {
		return t.alter("DROP SYNONYM "+t.synonym, of(synonyms), func(t *table) { t.synonym = "" })
	}
	name := schemaOf(t.name) + w.newName("Synonym")
	return t.alter("ADD SYNONYM "+name, of(synonyms), func(t *table) { t.synonym = name })
}

func (w *world) createTable(m *model) *change {
	if len(m.tables) >= 5 {
		return nil
	}
	name, parent := w.newName("Table"), (*table)(nil)
	if w.rng.IntN(2) == 0 {
		name = "n." + name
	}
	if p := pick(w.rng, m.tables); w.rng.IntN(2) == 0 && p.parent == "" && p.ttl == "" {
		parent = p
	}
	t := w.newTable(name, parent)
	return &change{statements: []string{t.ddl()}, features: of(createdTable), apply: func(m *model) { c := *t; m.tables = append(m.tables, &c) }}
}

func (w *world) dropTable(m *model) *change {
	t := pick(w.rng, m.tables)
	if t == m.tables[0] || len(t.indexes) > 0 || len(m.tables) < 3 || m.referred(t) || m.granted(t.name) {
		return nil
	}
	name := t.name
	return &change{statements: []string{"DROP TABLE " + name}, features: of(droppedTable), apply: func(m *model) {
		m.tables = slices.DeleteFunc(m.tables, func(t *table) bool { return t.name == name })
	}}
}

// replaceFunction returns a change that replaces the body of a function.
func (w *world) replaceFunction(m *model) *change {
	name := pick(w.rng, sortedKeys(m.functions))
	f := function{w.rng.Int64N(4) + 1, w.rng.Int64N(100), of(replacedFunction)}
	s := &change{statements: []string{f.ddl("CREATE OR REPLACE", name)}, features: of(replacedFunction), apply: func(m *model) { m.functions[name] = f }}
	s.violated = func(m *model) bool {
		for _, t := range m.tables {
			if slices.ContainsFunc(t.columns, func(c *column) bool { return t.dependsOn(c, name) && t.kept(c) }) {
				return true
			}
		}
		next := m.clone()
		next.functions[name] = f
		return next.broken(true) != nil
	}
	return s
}

func (w *world) changeColumnar(m *model) *change {
	policy := pick(w.rng, []string{"enabled", "enabled", "enabled", "disabled"})
	t := pick(w.rng, m.tables)
	if w.rng.IntN(6) == 0 {
		return &change{statements: []string{"ALTER DATABASE crossings SET OPTIONS (columnar_policy = '" + policy + "')"}, features: of(columnarPolicy),
			apply: func(m *model) { m.columnar = policy == "enabled" }}
	}
	if len(t.indexes) > 0 && w.rng.IntN(2) == 0 {
		name, at := t.name, w.rng.IntN(len(t.indexes))
		return &change{statements: []string{"ALTER INDEX " + t.indexes[at].name + " SET OPTIONS (columnar_policy = '" + policy + "')"}, features: of(columnarPolicy),
			apply: func(m *model) {
				t := m.table(name)
				x := *t.indexes[at]
				x.columnar = policy
				t.indexes[at] = &x
			}}
	}
	return t.alter("SET OPTIONS (columnar_policy = '"+policy+"')", of(columnarPolicy), func(t *table) { t.columnar = policy })
}

func pick[T any](rng *rand.Rand, list []T) T { return list[rng.IntN(len(list))] }

func sortedKeys[V any](m map[string]V) (keys []string) {
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
