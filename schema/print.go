package schema

import (
	"maps"
	"slices"
	"strings"

	"github.com/cloudspannerecosystem/memefish/token"
)

// DDL returns the statements that create the catalog again, as GetDatabaseDdl prints them. The order is: options,
// schemas, objects of stage beforeTables, tables with parents first, foreign keys that cannot stand in CREATE TABLE,
// indexes, objects of stage afterIndexes, change streams, objects of stage afterChangeStreams.
func (c *Catalog) DDL() []string {
	var stmts []string
	if sql := c.optionsSQL(); sql != "" {
		stmts = append(stmts, sql)
	}
	for _, s := range c.Schemas {
		stmts = append(stmts, schemaSQL(s))
	}
	stmts = append(stmts, c.objectsSQL(beforeTables)...)
	for t := range c.Tables() {
		stmts = append(stmts, t.sql())
	}
	for t := range c.Tables() {
		stmts = append(stmts, t.laterSQL()...)
	}
	for t := range c.Tables() {
		stmts = append(stmts, t.indexSQL()...)
	}
	stmts = append(stmts, c.objectsSQL(afterIndexes)...)
	for _, s := range c.Streams {
		stmts = append(stmts, c.changeStreamSQL(s))
	}
	return append(stmts, c.objectsSQL(afterChangeStreams)...)
}

// ddlSize returns the length in bytes of all statements that DDL returns for table t.
func (t *Table) ddlSize() int {
	size := len(t.sql())
	for _, s := range slices.Concat(t.laterSQL(), t.indexSQL()) {
		size += len(s)
	}
	return size
}

// optionsSQL prints the database's options; "" if none is set.
func (c *Catalog) optionsSQL() string {
	if len(c.Options) == 0 {
		return ""
	}
	var list []string
	for _, name := range slices.Sorted(maps.Keys(c.Options)) {
		list = append(list, "  "+name+" = "+c.Options.SQL(name))
	}
	return "ALTER DATABASE " + quote(c.Database) + " SET OPTIONS (\n" + strings.Join(list, ",\n") + "\n)"
}

func schemaSQL(name string) string { return "CREATE SCHEMA " + quote(name) }

// laterSQL prints ALTER TABLE statements for the foreign keys that cannot stand in the table's CREATE TABLE.
func (t *Table) laterSQL() (list []string) {
	for _, fk := range t.ForeignKeys {
		if !fk.fits() {
			list = append(list, "ALTER TABLE "+quotePath(t.Schema, t.Name)+" ADD "+fk.sql())
		}
	}
	return list
}

// indexSQL prints the indexes of the table that users have created.
func (t *Table) indexSQL() (list []string) {
	for _, i := range t.Indexes {
		if !i.Managed {
			list = append(list, i.sql())
		}
	}
	return list
}

// sql prints the CREATE TABLE statement.
func (t *Table) sql() string {
	var b strings.Builder
	b.WriteString("CREATE TABLE " + quotePath(t.Schema, t.Name) + " (\n")
	line := func(s string) { b.WriteString("  " + s + ",\n") }
	for _, c := range t.Columns {
		line(c.sql())
	}
	for _, fk := range t.ForeignKeys {
		if fk.fits() {
			line(fk.sql())
		}
	}
	for _, c := range t.Checks {
		line(constraintName(c.Name, c.NameGenerated) + "CHECK(" + c.Expr.SQL + ")")
	}
	if t.Synonym != "" {
		line(t.synonymSQL())
	}
	b.WriteString(") PRIMARY KEY(" + keySQL(t.Key) + ")")
	if t.Parent != nil {
		parent := quotePath(t.Parent.Schema, t.Parent.Name)
		switch t.Interleave {
		case InterleaveIn:
			b.WriteString(",\n  INTERLEAVE IN " + parent)
		case InterleaveNoAction:
			b.WriteString(",\n  INTERLEAVE IN PARENT " + parent + " ON DELETE NO ACTION")
		case InterleaveCascade:
			b.WriteString(",\n  INTERLEAVE IN PARENT " + parent + " ON DELETE CASCADE")
		}
	}
	if p := t.RowDeletionPolicy; p != nil {
		b.WriteString(",\n  ROW DELETION POLICY (" + p.SQL() + ")")
	}
	if options := storageOptionsSQL(t.ColumnarPolicy, t.LocalityGroup); options != "" {
		b.WriteString(",\n  " + options)
	}
	return b.String()
}

func (c *Column) sql() string {
	s := quote(c.Name) + " " + c.TypeSQL()
	if c.NotNull {
		s += " NOT NULL"
	}
	switch {
	case c.Identity != nil:
		s += c.Identity.identitySQL()
	case c.Default != nil:
		s += " DEFAULT (" + c.Default.SQL + ")"
	}
	if c.OnUpdate != nil {
		s += " ON UPDATE (" + c.OnUpdate.SQL + ")"
	}
	if c.Generated != nil {
		s += " AS (" + c.Generated.SQL + ")"
		if c.Stored {
			s += " STORED"
		}
	}
	if c.PlacementKey {
		s += " PLACEMENT KEY"
	}
	if c.Hidden {
		s += " HIDDEN"
	}
	var options []string
	if c.AllowCommitTimestamp {
		options = append(options, "    "+allowCommitTimestamp+" = true")
	}
	if c.LocalityGroup != "" {
		options = append(options, "    "+localityGroup+" = "+quoteString(c.LocalityGroup))
	}
	if options != nil {
		s += " " + optionsBlock(options)
	}
	return s
}

// fits reports whether the foreign key can stand in its table's CREATE TABLE. The referenced table must be an earlier
// one, or the same table. If a table has a row deletion policy, a foreign key to itself that prevents the deletion of
// referenced rows cannot stand in its CREATE TABLE: CREATE TABLE refuses the two together, and only ALTER TABLE can add
// the foreign key.
func (fk *ForeignKey) fits() bool {
	return fk.Referenced.ID <= fk.Table.ID && !(fk.Referenced == fk.Table && fk.Table.RowDeletionPolicy != nil && fk.holdsRows())
}

func (fk *ForeignKey) sql() string {
	s := constraintName(fk.Name, fk.NameGenerated) + "FOREIGN KEY(" + columnsSQL(fk.Columns) + ") REFERENCES " +
		quotePath(fk.Referenced.Schema, fk.Referenced.Name) + "(" + columnsSQL(fk.ReferencedColumns) + ")"
	if fk.Cascade {
		s += " ON DELETE CASCADE"
	}
	if fk.NotEnforced {
		s += " NOT ENFORCED"
	}
	return s
}

func (i *Index) sql() string {
	s := "CREATE "
	if i.Unique {
		s += "UNIQUE "
	}
	if i.NullFiltered {
		s += "NULL_FILTERED "
	}
	s += "INDEX " + quotePath(i.Schema, i.Name) + " ON " + quotePath(i.Table.Schema, i.Table.Name) + "(" + keySQL(i.Key) + ")"
	if len(i.Storing) > 0 {
		s += " STORING (" + columnsSQL(i.Storing) + ")"
	}
	if filter := i.FilterSQL(); filter != "" {
		s += " WHERE " + filter
	}
	if i.Parent != nil {
		s += ", INTERLEAVE IN " + quotePath(i.Parent.Schema, i.Parent.Name)
	}
	if options := storageOptionsSQL(i.ColumnarPolicy, i.LocalityGroup); options != "" {
		s += "\n  " + options
	}
	return s
}

// FilterSQL prints the condition of the index's WHERE clause; "" if it has none.
func (i *Index) FilterSQL() string {
	var filters []string
	for _, c := range i.NotNullColumns {
		if !i.NullFiltered || !i.keys(c) {
			filters = append(filters, quote(c.Name)+" IS NOT NULL")
		}
	}
	return strings.Join(filters, " AND ")
}

// changeStreamSQL prints the CREATE CHANGE STREAM statement.
func (c *Catalog) changeStreamSQL(s *ChangeStream) string {
	var watched []string
	if s.All {
		watched = []string{"ALL"}
	}
	for _, w := range s.Tables {
		t := c.TableByID(w.Table)
		sql := quotePath(t.Schema, t.Name)
		if !w.Whole {
			sql += "(" + columnsSQL(t.columnsByID(w.Columns)) + ")"
		}
		watched = append(watched, sql)
	}
	sql := "CREATE CHANGE STREAM " + quote(s.Name)
	if watched != nil {
		sql += "\n  FOR " + strings.Join(watched, ", ")
	}
	var options []string
	for _, name := range slices.Sorted(maps.Keys(s.Options)) {
		options = append(options, "    "+name+" = "+s.OptionSQL(name))
	}
	if options != nil {
		sql += "\n  OPTIONS (\n" + strings.Join(options, ",\n") + "\n  )"
	}
	return sql
}

// OptionSQL prints the value of an option that is set, as DDL writes it.
func (s *ChangeStream) OptionSQL(name string) string {
	if ChangeStreamOptionType(name) == textOption {
		return quoteString(s.Options[name])
	}
	return s.Options[name]
}

// constraintName prints CONSTRAINT and the name; "" if the name was generated.
func constraintName(name string, generated bool) string {
	if generated {
		return ""
	}
	return "CONSTRAINT " + quote(name) + " "
}

func keySQL(key []KeyPart) string {
	var parts []string
	for _, p := range key {
		s := quote(p.Column.Name)
		if p.Desc {
			s += " DESC"
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, ", ")
}

func columnsSQL(columns []*Column) string {
	var names []string
	for _, c := range columns {
		names = append(names, quote(c.Name))
	}
	return strings.Join(names, ", ")
}

// clauseWords are words that the function quote must put in back quotes. They are not reserved. But in a place where a
// column name may stand they would begin another clause.
var clauseWords = []string{"CHECK", "COLUMN", "CONSTRAINT", "FOREIGN", "PARENT", "PRIMARY", "SYNONYM"}

// quote prints a name. It adds back quotes if the parser would not read the bare name as a name.
func quote(name string) string {
	if slices.Contains(clauseWords, strings.ToUpper(name)) {
		return "`" + name + "`"
	}
	return token.QuoteSQLIdent(name)
}

func quotePath(schema, name string) string {
	if schema == "" {
		return quote(name)
	}
	return quote(schema) + "." + quote(name)
}

// quoteString prints a string literal in single quotes.
func quoteString(s string) string {
	s = strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`, "\r", `\r`).Replace(s)
	return "'" + s + "'"
}
