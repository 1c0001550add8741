package prepare

import (
	"slices"
	"sync"
	"time"

	"github.com/crowfoot-db/crowfoot/columnar"
	"github.com/crowfoot-db/crowfoot/database/cache"
	"github.com/crowfoot-db/crowfoot/database/sequence"
	"github.com/crowfoot-db/crowfoot/memory"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/sql/analyze"
	"github.com/crowfoot-db/crowfoot/sql/spill"
	"github.com/crowfoot-db/crowfoot/sql/system"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/value"
)

// Config configures the Preparers of all schema versions of a database.
type Config struct {
	Clock      func() time.Time
	Spill      *spill.Dir             // holds the rows of statements that need much memory; nil: these statements fail
	Memory     *memory.Budget         // charged for the memory of analyzing heavy statements; nil counts nothing
	Kept       *cache.Budget          // charged for the entries of the caches
	Copies     *columnar.Copies       // the columnar copies that statements may read
	Statistics func() []*schema.Table // returns the tables of SPANNER_SYS
	Sequences  *sequence.Counters
}

// Preparer prepares the statements, reads and mutations of one schema version, and keeps what it has prepared. It makes
// the analyzer at first use, since most versions may see no request: a database that gained thousands of tables one by
// one has thousands of versions.
type Preparer struct {
	cfg     *Config
	catalog *schema.Catalog
	zone    *time.Location
	// underWay returns the schema change that made the version, if that change has not ended; else nil.
	underWay func() *schema.Change

	analyzing   sync.Mutex
	analyzer    *analyze.Analyzer // made at first use
	statements  cache.Cache[*Statement]
	preparing   prepareGroup
	generic     cache.Cache[*genericSlot] // by normalized text
	projections cache.Cache[*Projection]
	mutations   cache.Cache[*Mutations] // by kind of operation, table and columns

	tables    *table.Descriptors // what writers need to write rows
	sequences *sequence.Names
}

// New returns the Preparer of a schema version. underWay returns the schema change that made the version, if that
// change has not ended; else nil.
func New(cfg *Config, c *schema.Catalog, underWay func() *schema.Change) *Preparer {
	zone, err := value.LoadZone(c.Options.TimeZone())
	if err != nil {
		zone = time.UTC // never happens: the option was checked when it was set
	}
	p := &Preparer{cfg: cfg, catalog: c, zone: zone, underWay: underWay, tables: table.NewDescriptors(c), sequences: cfg.Sequences.In(c)}
	p.statements.Budget, p.generic.Budget, p.projections.Budget, p.mutations.Budget = cfg.Kept, cfg.Kept, cfg.Kept, cfg.Kept
	return p
}

// analyze returns the analyzer for this version. It makes one at the first call.
func (p *Preparer) analyze() *analyze.Analyzer {
	p.analyzing.Lock()
	defer p.analyzing.Unlock()
	if p.analyzer == nil {
		p.analyzer = analyze.New(p.catalog, p.cfg.Memory, p.System()...)
	}
	return p.analyzer
}

// System returns the tables of INFORMATION_SCHEMA and SPANNER_SYS. The tables of INFORMATION_SCHEMA describe the schema
// of this version.
func (p *Preparer) System() []*schema.Table {
	statistics := p.cfg.Statistics()
	return slices.Concat(system.Tables(p.catalog, p.underWay, statistics...), statistics)
}

// Tables returns the table.Descriptors of the version, which writers need to write rows of its tables.
func (p *Preparer) Tables() *table.Descriptors { return p.tables }

// Zone returns the default time zone of the version.
func (p *Preparer) Zone() *time.Location { return p.zone }

// Close frees the memory of all that was prepared: the analyzer, and the entries of the caches.
func (p *Preparer) Close() {
	p.statements.Close()
	p.generic.Close()
	p.projections.Close()
	p.mutations.Close()
	p.analyzing.Lock()
	defer p.analyzing.Unlock()
	if p.analyzer != nil {
		p.analyzer.Release()
	}
}
