package database

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/crowfoot-db/crowfoot/database/meta"
	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/sql/analyze"
	"github.com/crowfoot-db/crowfoot/sql/system"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// version is one schema version, and the home of everything that follows from it: the analyzer's view of the schema, prepared statements
// and generic plans, projections, layouts, descriptors for writing. Each is made at first use and goes with the version.
type version struct {
	at      mvcc.Timestamp // of the commit that made it: it is valid from then on
	catalog *schema.Catalog
	zone    *time.Location
	// garbage are key ranges that only older versions read. They are deleted when the last older version is.
	garbage []table.Span
	// tentative says that the schema change which made the version has not ended. If the server goes down, the version is undone.
	tentative atomic.Bool

	system      []*schema.Table
	analyzing   sync.Mutex
	analyzer    *analyze.Analyzer // made at first use: most versions of a schema script never see a query
	statements  cache[*Statement]
	preparing   flights
	generic     cache[*genericSlot] // by normalized text
	projections cache[*Projection]
	mutations   cache[*Mutations] // by what they do, table and columns

	tables  table.Descriptors // for writing rows
	laying  sync.Once
	layouts map[schema.TableID]*table.Layout // of all tables and indexes; see objects
}

// schemaRecord is a version as stored.
type schemaRecord struct {
	At      mvcc.Timestamp
	Catalog json.RawMessage
	Garbage []table.Span
	// Tentative: see version.
	Tentative bool `json:",omitempty"`
}

func newVersion(d *Database, c *schema.Catalog, at mvcc.Timestamp) *version {
	zone, err := value.LoadZone(c.Options.TimeZone())
	if err != nil {
		zone = time.UTC // never happens: the option was checked when it was set
	}
	return &version{at: at, catalog: c, zone: zone, system: slices.Concat(system.Tables(c, d.statistics.tables...), d.statistics.tables)}
}

// analyze is the analyzer for this version.
func (v *version) analyze() *analyze.Analyzer {
	v.analyzing.Lock()
	defer v.analyzing.Unlock()
	if v.analyzer == nil {
		v.analyzer = analyze.New(v.catalog, v.system...)
	}
	return v.analyzer
}

// objects are the layouts of all tables and indexes, by their IDs.
func (v *version) objects() map[schema.TableID]*table.Layout {
	v.laying.Do(func() {
		v.layouts = map[schema.TableID]*table.Layout{}
		for _, t := range v.catalog.Tables {
			v.layouts[t.ID] = table.TableLayout(t)
			for _, x := range t.Indexes {
				v.layouts[x.ID] = table.IndexLayout(x)
			}
		}
	})
	return v.layouts
}

// Tables is what writing rows of a catalog's tables takes.
func (d *Database) Tables(c *schema.Catalog) (*table.Descriptors, error) {
	v, err := d.versionOf(c)
	if err != nil {
		return nil, err
	}
	return &v.tables, nil
}

// close frees the memory that the version holds in the analyzer's library, outside of Go's heap.
func (v *version) close() {
	v.analyzing.Lock()
	defer v.analyzing.Unlock()
	if v.analyzer != nil {
		v.analyzer.Release()
	}
}

// storeVersion makes a version durable, and with it that a statement took effect, unless that is nil.
func (d *Database) storeVersion(v *version, s *statement) error {
	data, err := v.catalog.Marshal()
	if err != nil {
		return fmt.Errorf("encode catalog: %w", err)
	}
	b := d.registry.store.NewBatch()
	defer b.Close()
	if err := meta.Put(b, d.versionKey(v), schemaRecord{At: v.at, Catalog: data, Garbage: v.garbage, Tentative: v.tentative.Load()}); err != nil {
		return err
	}
	if s != nil {
		if err := s.applied(b, v.at); err != nil {
			return err
		}
	}
	return b.Commit()
}

// versionOf finds the version that a catalog belongs to. It fails if the version was collected while its catalog was in use.
func (d *Database) versionOf(c *schema.Catalog) (*version, error) {
	list := *d.versions.Load()
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].catalog == c {
			return list[i], nil
		}
	}
	return nil, usererror.SchemaCollected(list[0].at.Time())
}

func (d *Database) versionKey(v *version) []byte {
	return meta.Key(meta.OfSpace(meta.Schema, d.space), fmt.Sprintf("%020d", v.catalog.Version))
}
