package schema

import (
	"slices"

	"github.com/crowfoot-db/crowfoot/usererror"
)

// spannerSys is the schema of the statistics tables.
const spannerSys = "SPANNER_SYS"

// Need is one privilege or membership that a role must have.
type Need struct {
	// Kind and Name describe the object in errors, such as "table t".
	Kind, Name string
	// Schema is the schema of the object. The role needs USAGE of it.
	Schema string
	// On is the object's ID, and Privilege is the privilege that the role needs on it.
	On        TableID
	Privilege Privilege
	// Columns lists the columns on which the role needs the privilege. If it is empty, the role needs it on the whole
	// object.
	Columns []ColumnID
	// AnyColumn says that the privilege on any one column of the table suffices.
	AnyColumn bool
	// Member, if set, is a system role of which the role must be a member. Then no privilege is needed.
	Member string
}

// TableNeed returns the need of a privilege on columns of a table, or on the whole table if no columns are given. Every
// role may read INFORMATION_SCHEMA, which shows only objects on which the role has privileges.
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

// SequenceNeed returns the need of a privilege on a sequence.
func SequenceNeed(s *Sequence, p Privilege) Need {
	return Need{Kind: "sequence", Name: s.FullName(), Schema: s.Schema, On: s.ID, Privilege: p}
}

// DefaultNeeds returns what a role needs to insert rows that give values only for the given columns. If the DEFAULT of
// another column takes values of a sequence, the role needs UPDATE of the sequence and INSERT of the column. Source:
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

// SequenceNeeds returns what a role needs to evaluate the DEFAULT of a column: UPDATE of each sequence from which it
// takes values.
func (c *Catalog) SequenceNeeds(col *Column) (needs []Need) {
	for _, s := range c.sequencesOf(col) {
		needs = append(needs, SequenceNeed(s, PrivilegeUpdate))
	}
	return needs
}

// Access holds the privileges of a role at a version of the schema. A nil Access permits everything.
type Access struct {
	catalog *Catalog
	role    string
	enabled []string // the roles whose privileges the role has: see Catalog.enabled
}

// AccessOf returns the Access of a role. It fails if there is no such role.
func (c *Catalog) AccessOf(role string) (*Access, error) {
	name, ok := c.role(role)
	if !ok {
		return nil, usererror.RoleNotFound(role)
	}
	return &Access{catalog: c, role: role, enabled: c.enabled(name)}, nil
}

// CheckAccess returns an error unless a role has all needs.
func (c *Catalog) CheckAccess(role string, needs []Need) error {
	a, err := c.AccessOf(role)
	if err != nil {
		return err
	}
	return a.check(needs)
}

// check returns an error unless the role has all needs.
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

// IsEnabled reports whether the role has the privileges of another role: it is that role, or a member of it.
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

// HasAnyOn reports whether the role has any privilege on a column or on its whole table. DELETE does not count.
func (a *Access) HasAnyOn(on TableID, column ColumnID) bool {
	return a.Has(on, PrivilegeSelect, column) || a.Has(on, PrivilegeInsert, column) || a.Has(on, PrivilegeUpdate, column)
}

// hasUsage reports whether the role may name objects of a schema. public has USAGE of the default schema, unless it was
// revoked.
func (a *Access) hasUsage(schema string) bool {
	if schema == "" && a.catalog.grantOf(PublicRole, 0, "") == nil {
		return true
	}
	return slices.ContainsFunc(a.enabled, func(role string) bool {
		g := a.catalog.grantOf(role, 0, schema)
		return g != nil && !g.Revoked
	})
}
