package database

import (
	"log/slog"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/sql/plan"
	"github.com/crowfoot-db/crowfoot/stats"
	"github.com/crowfoot-db/crowfoot/table"
)

// statistics is the collector of a database with what belongs to it.
type statistics struct {
	*stats.Collector
	tables []*schema.Table // of SPANNER_SYS; the same for every schema version
}

func (d *Database) newStatistics() statistics {
	c := stats.New(stats.Config{
		Store:   d.registry.store,
		Space:   d.space,
		Clock:   d.registry.cfg.Clock,
		Log:     d.log(),
		Sources: d.sources(),
	})
	return statistics{Collector: c, tables: c.Tables()}
}

// Stats is what happens in this database.
func (d *Database) Stats() *stats.Collector { return d.statistics.Collector }

// closeStatistics stores what has happened so far. Background work has ended.
func (d *Database) closeStatistics() {
	if err := d.statistics.Close(); err != nil {
		d.log().Error("statistics not stored", slog.Any("error", err))
	}
}

// sources are where the collector asks for what nobody records.
func (d *Database) sources() stats.Sources {
	return stats.Sources{Sizes: d.tableSizes, SplitPoints: d.userSplitPoints, DeletionPolicies: d.deletionPolicies, Tasks: d.tasks}
}

// tableSizes are what tables and indexes take. What is interleaved lies among the
// rows it is interleaved in, so a parent's size holds its children's: the engine knows the sizes of ranges only.
func (d *Database) tableSizes() ([]stats.TableSize, error) {
	var list []stats.TableSize
	add := func(name string, l *table.Layout) error {
		span, _ := l.Space()
		size, err := d.rows.Size(span.Start, span.End)
		list = append(list, stats.TableSize{Table: name, Bytes: size})
		return err
	}
	for _, t := range d.Catalog().Tables {
		if err := add(t.FullName(), table.TableLayout(t)); err != nil {
			return nil, err
		}
		for _, x := range t.Indexes {
			if err := add(x.Name, table.IndexLayout(x)); err != nil {
				return nil, err
			}
		}
	}
	return list, nil
}

// accessesOf are what a plan does with the tables of users. An INSERT looks whether its rows exist.
func accessesOf(p *plan.Plan) []*stats.Access {
	var list []*stats.Access
	plan.Walk(p.Root, func(n plan.Node) {
		switch n := n.(type) {
		case *plan.Scan:
			if n.Table.Rows != nil {
				return
			}
			index := ""
			if n.Index != nil {
				index = n.Index.Name
			}
			list = append(list, stats.NewAccess(stats.OpQuery, n.Table.FullName(), index, namesOf(n.Columns)))
		case *plan.Mutate:
			if n.Kind == plan.Insert {
				list = append(list, stats.NewAccess(stats.OpQuery, n.Table.FullName(), "", []string{stats.Exists}))
			}
			list = append(list, writeAccess(n.Kind == plan.Delete, n.Table, n.Columns))
		}
	})
	return list
}

func writeAccess(deletes bool, t *schema.Table, columns []*schema.Column) *stats.Access {
	if deletes {
		return stats.NewAccess(stats.OpDelete, t.FullName(), "", nil)
	}
	return stats.NewAccess(stats.OpWrite, t.FullName(), "", namesOf(columns))
}

// namesOf are the names of columns; of none, that it is looked whether rows exist.
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

// MutationAccess is what mutations of one shape do with their table.
func (d *Database) MutationAccess(c *schema.Catalog, m *table.Mutation) *stats.Access {
	v := d.versionOf(c)
	if v == nil {
		v = d.newest()
	}
	var room [256]byte
	key := append(room[:0], m.Table.Schema...)
	key = append(append(key, 0), m.Table.Name...)
	if m.Op != table.Delete {
		for _, c := range m.Columns {
			key = append(append(key, 0), c.Name...)
		}
	} else {
		key = append(key, 0, 0)
	}
	if a, ok := v.mutations.find(key); ok {
		return a
	}
	a := writeAccess(m.Op == table.Delete, m.Table, m.Columns)
	v.mutations.put(string(key), a)
	return a
}
