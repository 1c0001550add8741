package database

import (
	"log/slog"
	"time"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/stats"
	"github.com/crowfoot-db/crowfoot/stats/live"
	"github.com/crowfoot-db/crowfoot/table"
)

// statistics is the collector of a database, with the tables that show it.
type statistics struct {
	*stats.Collector
	live   *live.Lists
	tables []*schema.Table // of SPANNER_SYS; the same for every schema version
}

func (d *Database) newStatistics() statistics {
	now := live.New(d.registry.cfg.Clock())
	if d.registry.cfg.NoStatistics {
		now = live.Off()
	}
	c := stats.New(stats.Config{
		Store:   d.registry.store,
		Space:   d.space,
		Clock:   d.registry.cfg.Clock,
		Log:     d.log(),
		Live:    now,
		Off:     d.registry.cfg.NoStatistics,
		Sources: d.sources(),
	})
	return statistics{Collector: c, live: now, tables: c.Tables()}
}

// Stats is what happened in this database.
func (d *Database) Stats() *stats.Collector { return d.statistics.Collector }

// Live is what happens in this database now.
func (d *Database) Live() *live.Lists { return d.statistics.live }

// closeStatistics stores what has happened so far. Background work has ended.
func (d *Database) closeStatistics() {
	if err := d.statistics.Close(); err != nil {
		d.log().Error("statistics not stored", slog.Any("error", err))
	}
}

// sources are what the collector computes when it closes an interval, or when it is asked.
func (d *Database) sources() stats.Sources {
	return stats.Sources{
		Sizes:            d.tableSizes,
		SplitPoints:      func() []stats.SplitPoint { return d.splits.UserPoints() },
		Splits:           func(end time.Time) []stats.SplitLoad { return d.splits.Loads(end) },
		DeletionPolicies: d.deletionPolicies,
		Tasks:            d.tasks,
	}
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
