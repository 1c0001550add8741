package database

import (
	"cmp"
	"slices"
	"sync/atomic"

	"github.com/crowfoot-db/crowfoot/database/prepare"
	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// version is one schema version, with everything that is made from it. A database that gained thousands of tables one by
// one has thousands of versions. Their catalogs share the parts that they have in common.
type version struct {
	at      mvcc.Timestamp // timestamp of the commit that made the version: it is valid from then on
	catalog *schema.Catalog
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

	preparer *prepare.Preparer
}

func newVersion(d *Database, c *schema.Catalog, at mvcc.Timestamp) *version {
	v := &version{at: at, catalog: c}
	v.preparer = prepare.New(d.preparing, c, v.underWay)
	return v
}

// underWay returns the schema change that made the version, if it has not ended; else nil.
func (v *version) underWay() *schema.Change {
	if v.tentative.Load() && v.change != nil {
		return v.change.what
	}
	return nil
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
