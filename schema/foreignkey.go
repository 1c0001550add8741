package schema

import (
	"slices"
	"strings"

	"github.com/cloudspannerecosystem/memefish/ast"

	"github.com/crowfoot-db/crowfoot/usererror"
)

// addForeignKey adds a FOREIGN KEY constraint and the indexes that it needs.
func (d *draft) addForeignKey(t *Table, name string, s *ast.ForeignKey) error {
	referenced, err := d.find(s.ReferenceTable)
	if err != nil {
		return err
	}
	fk := &ForeignKey{
		Name: name, Table: t, Referenced: referenced,
		Cascade: s.OnDelete == ast.OnDeleteCascade, NotEnforced: s.Enforcement == ast.NotEnforced,
	}
	if name == "" {
		base := "FK_" + t.Name + "_" + referenced.Name
		fk.Name, fk.NameGenerated = d.generateName(t.Schema, base, base), true
	} else if err := d.checkConstraintName("Foreign Key", t, name); err != nil {
		return err
	}
	if fk.Columns, err = fk.columns(t, s.Columns); err != nil {
		return err
	}
	if fk.ReferencedColumns, err = fk.columns(referenced, s.ReferenceColumns); err != nil {
		return err
	}
	if err := fk.checkTypes(); err != nil {
		return err
	}
	if err := d.backForeignKey(fk); err != nil {
		return err
	}
	t.ForeignKeys = append(t.ForeignKeys, fk)
	d.enterForeignKey(fk)
	if !fk.NotEnforced {
		d.change.Validations = append(d.change.Validations, Validation{Kind: ValidateForeignKey, Table: t, ForeignKey: fk})
	}
	return nil
}

func (fk *ForeignKey) columns(t *Table, names []*ast.Ident) ([]*Column, error) {
	var columns []*Column
	for _, n := range names {
		c := t.Column(n.Name)
		switch {
		case c == nil:
			return nil, usererror.ForeignKeyColumnNotFound(n.Name, t.FullName(), fk.Name)
		case slices.Contains(columns, c):
			return nil, usererror.ForeignKeyColumnTwice(c.Name, t.FullName(), fk.Name)
		case !isKeyable(c.Type):
			return nil, usererror.ForeignKeyColumnType(c.Name, t.FullName(), fk.Name)
		case c.AllowCommitTimestamp:
			return nil, usererror.ForeignKeyCommitTimestamp(c.Name, t.FullName(), fk.Name)
		}
		columns = append(columns, c)
	}
	return columns, nil
}

func (fk *ForeignKey) checkTypes() error {
	t, r := fk.Table.FullName(), fk.Referenced.FullName()
	if len(fk.Columns) != len(fk.ReferencedColumns) {
		return usererror.ForeignKeyColumnCount(t, r, fk.Name)
	}
	for i, c := range fk.Columns {
		if to := fk.ReferencedColumns[i]; !c.Type.Equal(to.Type) {
			return usererror.ForeignKeyTypeMismatch(c.Name, t, to.Name, r, fk.Name)
		}
	}
	return nil
}

// backForeignKey sets fk.Index, by which the server finds referencing rows, and fk.ReferencedIndex, by which it finds
// referenced rows. If there is no such index, backForeignKey makes it. Where the server can find the rows by a primary
// key, backForeignKey sets no index.
func (d *draft) backForeignKey(fk *ForeignKey) (err error) {
	if fk.NotEnforced {
		return nil
	}
	key := fk.Table.Key
	if len(key) < len(fk.Columns) || !sameColumns(key[:len(fk.Columns)], fk.Columns) {
		if fk.Index = fk.Table.managedIndex(fk.Columns, false); fk.Index == nil {
			if fk.Index, err = d.makeManagedIndex(fk.Table, fk.Columns, "_N"); err != nil {
				return err
			}
		}
	}
	if sameColumns(fk.Referenced.Key, fk.ReferencedColumns) {
		return nil
	}
	if fk.ReferencedIndex = fk.Referenced.managedIndex(fk.ReferencedColumns, true); fk.ReferencedIndex == nil {
		fk.Referenced = d.own(fk.Referenced)
		fk.ReferencedColumns = fk.Referenced.counterparts(fk.ReferencedColumns)
		fk.ReferencedIndex, err = d.makeManagedIndex(fk.Referenced, fk.ReferencedColumns, "_U")
	}
	return err
}

// sameColumns reports whether the key consists of exactly these columns, in any order.
func sameColumns(key []KeyPart, columns []*Column) bool {
	if len(key) != len(columns) {
		return false
	}
	for _, p := range key {
		if !slices.Contains(columns, p.Column) {
			return false
		}
	}
	return true
}

// managedIndex returns an index of t that was made for a foreign key and has the given columns as its key, or nil.
// Several foreign keys can share such an index.
func (t *Table) managedIndex(columns []*Column, unique bool) *Index {
	for _, i := range t.Indexes {
		if i.Managed && i.Unique == unique && slices.EqualFunc(i.Key, columns, func(p KeyPart, c *Column) bool { return p.Column == c }) {
			return i
		}
	}
	return nil
}

// makeManagedIndex makes an index of table t for a foreign key; managedIndex can find it later. The caller may change t,
// because it is the draft's own copy. code is a part of the index's name: "_U" for a unique index, "_N" for any other.
func (d *draft) makeManagedIndex(t *Table, columns []*Column, code string) (*Index, error) {
	base := "IDX_" + t.Name
	for _, c := range columns {
		base += "_" + c.Name
	}
	name := cut(base, code+"_"+fingerprint(base+code))
	if d.checkFree(t.Schema, name) != nil { // an index of a table that was once called like t has this name
		name = d.generateName(t.Schema, base+code, base+code)
	}
	i := &Index{Schema: t.Schema, Name: name, Table: t, Unique: code == "_U", NullFiltered: true, Managed: true}
	for _, c := range columns {
		if err := i.addKey(c.Name, false); err != nil {
			return nil, err
		}
	}
	if err := i.complete(); err != nil {
		return nil, err
	}
	if err := i.setFilter(nil); err != nil {
		return nil, err
	}
	return i, d.addIndex(i)
}

// dropForeignKey removes a foreign key, and its indexes if no other foreign key uses them.
func (d *draft) dropForeignKey(fk *ForeignKey) {
	fk.Table.ForeignKeys = remove(fk.Table.ForeignKeys, fk)
	d.leaveForeignKey(fk)
	for _, i := range []*Index{fk.Index, fk.ReferencedIndex} {
		if i != nil && d.usersOf(i) == "" {
			d.removeIndex(d.own(i.Table).indexByID(i.ID))
		}
	}
}

// usersOf returns the names of the foreign keys that use a managed index.
func (d *draft) usersOf(i *Index) string {
	uses := func(fk *ForeignKey) bool { return fk.Index == i || fk.ReferencedIndex == i }
	return d.foreignKeyNames(i.Table, uses)
}

// foreignKeysWith returns the names of the foreign keys from or to t that use column c, separated by commas.
func (d *draft) foreignKeysWith(t *Table, c *Column) string {
	has := func(fk *ForeignKey) bool {
		return slices.Contains(fk.Columns, c) || slices.Contains(fk.ReferencedColumns, c)
	}
	return d.foreignKeyNames(t, has)
}

func (d *draft) foreignKeyNames(t *Table, which func(*ForeignKey) bool) string {
	var names []string
	for _, fk := range slices.Concat(t.ForeignKeys, d.ReferencedBy(t)) {
		if name := "`" + fk.Name + "`"; which(fk) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}
