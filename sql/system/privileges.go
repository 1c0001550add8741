package system

import (
	"slices"

	"github.com/crowfoot-db/crowfoot/schema"
)

func roles(b *builder) {
	for _, name := range b.catalog.RoleNames() {
		b.add(name, schema.IsSystemRole(name))
	}
}

func roleGrantees(b *builder) {
	for m := range b.catalog.Memberships() {
		b.add(m.Role, m.Member)
	}
}

// grantable and grantor are the values of the columns IS_GRANTABLE and GRANTOR, in every row of those tables
// ROLE_*_GRANTS that have these columns.
const grantable = "NO"

var grantor any

// tablePrivileges adds to b a row for each privilege on a whole table or view.
func tablePrivileges(b *builder) {
	b.eachTableGrant(func(g *schema.Grant, in, name string, _ []grantColumn) {
		for p, columns := range g.Privileges {
			if len(columns) == 0 {
				b.add("", in, name, string(p), g.Role)
			}
		}
	})
}

func roleTableGrants(b *builder) {
	b.eachTableGrant(func(g *schema.Grant, in, name string, _ []grantColumn) {
		for p, columns := range g.Privileges {
			if len(columns) == 0 {
				b.add("", in, name, string(p), g.Role, grantor, grantable)
			}
		}
	})
}

// columnPrivileges adds to b a row for each privilege on a column. A privilege on a whole table or view counts as a
// privilege on each of its columns.
func columnPrivileges(b *builder) {
	b.eachColumnPrivilege(func(g *schema.Grant, in, name, column string, p schema.Privilege) {
		b.add("", in, name, column, string(p), g.Role)
	})
}

func roleColumnGrants(b *builder) {
	b.eachColumnPrivilege(func(g *schema.Grant, in, name, column string, p schema.Privilege) {
		b.add("", in, name, column, string(p), g.Role, grantor, grantable)
	})
}

// grantColumn is a column of a table or a view. The id is 0 for a column of a view.
type grantColumn struct {
	id   schema.ColumnID
	name string
}

// eachTableGrant calls f for each grant on a table or view. It passes to f the grant, and the schema, the name and the
// columns of the table or view.
func (b *builder) eachTableGrant(f func(g *schema.Grant, in, name string, columns []grantColumn)) {
	for g := range b.catalog.Grants() {
		var columns []grantColumn
		if t := b.catalog.TableByID(g.On); t != nil {
			for _, c := range t.Columns {
				columns = append(columns, grantColumn{c.ID, c.Name})
			}
			f(g, t.Schema, t.Name, columns)
		} else if v := b.catalog.ViewByID(g.On); v != nil {
			for _, c := range v.Columns {
				columns = append(columns, grantColumn{name: c.Name})
			}
			f(g, v.Schema, v.Name, columns)
		}
	}
}

func (b *builder) eachColumnPrivilege(f func(g *schema.Grant, in, name, column string, p schema.Privilege)) {
	b.eachTableGrant(func(g *schema.Grant, in, name string, columns []grantColumn) {
		for p, some := range g.Privileges {
			for _, c := range columns {
				if p != schema.PrivilegeDelete && (len(some) == 0 || slices.Contains(some, c.id)) {
					f(g, in, name, c.name, p)
				}
			}
		}
	})
}

// eachStreamGrant calls f for each grant g that gives a role the privilege p on a change stream s.
func (b *builder) eachStreamGrant(p schema.Privilege, f func(g *schema.Grant, s *schema.ChangeStream)) {
	for g := range b.catalog.Grants() {
		if s := b.catalog.ChangeStreamByID(schema.ChangeStreamID(g.On)); s != nil && g.Holds(p, 0) {
			f(g, s)
		}
	}
}

func changeStreamPrivileges(b *builder) {
	b.eachStreamGrant(schema.PrivilegeSelect, func(g *schema.Grant, s *schema.ChangeStream) {
		b.add("", "", s.Name, string(schema.PrivilegeSelect), g.Role)
	})
}

func routinePrivileges(b *builder) {
	b.eachStreamGrant(schema.PrivilegeExecute, func(g *schema.Grant, s *schema.ChangeStream) {
		b.add("", "", readFunction(s), string(schema.PrivilegeExecute), g.Role)
	})
}

func roleRoutineGrants(b *builder) {
	b.eachStreamGrant(schema.PrivilegeExecute, func(g *schema.Grant, s *schema.ChangeStream) {
		b.add("", "", readFunction(s), string(schema.PrivilegeExecute), g.Role, grantor, grantable)
	})
}
