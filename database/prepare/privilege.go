package prepare

import (
	"maps"
	"sync/atomic"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/table"
)

// Needs holds the privileges that a statement, a read or a mutation needs. It also holds the decision for each role
// that has used it: whether the role has these privileges. The newest schema decides, even for a read of an older
// version, so a role that has lost a privilege cannot use it for reads of the past either. The decision for a role and
// a schema version is made once and kept.
type Needs struct {
	list    []schema.Need
	decided atomic.Pointer[decisions]
}

// decisions holds the decisions of one schema version. It is replaced, never changed.
type decisions struct {
	version schema.Version
	byRole  map[string]decision
}

type decision struct {
	err error
	// dependencies is set if the role is allowed: the parts of the schema on which the decision depends.
	dependencies *schema.Dependencies
}

// Allow fails unless a role has the needed privileges in catalog c, which must be the newest one. It returns the parts
// of the schema on which this decision depends.
func (n *Needs) Allow(c *schema.Catalog, role string) (*schema.Dependencies, error) {
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

// readNeeds returns the privilege that reading columns needs: SELECT.
func readNeeds(t *schema.Table, columns []*schema.Column) []schema.Need {
	return []schema.Need{schema.TableNeed(t, schema.PrivilegeSelect, columns...)}
}

// mutationNeeds returns the privileges that a mutation needs. INSERT_OR_UPDATE needs INSERT and UPDATE. REPLACE needs
// INSERT and DELETE. Cascading deletes, of interleaved rows and by foreign keys, need no further privileges.
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
