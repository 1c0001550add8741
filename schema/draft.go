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

// draft is the catalog that a statement is building. It shares with the old catalog all that the statement does not
// change. own makes a copy of a table that belongs to the draft.
//
// If the draft replaces a table, other tables that point at it must point at the new one. So the draft also copies the
// tables that refer to it, as children or by foreign keys. It does not copy the columns of these; both copies share
// them.
type draft struct {
	*Catalog
	old      *Catalog
	src      *syntax.Statement
	compiler Compiler
	change   *Change
	copies   map[*Table]bool // tables that belong to the draft, with their indexes and foreign keys
	mine     map[*Table]bool // the tables whose columns and expressions belong to it too
	renamed  bool            // whether a table was renamed

	protoDescriptors []byte // from the request, or nil

	at token.Pos // the start of the part of the statement that is being read; invalid before the first
}

func (c *Catalog) draft(src *syntax.Statement, compiler Compiler) *draft {
	next := *c
	return &draft{
		Catalog: &next, old: c, src: src, compiler: compiler, change: &Change{},
		copies: map[*Table]bool{}, mine: map[*Table]bool{}, at: token.InvalidPos,
	}
}

// reading records which part of the statement is being read. An error without a position of its own gets this one.
func (d *draft) reading(n ast.Node) { d.at = n.Pos() }

// placed adds the position in the statement's text to an error.
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

// own returns the draft's own copy of a table, which the draft may change.
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

// adopt makes a new table the draft's own.
func (d *draft) adopt(t *Table) {
	d.copies[t], d.mine[t] = true, true
	d.enter(t)
}

// copied replaces a table by a copy of it, with copies of its indexes and foreign keys.
func (d *draft) copied(t *Table) *Table {
	if d.copies[t] {
		return t
	}
	n := t.copyLinks()
	d.copies[n] = true
	d.tables = d.tables.With(n.ID, n)
	return n
}

// relink updates all tables that refer to t, directly or through others, so that they point at the draft's t and its
// columns.
func (d *draft) relink(t *Table) {
	list := d.dependents(t)
	for i, x := range list {
		list[i] = d.copied(x)
	}
	for _, x := range list {
		d.redirect(x)
	}
}

// dependents returns t and all tables that refer to it, directly or through others, because they are interleaved in it
// or have foreign keys to it.
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

// enter registers a table, its indexes and its constraints under their names and IDs. It replaces an older table with
// the same ID.
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

// leave undoes enter.
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

// leaveForeignKey removes a foreign key that its table no longer has from the catalog's names and references.
func (d *draft) leaveForeignKey(fk *ForeignKey) {
	d.unname(fk.Table, fk.Name)
	t := fk.Table
	if t.Parent != fk.Referenced && !slices.ContainsFunc(t.ForeignKeys, func(o *ForeignKey) bool { return o.Referenced == fk.Referenced }) {
		d.referrers = d.referrers.Without(referenceOf(fk.Referenced, t))
	}
}

// name registers a name in the schema of t for t, or for an index or constraint of it.
func (d *draft) name(t *Table, name string, kind nameKind) {
	d.names = d.names.With(key(t.Schema, name), named{t.ID, kind})
}

func (d *draft) unname(t *Table, name string) { d.names = d.names.Without(key(t.Schema, name)) }

func key(schema, name string) string { return strings.ToLower(fullName(schema, name)) }

// path splits a name into schema and name. The results do not refer to the text of the statement.
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

// nothing records that the statement has no effect.
func (d *draft) nothing() error {
	d.change.Nothing = true
	return nil
}
