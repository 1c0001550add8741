package schema

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"
)

// checkInvariants checks that all pointers in the catalog lead to objects of the same catalog. It also checks that the
// catalog's names, IDs and sizes agree with these objects.
func checkInvariants(t *testing.T, c *Catalog) {
	t.Helper()
	ids := map[TableID]bool{}
	number := func(id TableID, name string) {
		if id == 0 || id >= c.NextID || ids[id] {
			t.Fatalf("%s has number %d, next is %d", name, id, c.NextID)
		}
		ids[id] = true
	}
	indexes := 0
	names := 0
	var last TableID
	for table := range c.Tables() {
		number(table.ID, table.FullName())
		if table.ID <= last || c.TableByID(table.ID) != table {
			t.Fatalf("table %s is out of order", table.FullName())
		}
		last = table.ID
		names += 1 + len(table.Checks) + len(table.ForeignKeys)
		if table.Synonym != "" {
			names++
			if s := fullName(table.Schema, strings.ToUpper(table.Synonym)); c.TableOrSynonym(s) != table || c.Table(s) != nil {
				t.Fatalf("table %s is not found by its synonym, or is so by DDL", table.FullName())
			}
		}
		if c.Table(strings.ToUpper(table.FullName())) != table {
			t.Fatalf("table %s is not found by its name", table.FullName())
		}
		if table.Parent != nil && (table.Parent.ID > table.ID || !has(c, table.Parent) || !slices.Contains(c.Children(table.Parent), table)) {
			t.Fatalf("table %s has a parent that does not know it or comes later", table.FullName())
		}
		if (table.Parent == nil) != (table.Interleave == NotInterleaved) {
			t.Fatalf("table %s: interleaving %d", table.FullName(), table.Interleave)
		}
		for referrer := range c.referrersOf(table) {
			if !has(c, referrer) || !slices.Contains(c.Children(table), referrer) && !slices.ContainsFunc(c.ReferencedBy(table), func(fk *ForeignKey) bool { return fk.Table == referrer }) {
				t.Fatalf("table %s is not referred to by %s", table.FullName(), referrer.FullName())
			}
		}
		checkColumns(t, table)
		for _, i := range table.Indexes {
			if !takesPlace(table, i) {
				indexes++
			}
			number(i.ID, i.FullName())
			checkIndex(t, c, table, i)
		}
		for _, fk := range table.ForeignKeys {
			checkForeignKey(t, c, table, fk)
		}
	}
	for _, s := range c.Streams {
		number(TableID(s.ID), s.Name)
		checkChangeStream(t, c, s)
	}
	for id, o := range c.objects.All() {
		e := o.entity()
		number(e.ID, e.FullName())
		if found, ok := c.names.Get(o.kind().key(e.Schema, e.Name)); id != e.ID || !ok || found != (named{id, nameOfObject}) {
			t.Fatalf("object %s is not found by its name or number", e.FullName())
		}
	}
	for counter := range c.Counters() {
		if counter == 0 || counter >= c.NextID || ids[counter] {
			t.Fatalf("a counter has number %d, next is %d", counter, c.NextID)
		}
	}
	if names += indexes + len(c.Streams) + c.objects.Len(); c.names.Len() != names {
		t.Fatalf("%d names, but there are %d things that have one", c.names.Len(), names)
	}
	if all := len(ids) - c.tables.Len() - len(c.Streams) - c.objects.Len(); c.indexes.Len() != all {
		t.Fatalf("%d indexes are known by their numbers, but there are %d", c.indexes.Len(), all)
	}
	checkSizes(t, c)
}

func checkChangeStream(t *testing.T, c *Catalog, s *ChangeStream) {
	t.Helper()
	if c.ChangeStream(strings.ToUpper(s.Name)) != s || s.All && s.Tables != nil || s.Retention < 24*time.Hour {
		t.Fatalf("change stream %s: all %t, tables %v, retention %s", s.Name, s.All, s.Tables, s.Retention)
	}
	for _, w := range s.Tables {
		table := c.TableByID(w.Table)
		if table == nil || slices.Contains(table.columnsByID(w.Columns), nil) || w.Whole && w.Columns != nil {
			t.Fatalf("change stream %s watches table %d, columns %v", s.Name, w.Table, w.Columns)
		}
	}
}

// has reports whether t is a table of c, and not of another version of the catalog.
func has(c *Catalog, t *Table) bool { return c.TableByID(t.ID) == t }

// checkSizes checks that the DDL texts of the catalog's parts (options, schemas, change streams, tables and objects)
// together are as long as the DDL text of the whole catalog.
func checkSizes(t *testing.T, c *Catalog) {
	t.Helper()
	size := len(c.optionsSQL())
	for _, s := range c.Schemas {
		size += len(schemaSQL(s))
	}
	for _, s := range c.Streams {
		size += len(c.changeStreamSQL(s))
	}
	for table := range c.Tables() {
		size += table.ddlSize()
	}
	for o := range objectsOf[Object](c) {
		for _, stmt := range o.sql(c) {
			size += len(stmt)
		}
	}
	printed := 0
	for _, stmt := range c.DDL() {
		printed += len(stmt)
	}
	if size != printed {
		t.Fatalf("the tables' sizes make %d, the catalog prints %d", size, printed)
	}
}

func checkColumns(t *testing.T, table *Table) {
	t.Helper()
	for i, c := range table.Columns {
		if c.Ordinal != i || c.ID == 0 || c.ID >= table.NextColumn || (table.Column(strings.ToLower(c.Name)) == c) != (c.State == ColumnReadWrite) {
			t.Fatalf("column %s.%s: ordinal %d, number %d", table.FullName(), c.Name, c.Ordinal, c.ID)
		}
		if c.KeyOrdinal >= 0 && table.Key[c.KeyOrdinal].Column != c {
			t.Fatalf("column %s.%s is not at %d of the key", table.FullName(), c.Name, c.KeyOrdinal)
		}
		for _, e := range []*Expr{c.Default, c.OnUpdate, c.Generated} {
			checkExpr(t, table, e)
		}
	}
	for _, c := range table.Checks {
		checkExpr(t, table, c.Expr)
	}
	for i, p := range table.Key {
		if p.Column.KeyOrdinal != i || !slices.Contains(table.Columns, p.Column) {
			t.Fatalf("key part %d of %s", i, table.FullName())
		}
	}
}

func checkExpr(t *testing.T, table *Table, e *Expr) {
	t.Helper()
	if e == nil {
		return
	}
	if e.Eval == nil || e.SQL == "" {
		t.Fatalf("expression %q of %s is not compiled", e.SQL, table.FullName())
	}
	for _, u := range e.Uses {
		if !slices.Contains(table.Columns, u) {
			t.Fatalf("expression %q of %s reads a foreign column %s", e.SQL, table.FullName(), u.Name)
		}
	}
}

func checkIndex(t *testing.T, c *Catalog, table *Table, i *Index) {
	t.Helper()
	named := c.Index(i.FullName()) == i && table.Index(i.FullName()) == i
	if i.Table != table || named == takesPlace(table, i) {
		t.Fatalf("index %s is not where it belongs", i.FullName())
	}
	columns := slices.Concat(i.Storing, i.NotNullColumns)
	for _, p := range slices.Concat(i.Key, i.Suffix) {
		columns = append(columns, p.Column)
	}
	for _, col := range columns {
		if !slices.Contains(table.Columns, col) {
			t.Fatalf("index %s has a foreign column %s", i.FullName(), col.Name)
		}
	}
	for _, p := range table.Key {
		has := func(q KeyPart) bool { return q.Column == p.Column }
		if slices.ContainsFunc(i.Key, has) == slices.ContainsFunc(i.Suffix, has) {
			t.Fatalf("index %s: key column %s", i.FullName(), p.Column.Name)
		}
	}
	if i.Parent != nil && !slices.Contains(table.Path(), i.Parent) {
		t.Fatalf("index %s has a foreign parent", i.FullName())
	}
}

// takesPlace reports whether the index is being filled and will replace another index with the same name.
func takesPlace(table *Table, i *Index) bool {
	return i.State == IndexWriteOnly && slices.ContainsFunc(table.Indexes, func(o *Index) bool { return o != i && o.FullName() == i.FullName() })
}

// checkUnderWay checks the catalog that serves requests while stmt fills new columns or indexes, or checks existing
// rows. It also checks that making this catalog changes neither the catalog before stmt nor the one after it.
func checkUnderWay(t *testing.T, c *Catalog, stmt string, protos []byte) {
	t.Helper()
	next, change, err := c.Apply(stmt, wordCompiler{}, protos)
	if err != nil {
		t.Fatal(err)
	}
	if change.Nothing {
		return
	}
	before, after := stored(t, c), stored(t, next)
	switch {
	case change.Redefines():
		checkInvariants(t, c.Expecting(change))
	case change.Fills():
		during := next.Filling(change)
		checkInvariants(t, during)
		checkStored(t, during)
	}
	if !bytes.Equal(stored(t, c), before) || !bytes.Equal(stored(t, next), after) {
		t.Fatalf("%s: a catalog has changed", stmt)
	}
}

func checkForeignKey(t *testing.T, c *Catalog, table *Table, fk *ForeignKey) {
	t.Helper()
	if fk.Table != table || !has(c, fk.Referenced) || !slices.Contains(c.ReferencedBy(fk.Referenced), fk) {
		t.Fatalf("foreign key %s is not where it belongs", fk.Name)
	}
	for i, col := range fk.Columns {
		if !slices.Contains(table.Columns, col) || !slices.Contains(fk.Referenced.Columns, fk.ReferencedColumns[i]) {
			t.Fatalf("foreign key %s has a foreign column", fk.Name)
		}
	}
	if fk.Index != nil && !slices.Contains(table.Indexes, fk.Index) ||
		fk.ReferencedIndex != nil && !slices.Contains(fk.Referenced.Indexes, fk.ReferencedIndex) {
		t.Fatalf("foreign key %s has a foreign index", fk.Name)
	}
}

// checkRoundTrips checks that the catalog is the same after it was encoded and decoded. Apart from IDs, it must also
// be the same after its DDL was printed and applied.
func checkRoundTrips(t *testing.T, c *Catalog) {
	t.Helper()
	checkStored(t, c)
	ddl := c.DDL()
	var protos []byte
	if b := c.ProtoBundle(); b != nil {
		protos = b.Descriptors
	}
	printed := NewCatalog()
	printed.Database = c.Database
	for _, stmt := range ddl {
		var err error
		if printed, _, err = printed.Apply(stmt, wordCompiler{}, protos); err != nil {
			t.Fatalf("printed %s: %v", stmt, err)
		}
	}
	checkInvariants(t, printed)
	if got, want := strings.Join(printed.DDL(), ";\n"), strings.Join(ddl, ";\n"); got != want {
		t.Fatalf("printed:\n%s\nparsed and printed again:\n%s", want, got)
	}
}

func checkStored(t *testing.T, c *Catalog) {
	t.Helper()
	checkLoads(t, nil, c)
}

// checkFollows checks that encoding c as the successor of the catalog before, and decoding it, gives c again. It then
// does the same with c and before exchanged.
func checkFollows(t *testing.T, before, c *Catalog) {
	t.Helper()
	checkLoads(t, before, c)
	checkLoads(t, c, before) // as if a schema change had failed and was taken back
}

func checkLoads(t *testing.T, before, c *Catalog) {
	t.Helper()
	e := encoded(t, before, c)
	loaded, err := Unmarshal(before, e, wordCompiler{})
	if err != nil {
		t.Fatal(err)
	}
	checkInvariants(t, loaded)
	if loaded.size != c.size {
		t.Fatalf("%d bytes of DDL, loaded %d", c.size, loaded.size)
	}
	if want, got := stored(t, c), stored(t, loaded); !bytes.Equal(want, got) {
		t.Fatalf("stored:\n%s\nloaded and stored again:\n%s", want, got)
	}
	if before != nil {
		if from := encoded(t, loaded, before); len(from.Objects) != len(e.Objects) {
			t.Fatalf("%d tables differ, but %d on the way back", len(e.Objects), len(from.Objects))
		}
	}
}
