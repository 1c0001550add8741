package schema

import (
	"errors"
	"slices"
	"strings"

	"github.com/cloudspannerecosystem/memefish/ast"
	"github.com/cloudspannerecosystem/memefish/token"
	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/schema/syntax"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// draft is the catalog that a statement is building. It shares with the old catalog everything that the statement
// does not change. Code that changes a table first calls the method own, which makes a copy of the table.
//
// If the draft replaces a table, other tables that point at it must point at the new version. So the draft also copies
// the tables that refer to the replaced table, as children or by foreign keys. It does not copy the columns of such a
// table: the old and the new version of the table share them.
type draft struct {
	*Catalog
	old      *Catalog
	src      *syntax.Statement
	compiler Compiler
	change   *Change
	copies   map[*Table]bool // the tables that the draft has made or copied
	mine     map[*Table]bool // those tables of the map copies that share no columns or expressions with the old catalog
	renamed  bool            // a table was renamed

	protoDescriptors []byte // the serialized FileDescriptorSet in the request, or nil

	at token.Pos // the position of the clause that is being read; invalid before the first clause
}

func (c *Catalog) draft(src *syntax.Statement, compiler Compiler) *draft {
	next := *c
	return &draft{
		Catalog: &next, old: c, src: src, compiler: compiler, change: &Change{},
		copies: map[*Table]bool{}, mine: map[*Table]bool{}, at: token.InvalidPos,
	}
}

// reading stores the position of n, the clause of the statement that is read next. If an error then has no position of
// its own, it gets this position.
func (d *draft) reading(n ast.Node) { d.at = n.Pos() }

// placed adds to a user error the position of the clause that was read last.
func (d *draft) placed(err error) error {
	var user *usererror.Error
	if d.at.Invalid() || !errors.As(err, &user) {
		return err
	}
	return user.In(d.src.Text, d.src.Place(int(d.at)))
}

// newID returns a new TableID.
func (d *draft) newID() TableID {
	id := d.NextID
	d.NextID++
	return id
}

// own returns the draft's own copy of a table, which the draft can change.
func (d *draft) own(t *Table) *Table {
	if d.mine[t] {
		return t
	}
	t = d.copied(t)
	t.copyColumns()
	d.mine[t] = true
	d.relink(t)
	return t
}

// adopt adds to the draft the table t, which the statement has just made.
func (d *draft) adopt(t *Table) {
	d.copies[t], d.mine[t] = true, true
	d.enter(t)
}

// copied replaces a table of the draft by a copy, with copies of its indexes and foreign keys, and returns the copy. If
// the draft has already made or copied t, copied returns t.
func (d *draft) copied(t *Table) *Table {
	if d.copies[t] {
		return t
	}
	n := t.copyLinks()
	d.copies[n] = true
	d.tables = d.tables.With(n.ID, n)
	return n
}

// relink updates all tables that refer to t, directly or through other tables. Afterwards they point at the draft's
// version of t and of its columns.
func (d *draft) relink(t *Table) {
	list := d.dependents(t)
	for i, x := range list {
		list[i] = d.copied(x)
	}
	for _, x := range list {
		d.redirect(x)
	}
}

// dependents returns t and all tables that are interleaved in it or have foreign keys to it, directly or through
// other tables.
func (c *Catalog) dependents(t *Table) []*Table {
	visited := map[TableID]bool{t.ID: true}
	list := []*Table{t}
	for at := 0; at < len(list); at++ {
		for x := range c.referrersOf(list[at]) {
			if !visited[x.ID] {
				visited[x.ID] = true
				list = append(list, x)
			}
		}
	}
	return list
}

// enter registers a table, its indexes and its constraints under their names and IDs. If the draft has another version
// of the table, with the same ID, t replaces it.
func (d *draft) enter(t *Table) {
	d.tables = d.tables.With(t.ID, t)
	d.name(t, t.Name, nameOfTable)
	if t.Synonym != "" {
		d.name(t, t.Synonym, nameOfSynonym)
	}
	for _, i := range t.Indexes {
		d.enterIndex(i)
	}
	for _, c := range t.Checks {
		d.name(t, c.Name, nameOfConstraint)
	}
	for _, fk := range t.ForeignKeys {
		d.enterForeignKey(fk)
	}
	if t.Parent != nil {
		d.referrers = d.referrers.With(referenceOf(t.Parent, t), struct{}{})
	}
}

// leave removes from the draft what enter has registered: a table, its indexes and its constraints.
func (d *draft) leave(t *Table) {
	d.tables = d.tables.Without(t.ID)
	d.unname(t, t.Name)
	if t.Synonym != "" {
		d.unname(t, t.Synonym)
	}
	for _, i := range t.Indexes {
		d.leaveIndex(i)
	}
	for _, c := range t.Checks {
		d.unname(t, c.Name)
	}
	for _, fk := range t.ForeignKeys {
		d.unname(t, fk.Name)
		d.referrers = d.referrers.Without(referenceOf(fk.Referenced, t))
	}
	if t.Parent != nil {
		d.referrers = d.referrers.Without(referenceOf(t.Parent, t))
	}
}

func (d *draft) enterIndex(i *Index) {
	d.indexes = d.indexes.With(i.ID, i.Table.ID)
	d.name(i.Table, i.Name, nameOfIndex)
}

func (d *draft) leaveIndex(i *Index) {
	d.indexes = d.indexes.Without(i.ID)
	d.unname(i.Table, i.Name)
}

func (d *draft) enterForeignKey(fk *ForeignKey) {
	d.name(fk.Table, fk.Name, nameOfConstraint)
	d.referrers = d.referrers.With(referenceOf(fk.Referenced, fk.Table), struct{}{})
}

// leaveForeignKey removes the name of fk from the catalog's names. It also removes the reference from fk's table to the
// referenced one, unless another foreign key or the interleaving still makes this reference. The caller has removed fk
// from its table.
func (d *draft) leaveForeignKey(fk *ForeignKey) {
	d.unname(fk.Table, fk.Name)
	t := fk.Table
	if t.Parent != fk.Referenced && !slices.ContainsFunc(t.ForeignKeys, func(o *ForeignKey) bool { return o.Referenced == fk.Referenced }) {
		d.referrers = d.referrers.Without(referenceOf(fk.Referenced, t))
	}
}

// name registers a name in the schema of t, for t itself or for one of its indexes or constraints.
func (d *draft) name(t *Table, name string, kind nameKind) {
	d.names = d.names.With(key(t.Schema, name), named{t.ID, kind})
}

func (d *draft) unname(t *Table, name string) { d.names = d.names.Without(key(t.Schema, name)) }

func key(schema, name string) string { return strings.ToLower(fullName(schema, name)) }

// path splits p, a name in the statement, into its schema and the name in that schema. kind is the kind of object in
// errors. The results are copies, so that the text of the statement can be freed.
func (d *draft) path(kind string, p *ast.Path) (schema, name string, err error) {
	d.reading(p)
	switch len(p.Idents) {
	case 1:
		return "", strings.Clone(p.Idents[0].Name), nil
	case 2:
		return strings.Clone(p.Idents[0].Name), strings.Clone(p.Idents[1].Name), nil
	}
	var parts []string
	for _, i := range p.Idents {
		parts = append(parts, i.Name)
	}
	return "", "", usererror.InvalidSchemaName(kind, strings.Join(parts, "."))
}

// find returns the table that the statement names.
func (d *draft) find(p *ast.Path) (*Table, error) {
	schema, name, err := d.path("Table", p)
	if err != nil {
		return nil, err
	}
	if t := d.Table(fullName(schema, name)); t != nil {
		return t, nil
	}
	return nil, usererror.SchemaObjectNotFound("Table", fullName(schema, name))
}

// table returns the draft's own copy of the table that the statement names.
func (d *draft) table(p *ast.Path) (*Table, error) {
	t, err := d.find(p)
	if err != nil {
		return nil, err
	}
	return d.own(t), nil
}

// index returns the draft's own copy of the index that the statement names.
func (d *draft) index(p *ast.Path) (*Index, error) {
	schema, name, err := d.path("Index", p)
	if err != nil {
		return nil, err
	}
	i := d.Index(fullName(schema, name))
	if i == nil {
		return nil, usererror.SchemaObjectNotFound("Index", fullName(schema, name))
	}
	d.own(i.Table)
	return d.Index(fullName(schema, name)), nil
}

// isMissing reports whether err is an error that IF EXISTS suppresses.
func isMissing(err error) bool { return usererror.CodeOf(err) == codes.NotFound }

// isPrecondition reports whether err is FAILED_PRECONDITION.
func isPrecondition(err error) bool { return usererror.CodeOf(err) == codes.FailedPrecondition }

// column returns the column that the statement names.
func (t *Table) column(name *ast.Ident) (*Column, error) {
	if c := t.Column(name.Name); c != nil {
		return c, nil
	}
	return nil, usererror.DDLColumnNotFound(t.FullName(), name.Name)
}

// nothing sets the field Nothing of the draft's Change, because the statement has no effect. It returns nil.
func (d *draft) nothing() error {
	d.change.Nothing = true
	return nil
}

// copyLinks copies a table with its indexes and foreign keys. The copy shares its columns and expressions with t, and
// refers to the same other tables.
func (t *Table) copyLinks() *Table {
	n := *t
	n.Indexes = make([]*Index, len(t.Indexes))
	for at, i := range t.Indexes {
		copied := *i
		copied.Table = &n
		n.Indexes[at] = &copied
	}
	n.ForeignKeys = make([]*ForeignKey, len(t.ForeignKeys))
	for at, fk := range t.ForeignKeys {
		copied := *fk
		copied.Table = &n
		if fk.Index != nil {
			copied.Index = n.Indexes[slices.Index(t.Indexes, fk.Index)]
		}
		n.ForeignKeys[at] = &copied
	}
	return &n
}

// sharesColumns reports whether two tables share their columns. They do if copyLinks has made one from the other, or
// both from the same table. Such tables differ at most in the tables to which they refer.
func (t *Table) sharesColumns(o *Table) bool {
	return len(t.Columns) > 0 && len(t.Columns) == len(o.Columns) && t.Columns[0] == o.Columns[0]
}

// redirect changes the references of a copied table, so that they lead to the draft's versions of other tables, their
// columns and their indexes.
func (d *draft) redirect(t *Table) {
	t.Parent = d.counterpart(t.Parent)
	for _, i := range t.Indexes {
		i.Parent = d.counterpart(i.Parent)
	}
	for _, fk := range t.ForeignKeys {
		fk.Referenced = d.counterpart(fk.Referenced)
		fk.ReferencedColumns = fk.Referenced.counterparts(fk.ReferencedColumns)
		if fk.ReferencedIndex != nil {
			fk.ReferencedIndex = fk.Referenced.indexByID(fk.ReferencedIndex.ID)
		}
	}
}

// counterpart returns the draft's table with the ID of t; nil if t is nil.
func (d *draft) counterpart(t *Table) *Table {
	if t == nil {
		return nil
	}
	return d.TableByID(t.ID)
}

// counterparts returns the columns of t that have the IDs of the given columns, which belong to another version of t.
func (t *Table) counterparts(columns []*Column) []*Column {
	return t.columnsByID(storeColumns(columns))
}

// copyColumns replaces the columns and expressions of t by copies. t is a table that copyLinks has made, so it still
// shares its columns and expressions with the table from which it was copied.
func (t *Table) copyColumns() {
	columns := make(map[*Column]*Column, len(t.Columns))
	for _, c := range t.Columns {
		copied := *c
		columns[c] = &copied
	}
	t.Columns = each(t.Columns, columns)
	t.Key = parts(t.Key, columns)
	for _, c := range t.Columns {
		c.Default, c.OnUpdate, c.Generated = c.Default.over(columns), c.OnUpdate.over(columns), c.Generated.over(columns)
	}
	if p := t.RowDeletionPolicy; p != nil {
		t.RowDeletionPolicy = &RowDeletionPolicy{Column: columns[p.Column], Days: p.Days}
	}
	checks := make([]*Check, len(t.Checks))
	for at, ck := range t.Checks {
		copied := *ck
		copied.Expr = ck.Expr.over(columns)
		checks[at] = &copied
	}
	t.Checks = checks
	for _, i := range t.Indexes {
		i.pointAt(columns)
	}
	for _, fk := range t.ForeignKeys {
		fk.Columns = each(fk.Columns, columns)
	}
}

// each returns a new list, in which the value that the map has for an element takes the place of this element. It
// returns nil for a nil list.
func each[T any](from []*T, to map[*T]*T) []*T {
	if from == nil {
		return nil
	}
	s := make([]*T, len(from))
	for i, f := range from {
		s[i] = to[f]
	}
	return s
}

// pointAt replaces the columns of a copied index by their copies. columns maps each column to its copy.
func (i *Index) pointAt(columns map[*Column]*Column) {
	i.Key, i.Suffix = parts(i.Key, columns), parts(i.Suffix, columns)
	i.Storing = each(i.Storing, columns)
	i.NotNullColumns = each(i.NotNullColumns, columns)
}

func parts(from []KeyPart, to map[*Column]*Column) []KeyPart {
	s := make([]KeyPart, len(from))
	for i, p := range from {
		s[i] = KeyPart{Column: to[p.Column], Desc: p.Desc}
	}
	return s
}

// over returns a copy of the expression that reads the copies of its columns instead of the columns themselves; nil if
// e is nil. columns maps each column to its copy.
func (e *Expr) over(columns map[*Column]*Column) *Expr {
	if e == nil {
		return nil
	}
	return &Expr{SQL: e.SQL, Uses: each(e.Uses, columns), Functions: e.Functions, Eval: e.Eval, bundle: e.bundle}
}
