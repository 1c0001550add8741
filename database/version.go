package database

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/crowfoot-db/crowfoot/columnar"
	"github.com/crowfoot-db/crowfoot/database/sequence"
	"github.com/crowfoot-db/crowfoot/memory"
	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/sql/analyze"
	"github.com/crowfoot-db/crowfoot/sql/system"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// version is one schema version, and the home of everything that follows from it: the analyzer's view of the schema, prepared statements
// and generic plans, projections, descriptors for writing. Each is made at first use and goes with the version: a database that has got
// thousands of tables one by one has thousands of versions, of which few see a request. Their catalogs share what they have in common.
type version struct {
	at      mvcc.Timestamp // of the commit that made it: it is valid from then on
	catalog *schema.Catalog
	zone    *time.Location
	// garbage are key ranges that only older versions read. They are deleted when the last older version is.
	garbage []table.Span
	// tentative says that the schema change which made the version has not ended. If the server goes down, the next process goes on with the change or
	// takes the version back.
	tentative atomic.Bool
	// change is the one that made the version, if it has work on existing rows to do.
	change *rowsChange
	// by is the statement that made it, if an operation is to go on with it after a restart. It is kept while the version is tentative.
	by *changeRecord

	copies      *columnar.Copies
	statistics  func() []*schema.Table // the tables of SPANNER_SYS that the database's statistics show
	memory      *memory.Budget         // for the analyzer
	analyzing   sync.Mutex
	analyzer    *analyze.Analyzer // made at first use
	statements  cache[*Statement]
	preparing   flights
	generic     cache[*genericSlot] // by normalized text
	projections cache[*Projection]
	mutations   cache[*Mutations] // by what they do, table and columns

	tables    *table.Descriptors // for writing rows
	sequences *sequence.Names
}

func newVersion(d *Database, c *schema.Catalog, at mvcc.Timestamp) *version {
	zone, err := value.LoadZone(c.Options.TimeZone())
	if err != nil {
		zone = time.UTC // never happens: the option was checked when it was set
	}
	v := &version{at: at, catalog: c, zone: zone, copies: d.Copies(), memory: d.registry.cfg.Memory, statistics: d.statistics.tables, tables: table.NewDescriptors(c), sequences: d.sequences.In(c)}
	k := d.registry.keeper
	v.statements.memory, v.generic.memory, v.projections.memory, v.mutations.memory = k, k, k, k
	return v
}

// analyze is the analyzer for this version.
func (v *version) analyze() *analyze.Analyzer {
	v.analyzing.Lock()
	defer v.analyzing.Unlock()
	if v.analyzer == nil {
		v.analyzer = analyze.New(v.catalog, v.memory, v.system()...)
	}
	return v.analyzer
}

// system are the tables of INFORMATION_SCHEMA and SPANNER_SYS. Those that describe the schema describe this version.
func (v *version) system() []*schema.Table {
	statistics := v.statistics()
	return slices.Concat(system.Tables(v.catalog, v.underWay, statistics...), statistics)
}

// underWay is the schema change that made the version, while it has not ended.
func (v *version) underWay() *schema.Change {
	if v.tentative.Load() && v.change != nil {
		return v.change.what
	}
	return nil
}

// Tables is what writing rows of a catalog's tables takes.
func (d *Database) Tables(c *schema.Catalog) (*table.Descriptors, error) {
	v, err := d.versionOf(c)
	if err != nil {
		return nil, err
	}
	return v.tables, nil
}

// close frees the memory that the version holds in the analyzer's library, and what it has cached.
func (v *version) close() {
	v.statements.close()
	v.generic.close()
	v.projections.close()
	v.mutations.close()
	v.analyzing.Lock()
	defer v.analyzing.Unlock()
	if v.analyzer != nil {
		v.analyzer.Release()
	}
}

// versionOf finds the version that a catalog belongs to. It fails if the version was collected while its catalog was in use.
func (d *Database) versionOf(c *schema.Catalog) (*version, error) {
	list := *d.versions.Load()
	if newest := list[len(list)-1]; newest.catalog == c {
		return newest, nil
	}
	at, found := slices.BinarySearchFunc(list, c.Version, func(v *version, number schema.Version) int {
		return cmp.Compare(v.catalog.Version, number)
	})
	if found && list[at].catalog == c {
		return list[at], nil
	}
	return nil, usererror.SchemaCollected(list[0].at.Time())
}
