package schema

import (
	"slices"
	"strings"

	"github.com/cloudspannerecosystem/memefish/ast"

	"github.com/crowfoot-db/crowfoot/usererror"
)

func (d *draft) createIndex(s *ast.CreateIndex) error {
	schema, name, err := d.path("Index", s.Name)
	if err != nil {
		return err
	}
	if s.IfNotExists && d.Index(fullName(schema, name)) != nil {
		return d.nothing()
	}
	if schema, err = d.findSchema(schema); err != nil {
		return err
	}
	if err := d.checkIndexName(schema, name); err != nil {
		return err
	}
	t, err := d.table(s.TableName)
	if err != nil {
		return err
	}
	i := &Index{Schema: schema, Name: name, Table: t, Unique: s.Unique, NullFiltered: s.NullFiltered}
	if err := d.defineIndex(i, s); err != nil {
		return err
	}
	return d.addIndex(i)
}

func (d *draft) checkIndexName(schema, name string) error {
	if err := checkName("Index", name); err != nil {
		return err
	}
	if strings.EqualFold(name, "PRIMARY_KEY") {
		return usererror.ReservedIndexName()
	}
	return d.checkFree(schema, name)
}

// defineIndex sets the properties of a new index from the clauses of CREATE INDEX.
func (d *draft) defineIndex(i *Index, s *ast.CreateIndex) error {
	if !strings.EqualFold(i.Schema, i.Table.Schema) {
		return usererror.IndexSchema(i.FullName(), i.Table.FullName())
	}
	if err := d.setStorageOptions("Index", i.FullName(), s.Options, &i.ColumnarPolicy, &i.LocalityGroup); err != nil {
		return err
	}
	if len(s.Keys) == 0 {
		return usererror.IndexWithoutKey(i.FullName())
	}
	for _, k := range s.Keys {
		d.reading(k)
		if err := i.addKey(k.Name.Name, k.Dir == ast.DirectionDesc); err != nil {
			return err
		}
	}
	if err := i.complete(); err != nil {
		return err
	}
	if s.Storing != nil {
		for _, c := range s.Storing.Columns {
			d.reading(c)
			if err := i.addStored(c.Name); err != nil {
				return err
			}
		}
	}
	if err := i.setFilter(s.Where); err != nil {
		return err
	}
	if s.InterleaveIn != nil {
		return d.interleaveIndex(i, fullName(d.src.ParentSchema, s.InterleaveIn.TableName.Name))
	}
	return nil
}

func (i *Index) addKey(name string, desc bool) error {
	c := i.Table.Column(name)
	if c == nil {
		return usererror.IndexColumnNotFound(i.FullName(), name)
	}
	if !isKeyable(c.Type) {
		return usererror.IndexColumnType(i.FullName(), c.Name, shortType(c.Type))
	}
	if i.keys(c) {
		return usererror.IndexColumnTwice(i.FullName(), c.Name)
	}
	i.Key = append(i.Key, KeyPart{Column: c, Desc: desc})
	return nil
}

// complete sets i.Suffix to the columns of the table's primary key that are not in the index's key. With these columns
// the stored keys of all entries are distinct.
func (i *Index) complete() error {
	for _, p := range i.Table.Key {
		if !i.keys(p.Column) {
			i.Suffix = append(i.Suffix, p)
		}
	}
	if parts := len(i.Key) + len(i.Suffix); parts > MaxKeyParts {
		return usererror.TooManyKeyParts("Index", i.FullName(), parts, MaxKeyParts)
	}
	return nil
}

func (i *Index) addStored(name string) error {
	c := i.Table.Column(name)
	switch {
	case c == nil:
		return usererror.IndexColumnNotFound(i.FullName(), name)
	case i.keys(c):
		return usererror.IndexStoresKey(i.FullName(), c.Name)
	case c.KeyOrdinal >= 0:
		return usererror.IndexStoresTableKey(i.FullName(), c.Name, i.Table.FullName())
	case slices.Contains(i.Storing, c):
		return usererror.IndexColumnTwice(i.FullName(), c.Name)
	}
	i.Storing = append(i.Storing, c)
	return nil
}

// setFilter sets NotNullColumns from WHERE a IS NOT NULL AND b IS NOT NULL, and from NULL_FILTERED.
func (i *Index) setFilter(where *ast.Where) error {
	if where != nil {
		if err := i.addFilters(where.Expr); err != nil {
			return err
		}
	}
	if i.NullFiltered {
		for _, p := range i.Key {
			if !slices.Contains(i.NotNullColumns, p.Column) {
				i.NotNullColumns = append(i.NotNullColumns, p.Column)
			}
		}
	}
	return nil
}

func (i *Index) addFilters(e ast.Expr) error {
	var terms []ast.Expr
	for {
		and, ok := e.(*ast.BinaryExpr)
		if !ok || and.Op != ast.OpAnd {
			break
		}
		terms = append(terms, and.Right)
		e = and.Left
	}
	terms = append(terms, e)
	slices.Reverse(terms)
	for _, term := range terms {
		is, ok := term.(*ast.IsNullExpr)
		if !ok || !is.Not {
			return usererror.IndexWhere(i.FullName())
		}
		ident, ok := is.Left.(*ast.Ident)
		if !ok {
			return usererror.IndexWhere(i.FullName())
		}
		c := i.Table.Column(ident.Name)
		if c == nil {
			return usererror.IndexColumnNotFound(i.FullName(), ident.Name)
		}
		if !slices.Contains(i.NotNullColumns, c) {
			i.NotNullColumns = append(i.NotNullColumns, c)
		}
	}
	return nil
}

// interleaveIndex interleaves the index in the table called name, which must be an ancestor of the index's table.
func (d *draft) interleaveIndex(i *Index, name string) error {
	parent := d.Table(name)
	if parent == nil {
		return usererror.IndexParentNotFound(i.FullName(), name)
	}
	path := i.Table.Path()
	if !slices.Contains(path[:len(path)-1], parent) {
		return usererror.IndexParentNoAncestor(i.FullName(), i.Table.FullName(), parent.FullName())
	}
	if err := checkParentKey("Index "+i.FullName(), i.Key, parent, i.NullFiltered); err != nil {
		return err
	}
	i.Parent = parent
	return nil
}

// addIndex gives an ID to the index i and adds i to its table and to the catalog. The caller has set the other
// properties of i.
func (d *draft) addIndex(i *Index) error {
	if d.indexes.Len() >= MaxIndexes {
		return usererror.TooManyIndexes(i.FullName(), MaxIndexes)
	}
	if len(i.Table.Indexes) >= MaxIndexesPerTable {
		return usererror.TooManyTableIndexes(i.FullName(), i.Table.FullName(), MaxIndexesPerTable)
	}
	i.ID = d.newID()
	i.Table.Indexes = append(i.Table.Indexes, i)
	d.enterIndex(i)
	d.change.Indexes = append(d.change.Indexes, i)
	return nil
}

func (d *draft) dropIndex(s *ast.DropIndex) error {
	i, err := d.index(s.Name)
	if err != nil {
		if s.IfExists && isMissing(err) {
			return d.nothing()
		}
		return err
	}
	if i.Managed {
		return usererror.DropManagedIndex(i.FullName(), d.usersOf(i))
	}
	if err := checkUnnamed("INDEX `"+i.FullName()+"`", d.dependentsOf(i.Table.ID, usesIndex(i.FullName()))); err != nil {
		return err
	}
	d.removeIndex(i)
	return nil
}

func (d *draft) removeIndex(i *Index) {
	i.Table.Indexes = remove(i.Table.Indexes, i)
	d.leaveIndex(i)
	d.change.DroppedIndexes = append(d.change.DroppedIndexes, d.old.IndexByID(i.ID))
}

func (d *draft) alterIndex(s *ast.AlterIndex) error {
	i, err := d.index(s.Name)
	if err != nil {
		return err
	}
	if i.Managed {
		return usererror.DropManagedIndex(i.FullName(), d.usersOf(i))
	}
	switch a := s.IndexAlteration.(type) {
	case *ast.AddStoredColumn:
		if c := i.Table.Column(a.Name.Name); c != nil && slices.Contains(i.Storing, c) {
			return usererror.IndexColumnStored(i.FullName(), c.Name)
		}
		before := *i
		before.Storing = slices.Clone(i.Storing)
		if err := i.addStored(a.Name.Name); err != nil {
			return err
		}
		d.rebuildIndex(i, &before)
		return nil
	case *ast.DropStoredColumn:
		at := slices.IndexFunc(i.Storing, func(c *Column) bool { return sameName(c.Name, a.Name.Name) })
		if at < 0 {
			return usererror.IndexColumnNotStored(i.FullName(), a.Name.Name)
		}
		i.Storing = slices.Delete(i.Storing, at, at+1) // existing entries keep the column's value, and reads ignore it
		return nil
	}
	return usererror.DDLUnimplemented("This form of ALTER INDEX")
}

// setIndexOptions runs ALTER INDEX i SET OPTIONS (...). Package syntax has rewritten the statement as ALTER VECTOR
// INDEX, because the parser accepts SET OPTIONS only there.
func (d *draft) setIndexOptions(s *ast.AlterVectorIndex) error {
	options, ok := s.Alteration.(*ast.VectorIndexSetOptions)
	if !ok {
		return usererror.DDLUnimplemented("This form of ALTER INDEX")
	}
	i, err := d.index(s.Name)
	if err != nil {
		return err
	}
	if i.Managed {
		return usererror.DropManagedIndex(i.FullName(), d.usersOf(i))
	}
	return d.setStorageOptions("Index", i.FullName(), options.Options, &i.ColumnarPolicy, &i.LocalityGroup)
}

// rebuildIndex gives the index a new ID, and so a new key space that must be filled, because its entries will contain
// other columns. before is the index as it was. A read at a timestamp before the change still uses the old key space,
// because it takes the index, with the old ID, from the catalog of that timestamp.
func (d *draft) rebuildIndex(i, before *Index) {
	d.leaveIndex(i)
	i.ID = d.newID()
	d.enterIndex(i)
	d.change.Replaced = append(d.change.Replaced, before)
	d.change.DroppedIndexes = append(d.change.DroppedIndexes, d.old.IndexByID(before.ID))
	d.change.Indexes = append(d.change.Indexes, i)
}
