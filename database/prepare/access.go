package prepare

import (
	"slices"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/sql/plan"
	"github.com/crowfoot-db/crowfoot/stats"
	"github.com/crowfoot-db/crowfoot/table"
)

// accessesOf returns the stats.Access values of a plan, which tell the statistics how it accesses the tables of users.
// It makes one for each table or index that the plan reads, even if the plan reads it several times, and one for each
// write. For an INSERT it makes a second one, because an INSERT checks whether its rows exist.
func accessesOf(p *plan.Plan) []*stats.Access {
	var read readColumns
	var list []*stats.Access
	plan.Walk(p.Root, func(n plan.Node) {
		switch n := n.(type) {
		case *plan.Scan:
			if n.Table.Rows == nil {
				read.scan(n)
			}
		case *plan.DML:
			if n.Kind == plan.Insert {
				list = append(list, stats.NewAccess(stats.OpCheck, n.Table.FullName(), []string{stats.Exists}))
			}
			if n.Conflict != nil && len(n.Conflict.Old) > 0 {
				read.add(n.Table.FullName(), namesOf(n.Conflict.Old))
			}
			list = append(list, writeAccess(writeOf(n.Kind), n.Table, n.Columns))
		}
	})
	return append(read.accesses(), list...)
}

func writeOf(k plan.Kind) stats.Op {
	if k == plan.Delete {
		return stats.OpDelete
	}
	return stats.OpWrite
}

// readColumns holds the columns that a statement reads, for each table and index.
type readColumns []targetColumns

type targetColumns struct {
	target  string
	columns []string
}

func (r *readColumns) add(target string, columns []string) {
	for i := range *r {
		if have := &(*r)[i]; have.target == target {
			have.columns = append(have.columns, columns...)
			return
		}
	}
	*r = append(*r, targetColumns{target, columns})
}

// scan adds the columns that a scan returns, and the key columns that its seeks bind.
func (r *readColumns) scan(n *plan.Scan) {
	target, layout := n.Table.FullName(), table.TableLayout(n.Table)
	if n.Index != nil {
		target, layout = n.Index.FullName(), table.IndexLayout(n.Index)
	}
	columns := slices.Clone(n.Columns)
	for i := range n.Seeks {
		for _, part := range layout.Key[:seekParts(&n.Seeks[i])] {
			columns = append(columns, part.Column)
		}
	}
	r.add(target, namesOf(columns))
}

// seekParts returns how many columns of the key a seek restricts.
func seekParts(s *plan.Seek) int {
	switch {
	case s.Tuples != nil:
		return len(s.Tuples.Fields)
	case s.Range != nil:
		return len(s.Parts) + 1
	}
	return len(s.Parts)
}

func (r readColumns) accesses() []*stats.Access {
	list := make([]*stats.Access, len(r))
	for i, one := range r {
		list[i] = stats.NewAccess(stats.OpQuery, one.target, one.columns)
	}
	return list
}

// writeAccess returns the access of a write to columns of a table. This access contains a further access for each of
// the table's indexes.
func writeAccess(op stats.Op, t *schema.Table, columns []*schema.Column) *stats.Access {
	var names []string
	if op != stats.OpDelete {
		names = namesOf(columns)
	}
	var entries []*stats.Access
	for _, x := range t.Indexes {
		entries = append(entries, entryAccess(op, x, columns))
	}
	return stats.NewAccess(op, t.FullName(), names, entries...)
}

// entryAccess returns the access of a write to the entries of index x. written lists the columns of the table that the
// write sets.
func entryAccess(op stats.Op, x *schema.Index, written []*schema.Column) *stats.Access {
	var names []string
	add := func(c *schema.Column) {
		if op != stats.OpDelete && slices.Contains(written, c) {
			names = append(names, c.Name)
		}
	}
	for _, part := range table.IndexLayout(x).Key {
		add(part.Column)
	}
	for _, c := range x.Storing {
		add(c)
	}
	return stats.NewAccess(op, x.FullName(), names)
}

// namesOf returns the names of columns. For no columns it returns _exists: the access only checks whether rows exist.
func namesOf(columns []*schema.Column) []string {
	if len(columns) == 0 {
		return []string{stats.Exists}
	}
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.Name
	}
	return names
}

// Mutations holds everything about a mutation that does not depend on the mutation's rows. Several mutations of the
// same table and columns share one Mutations if the statistics count them as the same kind of operation.
type Mutations struct {
	Access          *stats.Access // tells the statistics how the mutations access the table
	inserts, others *schema.Dependencies
	needs           map[table.Op]*Needs
}

// Needs returns the privileges that a role needs for mutations with op.
func (m *Mutations) Needs(op table.Op) *Needs { return m.needs[op] }

// Dependencies returns the parts of the schema on which mutations with op depend.
func (m *Mutations) Dependencies(op table.Op) *schema.Dependencies {
	if op == table.Insert {
		return m.inserts
	}
	return m.others
}

// Mutations returns the Mutations that m shares with other mutations of the same table, columns and kind of operation.
// It keeps the result in a cache.
func (p *Preparer) Mutations(m *table.Mutation) *Mutations {
	var room [256]byte
	key := append(room[:0], byte(mutationOp(m.Op)))
	key = append(key, m.Table.Schema...)
	key = append(append(key, 0), m.Table.Name...)
	for _, c := range m.Columns {
		key = append(append(key, 0), c.Name...)
	}
	if a, ok := p.mutations.Find(key); ok {
		return a
	}
	a := MutationsOf(p.catalog, m)
	p.mutations.Put(string(key), a)
	return a
}

// MutationsOf makes the Mutations of m without a cache, for a schema version that is no longer kept.
func MutationsOf(c *schema.Catalog, m *table.Mutation) *Mutations {
	like := &Mutations{
		Access:  writeAccess(mutationOp(m.Op), m.Table, m.Columns),
		inserts: writing(c, m.Table, false),
		others:  writing(c, m.Table, true),
		needs:   map[table.Op]*Needs{},
	}
	for _, op := range []table.Op{table.Insert, table.Update, table.InsertOrUpdate, table.Replace, table.Delete} {
		if mutationOp(op) == mutationOp(m.Op) {
			like.needs[op] = &Needs{list: mutationNeeds(c, op, m.Table, m.Columns)}
		}
	}
	return like
}

func mutationOp(op table.Op) stats.Op {
	switch op {
	case table.Delete:
		return stats.OpDelete
	case table.Replace:
		return stats.OpReplace
	}
	return stats.OpWrite
}
