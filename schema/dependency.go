package schema

import (
	"cmp"
	"reflect"
	"slices"
)

// Dependencies are the parts of a catalog on which a statement, a read or a mutation relies. HoldIn tells a
// transaction whether a later catalog still has these parts unchanged. Dependencies are immutable once they are
// complete.
//
// A read depends on the table's name and parent, on the columns, and on the index through which it reads. A write
// depends on all rules for a valid row of the table, and on everything that must be written with the row, such as
// records of change streams. A new column or index affects writes when its back-fill begins, because later writes
// must maintain it, but not when the back-fill ends. The exception is a UNIQUE index: when it is filled, it affects
// writes again (ValidatingUnique).
type Dependencies struct {
	whole  *Catalog // if set, the dependencies are the whole of this catalog
	reads  []readDependency
	writes []writeDependency
	named  []Object
	// If role is not "", the dependencies hold only as long as the role has the privileges in needs.
	role  string
	needs []Need
}

type readDependency struct {
	table   *Table
	index   *Index // the index through which rows are read; nil if the table itself is read
	columns []*Column
}

type writeDependency struct {
	catalog   *Catalog // the catalog that contains the table
	table     *Table
	removes   bool       // the write deletes rows or replaces values in them
	referrers []referrer // the tables that refer to this table; only set if removes is true
	sequences []Object   // the sequences from which defaults of the table take values
}

// DependOnAll returns dependencies on the whole of a catalog.
func DependOnAll(c *Catalog) *Dependencies { return &Dependencies{whole: c} }

// Read adds the dependency of a read of columns of table t. If x is not nil, the read goes through index x.
func (d *Dependencies) Read(t *Table, x *Index, columns []*Column) {
	key := t.Key
	if x != nil {
		key = slices.Concat(x.Key, x.Suffix)
	}
	all := slices.Clone(columns)
	for _, p := range key {
		all = append(all, p.Column)
	}
	d.reads = append(d.reads, readDependency{t, x, all})
}

// Name adds an object that a statement names: a view, a function or a sequence.
func (d *Dependencies) Name(o Object) { d.named = append(d.named, o) }

// Write adds the dependency of a write to table t of c. removes says that the write deletes rows or replaces values in
// them. Then d also depends on the tables that refer to t.
func (d *Dependencies) Write(c *Catalog, t *Table, removes bool) {
	for _, w := range d.writes {
		if w.table == t && (w.removes || !removes) {
			return
		}
	}
	if !removes {
		d.writes = append(d.writes, writeDependency{catalog: c, table: t, sequences: c.sequencesIn(t)})
		return
	}
	d.writes = append(d.writes, writeDependency{c, t, true, c.rulesOfReferrers(t), c.sequencesIn(t)})
	for _, child := range c.Children(t) {
		if child.Interleave == InterleaveCascade {
			d.Write(c, child, true)
		}
	}
	for _, fk := range c.ReferencedBy(t) {
		if fk.Cascade {
			d.Write(c, fk.Table, true)
		}
	}
}

// DependOnAccess returns dependencies that hold as long as a role has the privileges in needs.
func DependOnAccess(role string, needs []Need) *Dependencies {
	return &Dependencies{role: role, needs: needs}
}

// HoldIn reports whether everything that d depends on is the same in c as in the catalog for which d was made.
func (d *Dependencies) HoldIn(c *Catalog) bool {
	if d.whole != nil {
		return d.whole == c
	}
	for i := range d.reads {
		if !d.reads[i].holdsIn(c) {
			return false
		}
	}
	for i := range d.writes {
		if !d.writes[i].holdsIn(c) {
			return false
		}
	}
	return sameObjects(d.named, c) && (d.role == "" || c.CheckAccess(d.role, d.needs) == nil)
}

// sameObjects reports whether c has all objects in list, unchanged.
func sameObjects(list []Object, c *Catalog) bool {
	return !slices.ContainsFunc(list, func(o Object) bool {
		now, _ := c.objects.Get(o.entity().ID)
		return now != o && !reflect.DeepEqual(now, o)
	})
}

// sequencesIn lists the sequences from which defaults of a table take values.
func (c *Catalog) sequencesIn(t *Table) (list []Object) {
	for _, col := range t.Columns {
		for _, s := range c.sequencesOf(col) {
			list = append(list, s)
		}
	}
	return list
}

// find returns the table with t's ID and name in catalog c. It returns nil if c has no such table, or if the table
// has another name there.
func (t *Table) find(c *Catalog) *Table {
	if now := c.Table(t.FullName()); now != nil && now.ID == t.ID {
		return now
	}
	return nil
}

func (r *readDependency) holdsIn(c *Catalog) bool {
	now := r.table.find(c)
	if now == r.table {
		return true
	}
	if now == nil || idOf(now.Parent) != idOf(r.table.Parent) {
		return false
	}
	if r.index != nil && !sameToReaders(r.index, now) {
		return false
	}
	return !slices.ContainsFunc(r.columns, func(col *Column) bool { return !col.sameToReaders(now) })
}

// sameToReaders reports whether index x has entries with the same contents in a later version of its table, which is
// the parameter now. It returns false if reads may not use the index in that version.
func sameToReaders(x *Index, now *Table) bool {
	at := slices.IndexFunc(now.Indexes, func(o *Index) bool { return o.ID == x.ID })
	if at < 0 || now.Indexes[at].State != IndexReadWrite {
		return false
	}
	was, is := storeIndex(x), storeIndex(now.Indexes[at])
	is.Columnar, is.Locality = was.Columnar, was.Locality // these options do not change the entries
	return reflect.DeepEqual(was, is)
}

// sameToReaders reports whether a later version of the column's table, which is the parameter now, has the column with
// the same name and values, and whether reads may use the column there. Rules that only writes must obey, such as the
// length, the DEFAULT or a new NOT NULL, do not count.
func (c *Column) sameToReaders(now *Table) bool {
	at := slices.IndexFunc(now.Columns, func(o *Column) bool { return o.ID == c.ID })
	if at < 0 {
		return false
	}
	o := now.Columns[at]
	if o.State != ColumnReadWrite || o.Name != c.Name || !o.Type.Equal(c.Type) || c.NotNull && !o.NotNull {
		return false
	}
	return c.computedFrom() == o.computedFrom()
}

func (w *writeDependency) holdsIn(c *Catalog) bool {
	now := w.table.find(c)
	if now == nil || now != w.table && !reflect.DeepEqual(rulesOf(w.table), rulesOf(now)) {
		return false
	}
	if !w.catalog.sameWatchers(now, c) || !sameObjects(w.sequences, c) {
		return false
	}
	if now.placementKey() != nil && !slices.Equal(w.catalog.Placements(), c.Placements()) {
		return false
	}
	return !w.removes || reflect.DeepEqual(w.referrers, c.rulesOfReferrers(now))
}

// rules holds all rules for a valid row of a table, and says what must be written with a row, such as index entries.
type rules struct {
	stored   storedTable
	computed []origin // the origins of the expressions of columns and constraints
}

func rulesOf(t *Table) rules {
	s, computed := storeTable(t), []origin(nil)
	s.NextColumn, s.RowDeletion, s.Columnar, s.Locality = 0, nil, "", "" // writes do not depend on these fields
	s.Synonym = ""
	for i, c := range t.Columns {
		if c.Becoming != nil { // writes obey the new definition already
			s.Columns[i], c = storeColumn(c.Becoming), c.Becoming
		}
		computed = append(computed, c.Default.computedFrom(), c.Generated.computedFrom())
		s.Columns[i].WriteOnly, s.Columns[i].Locality = false, ""
	}
	for i, x := range t.Indexes {
		// Until all entries of a UNIQUE index exist, a write cannot tell whether another row has the same key. So the
		// rules say whether the index is being filled. When that ends, the rules change, and transactions that wrote
		// before and have not committed are aborted (see ValidatingUnique).
		s.Indexes[i].WriteOnly = x.ChecksUnique() && x.State == IndexWriteOnly
		s.Indexes[i].ValidateUnique, s.Indexes[i].Columnar, s.Indexes[i].Locality = false, "", ""
	}
	for _, ck := range t.Checks {
		ck = cmp.Or(ck.Becoming, ck)
		computed = append(computed, ck.Expr.computedFrom())
	}
	return rules{s, computed}
}

// referrer is a table that refers to another table, as its child or by a foreign key. A transaction that deletes or
// changes rows of the other table must check whether rows of the referrer refer to them.
type referrer struct {
	Table      TableID
	Interleave Interleave
	ForeignKey storedForeignKey
}

func (c *Catalog) rulesOfReferrers(t *Table) (list []referrer) {
	for _, child := range c.Children(t) {
		if child.Interleave != InterleaveIn {
			list = append(list, referrer{Table: child.ID, Interleave: child.Interleave})
		}
	}
	for _, fk := range c.ReferencedBy(t) {
		list = append(list, referrer{Table: fk.Table.ID, ForeignKey: storeForeignKey(fk)})
	}
	return list
}

func idOf(t *Table) TableID {
	if t == nil {
		return 0
	}
	return t.ID
}
