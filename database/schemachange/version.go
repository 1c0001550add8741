package schemachange

import (
	"sync/atomic"

	"github.com/crowfoot-db/crowfoot/database/prepare"
	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/table"
)

// Version is one schema version with everything that is made from it. A database that gained thousands of tables one by
// one has thousands of versions, so their catalogs share the parts that are equal.
type Version struct {
	At      mvcc.Timestamp // timestamp of the commit that made the version: it is valid from then on
	Catalog *schema.Catalog
	// Garbage holds key ranges that only older versions read. They are deleted when the last older version is deleted.
	Garbage []table.Span
	// tentative says that the schema change which made the version has not ended. If the server stops, the next process
	// resumes the change or undoes it.
	tentative atomic.Bool
	// change is the schema change that made the version, if it has work to do on existing rows.
	change *rowsChange
	// by is the statement that made the version, if an operation will resume that statement after a restart. It is
	// stored while the version is tentative.
	by *changeRecord

	Preparer *prepare.Preparer
}

func (m *Manager) newVersion(c *schema.Catalog, at mvcc.Timestamp) *Version {
	v := &Version{At: at, Catalog: c}
	v.Preparer = prepare.New(m.cfg.Prepare, c, v.underWay)
	return v
}

// Tentative reports whether the schema change that made the version has not ended.
func (v *Version) Tentative() bool { return v.tentative.Load() }

// underWay returns the schema change that made the version, if that change has not ended; else nil.
func (v *Version) underWay() *schema.Change {
	if v.tentative.Load() && v.change != nil {
		return v.change.what
	}
	return nil
}
