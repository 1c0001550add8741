package database

import (
	"log/slog"
	"sync"
	"time"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/stats"
	"github.com/crowfoot-db/crowfoot/stats/live"
)

// statistics holds the collector of a database and the tables that show its statistics.
type statistics struct {
	*stats.Collector
	live   *live.Lists
	tables func() []*schema.Table // returns the tables of SPANNER_SYS, which are made at the first call
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
		Task:    d.registry.account.Task(taskStatistics),
		Live:    now,
		Off:     d.registry.cfg.NoStatistics,
		Sources: d.sources(),
	})
	return statistics{Collector: c, live: now, tables: sync.OnceValue(c.Tables)}
}

// Stats returns the collector of the statistics of this database.
func (d *Database) Stats() *stats.Collector { return d.statistics.Collector }

// Live returns the lists of this database's current activity.
func (d *Database) Live() *live.Lists { return d.statistics.live }

// closeStatistics stores the statistics that are only in memory. Background work must have ended before, since nothing
// may be recorded in the statistics afterwards.
func (d *Database) closeStatistics() {
	if err := d.statistics.Close(); err != nil {
		d.log().Error("statistics not stored", slog.Any("error", err))
	}
}

// sources returns functions from which the collector gets statistics that other parts of the database keep. The
// collector calls the functions when it closes an interval, and when a query reads the tables of these statistics.
func (d *Database) sources() stats.Sources {
	return stats.Sources{
		Sizes:            d.tableSizes,
		SplitPoints:      func() []stats.SplitPoint { return d.splits.UserPoints() },
		Splits:           func(end time.Time) []stats.SplitLoad { return d.splits.Loads(end) },
		DeletionPolicies: func() []stats.DeletionPolicy { return d.expiry.Policies() },
		ColumnarPolicies: d.ColumnarPolicies,
		Tasks:            d.tasks,
	}
}

// tasks returns the rows of SPANNER_SYS.TASKS.
func (d *Database) tasks() []stats.Task {
	var undeletable int64
	for _, p := range d.expiry.Policies() {
		undeletable += p.Undeletable
	}
	return []stats.Task{
		d.expiry.Status.Row("row_deletion_policy", undeletable),
		d.collection.Row("version_collection", 0),
		d.upkeep.Status.Row("columnar_policy", 0),
	}
}
