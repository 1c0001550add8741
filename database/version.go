package database

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/crowfoot-db/crowfoot/columnar"
	"github.com/crowfoot-db/crowfoot/database/cache"
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

// version is one schema version, with everything that is made from it: the analyzer's view of the schema, prepared
// statements and generic plans, projections, descriptors for writing. Each is made at first use and dropped with the
// version. A database that gained thousands of tables one by one has thousands of versions, most of which see no
// request. Their catalogs share the parts that they have in common.
type version struct {
	at      mvcc.Timestamp // timestamp of the commit that made the version: it is valid from then on
	catalog *schema.Catalog
	zone    *time.Location
	// garbage holds key ranges that only older versions read. They are deleted with the last older version.
	garbage []table.Span
	// tentative says that the schema change which made the version has not ended. If the server stops, the next process
	// resumes the change or undoes it.
	tentative atomic.Bool
	// change is the schema change that made the version, if it has work to do on existing rows.
	change *rowsChange
	// by is the statement that made the version, if an operation will resume it after a restart. It is kept while the
	// version is tentative.
	by *changeRecord

	copies      *columnar.Copies
	statistics  func() []*schema.Table // returns the tables of SPANNER_SYS
	memory      *memory.Budget         // for the analyzer
	analyzing   sync.Mutex
	analyzer    *analyze.Analyzer // made at first use
	statements  cache.Cache[*Statement]
	preparing   prepareGroup
	generic     cache.Cache[*genericSlot] // by normalized text
	projections cache.Cache[*Projection]
	mutations   cache.Cache[*Mutations] // by kind, table and columns

	tables    *table.Descriptors // for writing rows
	sequences *sequence.Names
}

func newVersion(d *Database, c *schema.Catalog, at mvcc.Timestamp) *version {
	zone, err := value.LoadZone(c.Options.TimeZone())
	if err != nil {
		zone = time.UTC // never happens: the option was checked when it was set
	}
	v := &version{at: at, catalog: c, zone: zone, copies: d.Copies(), memory: d.registry.cfg.Memory, statistics: d.statistics.tables, tables: table.NewDescriptors(c), sequences: d.sequences.In(c)}
	k := d.registry.cacheBudget
	v.statements.Budget, v.generic.Budget, v.projections.Budget, v.mutations.Budget = k, k, k, k
	return v
}

// analyze returns the analyzer for this version.
func (v *version) analyze() *analyze.Analyzer {
	v.analyzing.Lock()
	defer v.analyzing.Unlock()
	if v.analyzer == nil {
		v.analyzer = analyze.New(v.catalog, v.memory, v.system()...)
	}
	return v.analyzer
}

// system returns the tables of INFORMATION_SCHEMA and SPANNER_SYS. Those that describe the schema describe this
// version.
func (v *version) system() []*schema.Table {
	statistics := v.statistics()
	return slices.Concat(system.Tables(v.catalog, v.underWay, statistics...), statistics)
}

// underWay returns the schema change that made the version, if it has not ended; else nil.
func (v *version) underWay() *schema.Change {
	if v.tentative.Load() && v.change != nil {
		return v.change.what
	}
	return nil
}

// Tables returns the descriptors with which rows of a catalog's tables are written.
func (d *Database) Tables(c *schema.Catalog) (*table.Descriptors, error) {
	v, err := d.versionOf(c)
	if err != nil {
		return nil, err
	}
	return v.tables, nil
}

// close frees the memory of the version: in the analyzer's library, and in the caches.
func (v *version) close() {
	v.statements.Close()
	v.generic.Close()
	v.projections.Close()
	v.mutations.Close()
	v.analyzing.Lock()
	defer v.analyzing.Unlock()
	if v.analyzer != nil {
		v.analyzer.Release()
	}
}

// versionOf returns the version of a catalog. It fails if the version was collected while its catalog was in use.
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
