package schema

import (
	"slices"
	"strings"

	"github.com/cloudspannerecosystem/memefish/ast"
	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/usererror"
)

// draft is the catalog that a statement is making. It shares with the old one
// every table that the statement does not touch; own makes one its own.
type draft struct {
	*Catalog
	old      *Catalog
	src      *source
	compiler Compiler
	change   *Change
	mine     map[*Table]bool
}

func (c *Catalog) draft(src *source, compiler Compiler) *draft {
	next := *c
	next.Schemas = append([]string(nil), c.Schemas...)
	next.Tables = append([]*Table(nil), c.Tables...)
	next.Options = Options{}
	for k, v := range c.Options {
		next.Options[k] = v
	}
	next.tables = make(map[string]*Table, len(c.tables)+1)
	for k, v := range c.tables {
		next.tables[k] = v
	}
	next.indexes = make(map[string]*Index, len(c.indexes)+1)
	for k, v := range c.indexes {
		next.indexes[k] = v
	}
	return &draft{Catalog: &next, old: c, src: src, compiler: compiler, change: &Change{}, mine: map[*Table]bool{}}
}

// newID gives out a TableID.
func (d *draft) newID() TableID {
	id := d.NextID
	d.NextID++
	return id
}

// own returns the draft's own copy of a table, which may be changed. Tables
// point at each other, so everything that t is connected with is copied with it.
func (d *draft) own(t *Table) *Table {
	if d.mine[t] {
		return t
	}
	copies := copyTables(connected(t))
	for i, old := range d.Tables {
		if c := copies[old]; c != nil {
			d.Tables[i] = c
			d.mine[c] = true
			d.enter(c)
		}
	}
	return copies[t]
}

// enter makes a table and its indexes known by their names.
func (d *draft) enter(t *Table) {
	d.tables[key(t.Schema, t.Name)] = t
	for _, i := range slices.Backward(t.Indexes) { // of two with one name the first is the one to find
		d.indexes[key(i.Schema, i.Name)] = i
	}
}

func key(schema, name string) string { return strings.ToLower(fullName(schema, name)) }

// connected are the tables that t can reach: its interleave tree, and through foreign keys the trees of others.
func connected(t *Table) []*Table {
	seen := map[*Table]bool{}
	todo := []*Table{t}
	var all []*Table
	for len(todo) > 0 {
		t := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if t == nil || seen[t] {
			continue
		}
		seen[t] = true
		all = append(all, t)
		todo = append(todo, t.Parent)
		todo = append(todo, t.Children...)
		for _, fk := range t.ForeignKeys {
			todo = append(todo, fk.Referenced)
		}
		for _, fk := range t.ReferencedBy {
			todo = append(todo, fk.Table)
		}
	}
	return all
}

// path splits a name into schema and name.
func (d *draft) path(kind string, p *ast.Path) (schema, name string, err error) {
	switch len(p.Idents) {
	case 1:
		return "", p.Idents[0].Name, nil
	case 2:
		return p.Idents[0].Name, p.Idents[1].Name, nil
	}
	var parts []string
	for _, i := range p.Idents {
		parts = append(parts, i.Name)
	}
	return "", "", usererror.InvalidSchemaName(kind, strings.Join(parts, "."))
}

// table finds a table that the statement names, as the draft's own.
func (d *draft) table(p *ast.Path) (*Table, error) {
	schema, name, err := d.path("Table", p)
	if err != nil {
		return nil, err
	}
	t := d.tables[key(schema, name)]
	if t == nil {
		return nil, usererror.SchemaObjectNotFound("Table", fullName(schema, name))
	}
	return d.own(t), nil
}

// index finds an index that the statement names, as the draft's own.
func (d *draft) index(p *ast.Path) (*Index, error) {
	schema, name, err := d.path("Index", p)
	if err != nil {
		return nil, err
	}
	i := d.indexes[key(schema, name)]
	if i == nil {
		return nil, usererror.SchemaObjectNotFound("Index", fullName(schema, name))
	}
	d.own(i.Table)
	return d.indexes[key(schema, name)], nil
}

// isMissing says whether err is what IF EXISTS forgives.
func isMissing(err error) bool { return usererror.CodeOf(err) == codes.NotFound }

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
