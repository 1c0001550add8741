package schema

import (
	"slices"
	"sort"
	"strings"

	"github.com/cloudspannerecosystem/memefish/ast"

	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

func (d *draft) createTable(s *ast.CreateTable) error {
	t, err := d.newTable(s)
	if t == nil {
		return err
	}
	for _, def := range s.Columns {
		d.reading(def)
		if err := d.addColumn(t, def); err != nil {
			return err
		}
	}
	d.reading(s.Name)
	if err := d.setPrimaryKey(t, s); err != nil {
		return err
	}
	if s.Cluster != nil {
		if err := d.interleave(t, s.Cluster); err != nil {
			return err
		}
	}
	for i, c := range t.Columns {
		d.reading(s.Columns[i])
		if err := d.compileColumn(t, c); err != nil {
			return err
		}
	}
	if err := checkGenerated(t); err != nil {
		return err
	}
	d.adopt(t)
	if err := d.addSynonyms(t, s.Synonyms); err != nil {
		return err
	}
	for _, c := range s.TableConstraints {
		if _, ok := c.Constraint.(*ast.TablePrimaryKey); ok {
			continue
		}
		d.reading(c)
		if err := d.addConstraint(t, c); err != nil {
			return err
		}
	}
	if s.RowDeletionPolicy != nil {
		d.reading(s.RowDeletionPolicy)
		if err := d.setRowDeletionPolicy(t, s.RowDeletionPolicy.RowDeletionPolicy); err != nil {
			return err
		}
	}
	d.change.Created = t
	// The new table has no rows to validate or to fill indexes from. Only indexes that its foreign keys need on other
	// tables must be filled.
	d.change.Validations = nil
	d.change.Indexes = filter(d.change.Indexes, func(i *Index) bool { return i.Table != t })
	return nil
}

// newTable makes a table, after all checks that do not depend on its columns. It returns nil if the table exists and
// the statement has IF NOT EXISTS.
func (d *draft) newTable(s *ast.CreateTable) (*Table, error) {
	schema, name, err := d.path("Table", s.Name)
	if err != nil {
		return nil, err
	}
	if s.IfNotExists && d.Table(fullName(schema, name)) != nil {
		return nil, d.nothing()
	}
	if schema, err = d.findSchema(schema); err != nil {
		return nil, err
	}
	if err := checkName("Table", name); err != nil {
		return nil, err
	}
	if err := d.checkFree(schema, name); err != nil {
		return nil, err
	}
	if d.tables.Len() >= MaxTables {
		return nil, usererror.TooManyTables(fullName(schema, name), MaxTables)
	}
	t := &Table{ID: d.newID(), Schema: schema, Name: name, NextColumn: 1}
	if err := d.setStorageOptions("Table", t.FullName(), s.Options, &t.ColumnarPolicy, &t.LocalityGroup); err != nil {
		return nil, err
	}
	return t, nil
}

// addColumn appends the column that def defines to t. It does not compile the column's expressions.
func (d *draft) addColumn(t *Table, def *ast.ColumnDef) error {
	c := &Column{ID: t.NextColumn, Ordinal: len(t.Columns), Name: shared(def.Name.Name), NotNull: def.NotNull, KeyOrdinal: -1}
	where := t.FullName() + "." + c.Name
	if err := checkName("Column", c.Name); err != nil {
		return err
	}
	if t.Column(c.Name) != nil {
		return usererror.DuplicateColumn(where)
	}
	if len(t.Columns) >= MaxColumns {
		return usererror.TooManyColumns(t.FullName(), MaxColumns)
	}
	if err := d.setType(t, c, def.Type); err != nil {
		return err
	}
	if def.PlacementKey != nil {
		if err := c.setPlacementKey(t, def); err != nil {
			return err
		}
	}
	c.Hidden = !def.Hidden.Invalid()
	if err := d.setSemantics(t, c, def.DefaultSemantics); err != nil {
		return err
	}
	if err := c.checkVector(where); err != nil {
		return err
	}
	if def.Options != nil {
		if err := d.setOptionsOf(c, where, def.Options); err != nil {
			return err
		}
	}
	t.NextColumn++
	t.Columns = append(t.Columns, c)
	return nil
}

// setSemantics sets the DEFAULT, ON UPDATE, AS or IDENTITY of a column from its clause, which may be nil.
func (d *draft) setSemantics(t *Table, c *Column, s ast.ColumnDefaultSemantics) error {
	switch s := s.(type) {
	case *ast.ColumnDefaultExpr:
		d.setDefault(c, s)
	case *ast.GeneratedColumnExpr:
		c.Generated = &Expr{SQL: d.src.InParens(s.As, s.Rparen)}
		c.Stored = !s.Stored.Invalid()
	case *ast.IdentityColumn:
		return d.setIdentity(t, c, s.Params)
	case *ast.AutoIncrement:
		return d.setIdentity(t, c, nil)
	}
	return nil
}

func (d *draft) setDefault(c *Column, s *ast.ColumnDefaultExpr) {
	c.Default = &Expr{SQL: d.src.InParens(s.Default, s.Rparen)}
	if s.OnUpdate != nil {
		c.OnUpdate = &Expr{SQL: d.src.InParens(s.OnUpdate.On, s.OnUpdate.Rparen)}
	}
}

// setOptionsOf sets options of a column from its OPTIONS clause. where is the name of the column in errors.
func (d *draft) setOptionsOf(c *Column, where string, o *ast.Options) (err error) {
	for _, r := range o.Records {
		switch name := r.Name.Name; strings.ToLower(name) {
		case allowCommitTimestamp:
			err = c.setAllowCommitTimestamp(where, r)
		case localityGroup:
			c.LocalityGroup, err = d.groupOption("Column", where, r.Value)
		default:
			err = usererror.BadColumnOption(where, name, "there is no such option")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

const allowCommitTimestamp = "allow_commit_timestamp"

// setAllowCommitTimestamp sets allow_commit_timestamp to true or false; null means false.
func (c *Column) setAllowCommitTimestamp(where string, r *ast.OptionsDef) error {
	var allow bool
	switch v := r.Value.(type) {
	case *ast.BoolLiteral:
		allow = v.Value
	case *ast.NullLiteral:
	default:
		return usererror.BadColumnOption(where, r.Name.Name, "it must be true, false or null")
	}
	if c.Type.Kind != value.Timestamp {
		return usererror.CommitTimestampOption(where)
	}
	c.AllowCommitTimestamp = allow
	return nil
}

// setPrimaryKey sets the primary key. PRIMARY KEY can stand after the columns, among the constraints, or at a column,
// but only once.
func (d *draft) setPrimaryKey(t *Table, s *ast.CreateTable) error {
	var keys [][]*ast.IndexKey
	if !s.PrimaryKeyRparen.Invalid() {
		keys = append(keys, s.PrimaryKeys)
	}
	for _, c := range s.TableConstraints {
		if pk, ok := c.Constraint.(*ast.TablePrimaryKey); ok {
			keys = append(keys, pk.Columns)
		}
	}
	for _, c := range s.Columns {
		if c.PrimaryKey {
			keys = append(keys, []*ast.IndexKey{{Name: c.Name}})
		}
	}
	switch len(keys) {
	case 0:
		return usererror.NoPrimaryKey(t.FullName())
	case 1:
	default:
		return usererror.SeveralPrimaryKeys(t.FullName())
	}
	return d.setKey(t, keys[0])
}

func (d *draft) setKey(t *Table, parts []*ast.IndexKey) error {
	if len(parts) > MaxKeyParts {
		return usererror.TooManyKeyParts("Table", t.FullName(), len(parts), MaxKeyParts)
	}
	for i, p := range parts {
		d.reading(p)
		c := t.Column(p.Name.Name)
		if c == nil {
			return usererror.KeyColumnNotFound("Table", t.FullName(), p.Name.Name)
		}
		if c.KeyOrdinal >= 0 {
			return usererror.KeyColumnTwice("Table", t.FullName(), c.Name)
		}
		if !isKeyable(c.Type) {
			return usererror.KeyColumnType(t.FullName()+"."+c.Name, shortType(c.Type))
		}
		c.KeyOrdinal = i
		t.Key = append(t.Key, KeyPart{Column: c, Desc: p.Dir == ast.DirectionDesc})
	}
	return nil
}

func (d *draft) dropTable(s *ast.DropTable) error {
	t, err := d.table(s.Name)
	if err != nil {
		if s.IfExists && isMissing(err) {
			return d.nothing()
		}
		return err
	}
	if err := d.checkDroppable(t); err != nil {
		return err
	}
	for len(t.ForeignKeys) > 0 {
		d.dropForeignKey(t.ForeignKeys[0])
	}
	d.leave(t)
	d.change.DroppedTables = append(d.change.DroppedTables, d.old.TableByID(t.ID))
	return nil
}

// checkDroppable returns an error if the table cannot be dropped, because something other than its own foreign keys
// depends on it.
func (d *draft) checkDroppable(t *Table) error {
	if names := namesOf(d.Children(t), (*Table).FullName); names != "" {
		return usererror.DropTableWithChildren(t.FullName(), names)
	}
	own := func(i *Index) bool { return !i.Managed }
	if names := namesOf(filter(t.Indexes, own), (*Index).FullName); names != "" {
		return usererror.DropTableWithIndexes(t.FullName(), names)
	}
	others := func(fk *ForeignKey) bool { return fk.Table != t }
	if names := d.foreignKeyNames(t, others); names != "" {
		return usererror.DropTableReferenced(t.FullName(), names)
	}
	if err := checkUnnamed("TABLE `"+t.FullName()+"`", d.dependentsOf(t.ID, nil)); err != nil {
		return err
	}
	if streams := d.streamsNaming(t, nil); streams != nil {
		return usererror.DropWatchedTable(t.FullName(), len(streams), namesOf(streams, changeStreamName))
	}
	return nil
}

// streamsNaming returns the change streams whose FOR clause names table t and, if col is not nil, the column col of t.
func (c *Catalog) streamsNaming(t *Table, col *Column) []*ChangeStream {
	return filter(c.Streams, func(s *ChangeStream) bool {
		_, named := s.watches(t)
		return named != nil && (col == nil || slices.Contains(named.Columns, col.ID))
	})
}

func changeStreamName(s *ChangeStream) string { return s.Name }

// namesOf returns the sorted names of the elements of list as "a,b,c".
func namesOf[T any](list []*T, name func(*T) string) string {
	var names []string
	for _, x := range list {
		names = append(names, name(x))
	}
	sort.Strings(names)
	return strings.Join(names, ",")
}

func filter[T any](list []*T, keep func(*T) bool) []*T {
	var kept []*T
	for _, x := range list {
		if keep(x) {
			kept = append(kept, x)
		}
	}
	return kept
}

func remove[T any](list []*T, x *T) []*T {
	return slices.DeleteFunc(list, func(y *T) bool { return y == x })
}
