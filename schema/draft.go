package schema

import (
	"errors"
	"slices"
	"strings"

	"github.com/cloudspannerecosystem/memefish/ast"
	"github.com/cloudspannerecosystem/memefish/token"
	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/usererror"
)

// draft is the catalog that a statement is making. It shares with the old one everything that the statement does not touch: own makes a
// table the draft's own.
//
// A table that is replaced must be replaced wherever tables point at it. So the tables that refer to it, as children or by
// foreign keys, are copied too, but not their columns, which both copies share.
type draft struct {
	*Catalog
	old      *Catalog
	src      *source
	compiler Compiler
	change   *Change
	copies   map[*Table]bool // tables that belong to the draft, with their indexes and foreign keys
	mine     map[*Table]bool // those whose columns and expressions belong to it too
	renamed  bool            // a table has got another name

	protoDescriptors []byte // of the request, or nil

	at token.Pos // of the part of the statement that is being read; invalid before the first
}

func (c *Catalog) draft(src *source, compiler Compiler) *draft {
	next := *c
	return &draft{
		Catalog: &next, old: c, src: src, compiler: compiler, change: &Change{},
		copies: map[*Table]bool{}, mine: map[*Table]bool{}, at: token.InvalidPos,
	}
}

// reading notes which part of the statement is being read: an error is there, if it does not know better.
func (d *draft) reading(n ast.Node) { d.at = n.Pos() }

// placed gives an error of the statement its place in the text.
func (d *draft) placed(err error) error {
	var user *usererror.Error
	if d.at.Invalid() || !errors.As(err, &user) {
		return err
	}
	return user.In(d.src.text, d.src.place(int(d.at)))
}

// newID gives out a TableID.
func (d *draft) newID() TableID {
	id := d.NextID
	d.NextID++
	return id
}

// own returns the draft's own copy of a table, which may be changed.
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

// copied puts a copy of a table, with its indexes and foreign keys, in the table's place.
func (d *draft) copied(t *Table) *Table {
	if d.copies[t] {
		return t
	}
	n := t.copyLinks()
	d.copies[n] = true
	d.tables = d.tables.with(n.ID, n)
	return n
}

// relink makes all tables that can reach t point at the draft's t and its columns.
func (d *draft) relink(t *Table) {
	list := d.dependents(t)
	for i, x := range list {
		list[i] = d.copied(x)
	}
	for _, x := range list {
		d.redirect(x)
	}
}

// dependents are t and the tables that can reach it: they are interleaved in it or have foreign keys to it, or in or to such a table.
func (c *Catalog) dependents(t *Table) []*Table {
	seen := map[TableID]bool{t.ID: true}
	list := []*Table{t}
	for at := 0; at < len(list); at++ {
		for x := range c.referrersOf(list[at]) {
			if !seen[x.ID] {
				seen[x.ID] = true
				list = append(list, x)
			}
		}
	}
	return list
}

// enter makes a table, its indexes and constraints known by their names and numbers, in the place of an older table with its number.
func (d *draft) enter(t *Table) {
	d.tables = d.tables.with(t.ID, t)
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
		d.referrers = d.referrers.with(referenceOf(t.Parent, t), struct{}{})
	}
}

// leave undoes enter.
func (d *draft) leave(t *Table) {
	d.tables = d.tables.without(t.ID)
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
		d.referrers = d.referrers.without(referenceOf(fk.Referenced, t))
	}
	if t.Parent != nil {
		d.referrers = d.referrers.without(referenceOf(t.Parent, t))
	}
}

func (d *draft) enterIndex(i *Index) {
	d.indexes = d.indexes.with(i.ID, i.Table.ID)
	d.name(i.Table, i.Name, nameOfIndex)
}

func (d *draft) leaveIndex(i *Index) {
	d.indexes = d.indexes.without(i.ID)
	d.unname(i.Table, i.Name)
}

func (d *draft) enterForeignKey(fk *ForeignKey) {
	d.name(fk.Table, fk.Name, nameOfConstraint)
	d.referrers = d.referrers.with(referenceOf(fk.Referenced, fk.Table), struct{}{})
}

// leaveForeignKey is for a foreign key that its table does not have any more.
func (d *draft) leaveForeignKey(fk *ForeignKey) {
	d.unname(fk.Table, fk.Name)
	t := fk.Table
	if t.Parent != fk.Referenced && !slices.ContainsFunc(t.ForeignKeys, func(o *ForeignKey) bool { return o.Referenced == fk.Referenced }) {
		d.referrers = d.referrers.without(referenceOf(fk.Referenced, t))
	}
}

// name gives a name in the schema of t to t, or to something of it.
func (d *draft) name(t *Table, name string, kind nameKind) {
	d.names = d.names.with(key(t.Schema, name), named{t.ID, kind})
}

func (d *draft) unname(t *Table, name string) { d.names = d.names.without(key(t.Schema, name)) }

func key(schema, name string) string { return strings.ToLower(fullName(schema, name)) }

// path splits a name into schema and name, which do not hold on to the text of the statement.
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

// find finds a table that the statement names.
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

// table finds a table that the statement names, as the draft's own.
func (d *draft) table(p *ast.Path) (*Table, error) {
	t, err := d.find(p)
	if err != nil {
		return nil, err
	}
	return d.own(t), nil
}

// index finds an index that the statement names, as the draft's own.
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

// isMissing says whether err is what IF EXISTS forgives.
func isMissing(err error) bool { return usererror.CodeOf(err) == codes.NotFound }

// isPrecondition says whether err is FAILED_PRECONDITION.
func isPrecondition(err error) bool { return usererror.CodeOf(err) == codes.FailedPrecondition }

// column finds a column that the statement names.
func (t *Table) column(name *ast.Ident) (*Column, error) {
	if c := t.Column(name.Name); c != nil {
		return c, nil
	}
	return nil, usererror.DDLColumnNotFound(t.FullName(), name.Name)
}

// nothing makes the statement one without effect.
func (d *draft) nothing() error {
	d.change.Nothing = true
	return nil
}
