package schema

import (
	"slices"

	"github.com/crowfoot-db/crowfoot/usererror"
)

// spannerSys is the schema of statistics.
const spannerSys = "SPANNER_SYS"

// Need is one thing that a role must be allowed to do.
type Need struct {
	// Kind and Name are how errors call the object: table t.
	Kind, Name string
	// Schema is the object's schema, of which USAGE is needed.
	Schema string
	// On is the object's number, and Privilege what is needed on it.
	On        TableID
	Privilege Privilege
	// Columns are those on which it is needed; without columns, it is needed on the whole object.
	Columns []ColumnID
	// AnyColumn says that it is needed on one column of the table, any of them.
	AnyColumn bool
	// Member is a system role of which membership is needed, in the place of a privilege.
	Member string
}

// TableNeed is a privilege on columns of a table, or on the whole of it if there are none. Every role may read INFORMATION_SCHEMA, whose rows are
// those of what it has privileges on.
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

// SequenceNeed is a privilege on a sequence.
func SequenceNeed(s *Sequence, p Privilege) Need {
	return Need{Kind: "sequence", Name: s.FullName(), Schema: s.Schema, On: s.ID, Privilege: p}
}

// DefaultNeeds are what inserting rows takes without values for some columns: if a DEFAULT takes values of a sequence, UPDATE of the sequence and INSERT
// of the column. Source: https://cloud.google.com/spanner/docs/fgac-sequences.
func (c *Catalog) DefaultNeeds(t *Table, given []*Column) (needs []Need) {
	for _, col := range t.Columns {
		if slices.Contains(given, col) {
			continue
		}
		if taken := c.SequenceNeeds(col); taken != nil {
			needs = append(append(needs, TableNeed(t, PrivilegeInsert, col)), taken...)
		}
	}
	return needs
}

// SequenceNeeds are what the DEFAULT of a column takes: UPDATE of the sequences of which it takes values.
func (c *Catalog) SequenceNeeds(col *Column) (needs []Need) {
	for _, s := range c.sequencesOf(col) {
		needs = append(needs, SequenceNeed(s, PrivilegeUpdate))
	}
	return needs
}

// Access is what a role may do at a version of the schema. A nil Access may do all.
type Access struct {
	catalog *Catalog
	role    string
	enabled []string // the roles whose privileges it has: see Catalog.enabled
}

// AccessOf is what a role may do. It fails if there is no such role.
func (c *Catalog) AccessOf(role string) (*Access, error) {
	name, ok := c.role(role)
	if !ok {
		return nil, usererror.RoleNotFound(role)
	}
	return &Access{catalog: c, role: role, enabled: c.enabled(name)}, nil
}

// CheckAccess says whether a role may do all that is needed.
func (c *Catalog) CheckAccess(role string, needs []Need) error {
	a, err := c.AccessOf(role)
	if err != nil {
		return err
	}
	return a.check(needs)
}

// check says whether the role may do all that is needed.
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

// IsEnabled says whether the role has the privileges of another: it is that role, or a member of it.
func (a *Access) IsEnabled(role string) bool { return a == nil || slices.Contains(a.enabled, role) }

// SeesAll says whether the role sees all rows of INFORMATION_SCHEMA.
func (a *Access) SeesAll() bool { return a.IsEnabled(InfoReaderRole) }

// Has says whether the role has a privilege on a column of an object, or on the whole object if column is 0.
func (a *Access) Has(on TableID, p Privilege, column ColumnID) bool {
	return slices.ContainsFunc(a.enabled, func(role string) bool {
		g := a.catalog.grantOf(role, on, "")
		return g != nil && g.Holds(p, column)
	})
}

// hasSome says whether the role has a privilege on an object or on some column of it.
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

// HasAny says whether the role has any privilege on an object, or on a column of it.
func (a *Access) HasAny(on TableID) bool {
	return slices.ContainsFunc(a.enabled, func(role string) bool { return a.catalog.grantOf(role, on, "") != nil })
}

// HasAnyOn says whether the role has any privilege on a column, or on the whole table, but for DELETE.
func (a *Access) HasAnyOn(on TableID, column ColumnID) bool {
	return a.Has(on, PrivilegeSelect, column) || a.Has(on, PrivilegeInsert, column) || a.Has(on, PrivilegeUpdate, column)
}

// hasUsage says whether the role may name objects of a schema. public has USAGE of the default schema, unless it was revoked.
func (a *Access) hasUsage(schema string) bool {
	if schema == "" && a.catalog.grantOf(PublicRole, 0, "") == nil {
		return true
	}
	return slices.ContainsFunc(a.enabled, func(role string) bool {
		g := a.catalog.grantOf(role, 0, schema)
		return g != nil && !g.Revoked
	})
}
