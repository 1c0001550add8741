package schema

import (
	"slices"

	"github.com/crowfoot-db/crowfoot/usererror"
)

// spannerSys is the schema (namespace) of the statistics tables.
const spannerSys = "SPANNER_SYS"

// Need is one privilege or membership that a role must have to run a statement.
type Need struct {
	// Kind and Name describe the object in errors, such as "table t".
	Kind, Name string
	// Schema is the schema of the object, on which the role must also have USAGE.
	Schema string
	// On is the object's ID. Privilege is the privilege that the role must have on the object.
	On        TableID
	Privilege Privilege
	// Columns lists the columns on which the role must have the privilege. If it is empty, the role must have the
	// privilege on the whole object.
	Columns []ColumnID
	// AnyColumn says that the privilege on at least one column of the table is enough.
	AnyColumn bool
	// Member, if set, is the name of a system role. The role that runs the statement must be a member of this system
	// role, and needs no privilege.
	Member string
}

// TableNeed returns the Need of a privilege on columns of a table, or on the whole table if no columns are given. To
// read a system table, a role needs no privilege but must be a member of a system role. Every role may read
// INFORMATION_SCHEMA, because its rows describe only objects on which the role has privileges.
func TableNeed(t *Table, p Privilege, columns ...*Column) Need {
	n := Need{Kind: "table", Name: t.FullName(), Schema: t.Schema, On: t.ID, Privilege: p}
	if t.Rows != nil {
		n.Member = PublicRole
		if t.Schema == spannerSys {
			n.Member = SysReaderRole
		}
	}
	for _, c := range columns {
		n.Columns = append(n.Columns, c.ID)
	}
	return n
}

// SequenceNeed returns the Need of a privilege on a sequence.
func SequenceNeed(s *Sequence, p Privilege) Need {
	return Need{Kind: "sequence", Name: s.FullName(), Schema: s.Schema, On: s.ID, Privilege: p}
}

// DefaultNeeds returns what a role needs, because of the table's DEFAULTs, to insert rows. The parameter given lists
// the columns for which the insert has values. All other columns get their DEFAULTs. If such a DEFAULT takes values of
// a sequence, the role must have UPDATE on the sequence and INSERT on the column. Source:
// https://cloud.google.com/spanner/docs/fgac-sequences.
func (c *Catalog) DefaultNeeds(t *Table, given []*Column) (needs []Need) {
	for _, col := range t.Columns {
		if slices.Contains(given, col) {
			continue
		}
		if sequenceNeeds := c.SequenceNeeds(col); sequenceNeeds != nil {
			needs = append(append(needs, TableNeed(t, PrivilegeInsert, col)), sequenceNeeds...)
		}
	}
	return needs
}

// SequenceNeeds returns the needs of a role that evaluates the DEFAULT of a column: UPDATE on each sequence from
// which the DEFAULT takes values.
func (c *Catalog) SequenceNeeds(col *Column) (needs []Need) {
	for _, s := range c.sequencesOf(col) {
		needs = append(needs, SequenceNeed(s, PrivilegeUpdate))
	}
	return needs
}

// Access holds the privileges of a role in one catalog. A nil Access stands for a caller that may do everything. Only
// IsEnabled and SeesAll may be called on a nil Access.
type Access struct {
	catalog *Catalog
	role    string
	enabled []string // the role itself and the roles of which it is a member: see Catalog.enabled
}

// AccessOf returns the Access of a role. It fails if there is no such role.
func (c *Catalog) AccessOf(role string) (*Access, error) {
	name, ok := c.role(role)
	if !ok {
		return nil, usererror.RoleNotFound(role)
	}
	return &Access{catalog: c, role: role, enabled: c.enabled(name)}, nil
}

// CheckAccess returns an error unless a role satisfies all needs.
func (c *Catalog) CheckAccess(role string, needs []Need) error {
	a, err := c.AccessOf(role)
	if err != nil {
		return err
	}
	return a.check(needs)
}

// check returns an error unless the role satisfies all needs.
func (a *Access) check(needs []Need) error {
	for i := range needs {
		n := &needs[i]
		if n.Member == "" && !a.hasUsage(n.Schema) {
			schema := n.Schema
			if schema == "" {
				schema = defaultSchema
			}
			return usererror.MissingPrivilege(a.role, "schema", schema)
		}
		if !a.has(n) {
			return usererror.MissingPrivilege(a.role, n.Kind, n.Name)
		}
	}
	return nil
}

func (a *Access) has(n *Need) bool {
	switch {
	case n.Member != "":
		return a.IsEnabled(n.Member)
	case n.AnyColumn:
		return a.hasSome(n.On, n.Privilege)
	case len(n.Columns) == 0:
		return a.Has(n.On, n.Privilege, 0)
	}
	return !slices.ContainsFunc(n.Columns, func(id ColumnID) bool { return !a.Has(n.On, n.Privilege, id) })
}

// IsEnabled reports whether the role of the Access is the given role or a member of it, and so has its privileges. For
// a nil Access it returns true.
func (a *Access) IsEnabled(role string) bool { return a == nil || slices.Contains(a.enabled, role) }

// SeesAll reports whether the role sees all rows of INFORMATION_SCHEMA.
func (a *Access) SeesAll() bool { return a.IsEnabled(InfoReaderRole) }

// Has reports whether the role has a privilege on a column of an object, or on the whole object if column is 0.
func (a *Access) Has(on TableID, p Privilege, column ColumnID) bool {
	return slices.ContainsFunc(a.enabled, func(role string) bool {
		g := a.catalog.grantOf(role, on, "")
		return g != nil && g.Holds(p, column)
	})
}

// hasSome reports whether the role has a privilege on an object or on some column of it.
func (a *Access) hasSome(on TableID, p Privilege) bool {
	return slices.ContainsFunc(a.enabled, func(role string) bool {
		g := a.catalog.grantOf(role, on, "")
		if g == nil {
			return false
		}
		_, has := g.Privileges[p]
		return has
	})
}

// HasAny reports whether the role has any privilege on an object, or on a column of it.
func (a *Access) HasAny(on TableID) bool {
	return slices.ContainsFunc(a.enabled, func(role string) bool { return a.catalog.grantOf(role, on, "") != nil })
}

// HasAnyOn reports whether the role has SELECT, INSERT or UPDATE on a column or on its whole table.
func (a *Access) HasAnyOn(on TableID, column ColumnID) bool {
	return a.Has(on, PrivilegeSelect, column) || a.Has(on, PrivilegeInsert, column) || a.Has(on, PrivilegeUpdate, column)
}

// hasUsage reports whether the role may use objects of a schema. The role public, of which every role is a member, has
// USAGE on the default schema unless a statement has revoked it.
func (a *Access) hasUsage(schema string) bool {
	if schema == "" && a.catalog.grantOf(PublicRole, 0, "") == nil {
		return true
	}
	return slices.ContainsFunc(a.enabled, func(role string) bool {
		g := a.catalog.grantOf(role, 0, schema)
		return g != nil && !g.Revoked
	})
}
