package schema

import (
	"cmp"
	"reflect"
	"slices"
)

// Dependencies are the parts of a catalog that a statement, a read or a
// mutation counts on, so that a transaction that ran it can tell whether a later
// schema change concerns it: HoldIn. They are immutable once they are complete.
//
// What is read depends on the table's name and place in its interleave tree, on
// the columns and on the index that it is read through. What is written depends
// on everything that says what a valid row of the table is and what must be
// written with it, the change streams that watch it among it. That a column or an index is being back-filled or has become
// complete changes neither, but for a UNIQUE index that has been filled.
type Dependencies struct {
	whole  *Catalog // everything, if it is set
	reads  []readDependency
	writes []writeDependency
	named  []Object
	// role must be allowed to do what needs says; "" may do all.
	role  string
	needs []Need
}

type readDependency struct {
	table   *Table
	index   *Index // that is read; nil: the table itself
	columns []*Column
}

type writeDependency struct {
	catalog   *Catalog // of table
	table     *Table
	removes   bool
	referrers []referrer // if removes
	sequences []Object   // that defaults of the table take values of
}

// DependOnAll are the dependencies of what counts on all of a catalog.
func DependOnAll(c *Catalog) *Dependencies { return &Dependencies{whole: c} }

// Read adds columns of a table as they are read from the table, or through one of its indexes if x is not nil.
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
// replaced, not only new rows added: then the tables that refer to it count too.
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

// DependOnAccess are the dependencies of a role on what it needs.
func DependOnAccess(role string, needs []Need) *Dependencies {
	return &Dependencies{role: role, needs: needs}
}

// HoldIn reports whether all that d names is in c as it was in the catalog that d was made for.
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

// sameObjects says whether objects are in c as they are.
func sameObjects(list []Object, c *Catalog) bool {
	return !slices.ContainsFunc(list, func(o Object) bool {
		now, _ := c.objects.get(o.entity().ID)
		return now != o && !reflect.DeepEqual(now, o)
	})
}

// sequencesIn are the sequences that defaults of a table take values of.
func (c *Catalog) sequencesIn(t *Table) (list []Object) {
	for _, col := range t.Columns {
		for _, s := range c.sequencesOf(col) {
			list = append(list, s)
		}
	}
	return list
}

// find is the table in another catalog; nil if it has another name there, or is none.
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

// sameToReaders reports whether the entries of an index are what they were.
func sameToReaders(x *Index, now *Table) bool {
	at := slices.IndexFunc(now.Indexes, func(o *Index) bool { return o.ID == x.ID })
	if at < 0 || now.Indexes[at].State != IndexReadWrite {
		return false
	}
	was, is := storeIndex(x), storeIndex(now.Indexes[at])
	is.Columnar, is.Locality = was.Columnar, was.Locality // another copy, another storage, but the same entries
	return reflect.DeepEqual(was, is)
}

// sameToReaders reports whether the column has the values in now that it had in its own table. What may be written, its length
// and its default among it, is of no interest to those who read; nor that it can no longer be NULL.
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

// rules are everything that a row of a table has to obey and that must be written with it.
type rules struct {
	stored   storedTable
	computed []origin // of the expressions of columns and constraints
}

func rulesOf(t *Table) rules {
	s, computed := storeTable(t), []origin(nil)
	s.NextColumn, s.RowDeletion, s.Columnar, s.Locality = 0, nil, "", "" // rules for later columns, for when rows go, and for copies of them
	s.Synonym = ""
	for i, c := range t.Columns {
		if c.Becoming != nil { // writes obey it already
			s.Columns[i], c = storeColumn(c.Becoming), c.Becoming
		}
		computed = append(computed, c.Default.computedFrom(), c.Generated.computedFrom())
		s.Columns[i].WriteOnly, s.Columns[i].Locality = false, ""
	}
	for i, x := range t.Indexes {
		// Whether a key of a UNIQUE index is taken is known once all entries are there: see ValidatingUnique.
		s.Indexes[i].WriteOnly = x.ChecksUnique() && x.State == IndexWriteOnly
		s.Indexes[i].ValidateUnique, s.Indexes[i].Columnar, s.Indexes[i].Locality = false, "", ""
	}
	for _, ck := range t.Checks {
		ck = cmp.Or(ck.Becoming, ck)
		computed = append(computed, ck.Expr.computedFrom())
	}
	return rules{s, computed}
}

// referrer is a table that rows of another one cannot be deleted from, or changed in, without looking at it.
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
