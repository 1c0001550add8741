package schema

import (
	"cmp"
	"reflect"
	"slices"
)

// Dependencies are the parts of a catalog on which a statement, a read or a mutation relies. HoldIn tells a transaction
// whether a later schema change affects them. Dependencies are immutable once they are complete.
//
// A read depends on the table's name and place in its interleave tree, on the columns, and on the index through which
// it reads. A write depends on all rules for a valid row of the table, and on all that is written with it, such as
// change streams that watch the table. The back-fill of a column or an index, or its end, affects neither. The
// exception is a UNIQUE index that was filled.
type Dependencies struct {
	whole  *Catalog // if set, the dependencies are all of this catalog
	reads  []readDependency
	writes []writeDependency
	named  []Object
	// role must have the privileges in needs; "" has all privileges.
	role  string
	needs []Need
}

type readDependency struct {
	table   *Table
	index   *Index // the index through which rows are read; nil: the table itself
	columns []*Column
}

type writeDependency struct {
	catalog   *Catalog // the catalog of table
	table     *Table
	removes   bool
	referrers []referrer // only if removes is true
	sequences []Object   // the sequences from which defaults of the table take values
}

// DependOnAll returns dependencies on all of a catalog.
func DependOnAll(c *Catalog) *Dependencies { return &Dependencies{whole: c} }

// Read adds columns that are read from a table, or through one of its indexes if x is not nil.
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

// Name adds an object that a statement names: a view, a function, a sequence.
func (d *Dependencies) Name(o Object) { d.named = append(d.named, o) }

// Write adds a table of c whose rows are written. removes says that rows are deleted or that values in them are
// replaced. Then the tables that refer to it count as well.
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

// DependOnAccess returns the dependencies of a role on the privileges that it needs.
func DependOnAccess(role string, needs []Need) *Dependencies {
	return &Dependencies{role: role, needs: needs}
}

// HoldIn reports whether all that d depends on is in c as it was in the catalog for which d was made.
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

// sameObjects reports whether c has the same versions of all objects in list.
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

// find returns the table in another catalog. It returns nil if the table is missing there or has another name.
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

// sameToReaders reports whether the entries of an index hold the same in now as in its own table.
func sameToReaders(x *Index, now *Table) bool {
	at := slices.IndexFunc(now.Indexes, func(o *Index) bool { return o.ID == x.ID })
	if at < 0 || now.Indexes[at].State != IndexReadWrite {
		return false
	}
	was, is := storeIndex(x), storeIndex(now.Indexes[at])
	is.Columnar, is.Locality = was.Columnar, was.Locality // these options do not change the entries
	return reflect.DeepEqual(was, is)
}

// sameToReaders reports whether the column has the same values in now as in its own table. Rules for writes, such as
// the length or the default, do not matter to readers, nor does a new NOT NULL.
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

// rules holds everything that a row of a table must obey and that must be written with it.
type rules struct {
	stored   storedTable
	computed []origin // of the expressions of columns and constraints
}

func rulesOf(t *Table) rules {
	s, computed := storeTable(t), []origin(nil)
	s.NextColumn, s.RowDeletion, s.Columnar, s.Locality = 0, nil, "", "" // these do not matter to writes
	s.Synonym = ""
	for i, c := range t.Columns {
		if c.Becoming != nil { // writes obey it already
			s.Columns[i], c = storeColumn(c.Becoming), c.Becoming
		}
		computed = append(computed, c.Default.computedFrom(), c.Generated.computedFrom())
		s.Columns[i].WriteOnly, s.Columns[i].Locality = false, ""
	}
	for i, x := range t.Indexes {
		// A write can tell whether a key of a UNIQUE index is taken only once all entries exist: see ValidatingUnique.
		s.Indexes[i].WriteOnly = x.ChecksUnique() && x.State == IndexWriteOnly
		s.Indexes[i].ValidateUnique, s.Indexes[i].Columnar, s.Indexes[i].Locality = false, "", ""
	}
	for _, ck := range t.Checks {
		ck = cmp.Or(ck.Becoming, ck)
		computed = append(computed, ck.Expr.computedFrom())
	}
	return rules{s, computed}
}

// referrer is a table that must be checked when rows of another table are deleted or changed.
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
