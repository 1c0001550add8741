package database

import (
	"maps"
	"sync/atomic"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/table"
)

// Needs are what a role needs to run a statement, a read or a mutation, and which roles have that. The newest schema decides, also where an older
// one is read: what was revoked cannot be read any more. It is decided once for each role and version.
type Needs struct {
	list    []schema.Need
	decided atomic.Pointer[decisions]
}

// decisions are those of one schema version. They are replaced, never changed.
type decisions struct {
	version schema.Version
	byRole  map[string]decision
}

type decision struct {
	err error
	// dependencies are those of a role that is allowed: once they do not hold any more, it is not.
	dependencies *schema.Dependencies
}

// Allow says whether a role may do what needs n, and what that counts on.
func (d *Database) Allow(role string, n *Needs) (*schema.Dependencies, error) {
	c := d.Catalog()
	decided := n.decided.Load()
	if decided != nil && decided.version == c.Version {
		if found, ok := decided.byRole[role]; ok {
			return found.dependencies, found.err
		}
	}
	made := decision{err: c.CheckAccess(role, n.list)}
	if made.err == nil {
		made.dependencies = schema.DependOnAccess(role, n.list)
	}
	next := &decisions{version: c.Version, byRole: map[string]decision{role: made}}
	if decided != nil && decided.version == c.Version {
		maps.Copy(next.byRole, decided.byRole)
	}
	if decided == nil || decided.version <= c.Version {
		n.decided.CompareAndSwap(decided, next)
	}
	return made.dependencies, made.err
}

// readNeeds are what reading columns takes: SELECT of them.
func readNeeds(t *schema.Table, columns []*schema.Column) []schema.Need {
	return []schema.Need{schema.TableNeed(t, schema.PrivilegeSelect, columns...)}
}

// mutationNeeds are what a mutation takes. One that may do either of two things takes what both take; REPLACE deletes a row and inserts one. That
// rows of children or of tables with foreign keys go with a row takes nothing more.
func mutationNeeds(c *schema.Catalog, op table.Op, t *schema.Table, columns []*schema.Column) []schema.Need {
	inserts, updates, deletes := schema.TableNeed(t, schema.PrivilegeInsert, columns...), schema.TableNeed(t, schema.PrivilegeUpdate, columns...), schema.TableNeed(t, schema.PrivilegeDelete)
	switch op {
	case table.Insert:
		return append(c.DefaultNeeds(t, columns), inserts)
	case table.Update:
		return []schema.Need{updates}
	case table.InsertOrUpdate:
		return append(c.DefaultNeeds(t, columns), inserts, updates)
	case table.Replace:
		return append(c.DefaultNeeds(t, columns), inserts, deletes)
	}
	return []schema.Need{deletes}
}
