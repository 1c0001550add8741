package schema

import (
	"iter"
	"slices"
	"strings"

	"github.com/cloudspannerecosystem/memefish/ast"

	"github.com/crowfoot-db/crowfoot/usererror"
)

// Role is a database role. A client can create a session with a role. Source:
// https://cloud.google.com/spanner/docs/fgac-about.
type Role struct{ Entity }

// Membership says that the role Member is a member of Role, so that it has the privileges of Role, too.
type Membership struct {
	// The Entity's Name is Member, a space and Role. So all memberships of one member are adjacent in the catalog's
	// sorted map of names.
	Entity
	Role   string `json:"role"`
	Member string `json:"member"`
}

var (
	roles = &objectKind{
		name: "role", noun: "Role", apart: true, stage: afterChangeStreams,
		empty: func() Object { return new(Role) },
	}
	memberships = &objectKind{
		name: "membership", noun: "Membership", apart: true, stage: afterChangeStreams,
		empty: func() Object { return new(Membership) },
	}
)

// These roles exist in every database. Source: https://cloud.google.com/spanner/docs/fgac-system-roles.
const (
	PublicRole     = "public"              // every role is a member of public
	InfoReaderRole = "spanner_info_reader" // a member sees all rows of INFORMATION_SCHEMA
	SysReaderRole  = "spanner_sys_reader"  // a member may read SPANNER_SYS
)

var systemRoles = []string{PublicRole, InfoReaderRole, SysReaderRole}

const (
	reservedRolePrefix = "spanner_" // begins the names of all system roles except public
	// maxRoles is the largest number of roles in a database; system roles do not count. Source:
	// https://cloud.google.com/spanner/quotas#database-limits.
	maxRoles = 100
)

func (*Role) kind() *objectKind       { return roles }
func (*Membership) kind() *objectKind { return memberships }

func (r *Role) sql(*Catalog) []string { return []string{"CREATE ROLE " + quote(r.Name)} }

func (m *Membership) sql(*Catalog) []string {
	return []string{"GRANT ROLE " + quote(m.Role) + " TO ROLE " + quote(m.Member)}
}

// RoleNames returns the sorted names of all roles, including system roles.
func (c *Catalog) RoleNames() []string {
	names := slices.Clone(systemRoles)
	for r := range objectsOf[*Role](c) {
		names = append(names, r.Name)
	}
	slices.Sort(names)
	return names
}

// IsSystemRole reports whether name is a role that exists in every database.
func IsSystemRole(name string) bool { return slices.Contains(systemRoles, name) }

// Memberships yields the memberships that statements have granted, in order of creation.
func (c *Catalog) Memberships() iter.Seq[*Membership] { return objectsOf[*Membership](c) }

// role finds a role, ignoring case. It returns the role's name as the catalog spells it. It returns false if there is
// no such role.
func (c *Catalog) role(name string) (string, bool) {
	for _, system := range systemRoles {
		if sameName(system, name) {
			return system, true
		}
	}
	if r := objectByName[*Role](c, roles, "", name); r != nil {
		return r.Name, true
	}
	return "", false
}

// enabled returns the roles whose privileges a role has: the role itself, public, and the roles of which it is a
// member, directly or through other roles.
func (c *Catalog) enabled(role string) []string {
	list := []string{role}
	for at := 0; at < len(list); at++ {
		for m := range under[*Membership](c, memberships, list[at]) {
			if !slices.Contains(list, m.Role) {
				list = append(list, m.Role)
			}
		}
	}
	if role != PublicRole {
		list = append(list, PublicRole)
	}
	return list
}

// under yields the objects of a kind whose names begin with word and a space.
func under[T Object](c *Catalog, kind *objectKind, word string) iter.Seq[T] {
	first := kind.key("", word+" ")
	return func(yield func(T) bool) {
		for key, n := range c.names.From(first) {
			if !strings.HasPrefix(key, first) {
				return
			}
			o, _ := c.objects.Get(n.table)
			if !yield(o.(T)) {
				return
			}
		}
	}
}

func (d *draft) createRole(s *ast.CreateRole) error {
	name := strings.Clone(s.Name.Name)
	if isReservedRole(name) {
		return usererror.ReservedRoleName(name)
	}
	if err := d.checkNew(roles, "", name); err != nil {
		return err
	}
	if len(d.RoleNames())-len(systemRoles) >= maxRoles {
		return usererror.TooManyObjects(roles.noun, name, maxRoles)
	}
	d.put(&Role{Entity{ID: d.newID(), Name: name}})
	return nil
}

func isReservedRole(name string) bool {
	return sameName(name, PublicRole) || strings.HasPrefix(strings.ToLower(name), reservedRolePrefix)
}

// dropRole drops a role and its memberships. It returns an error if the role still has privileges. Source:
// https://cloud.google.com/spanner/docs/reference/standard-sql/data-definition-language#drop-role.
func (d *draft) dropRole(s *ast.DropRole) error {
	name, ok := d.role(s.Name.Name)
	switch {
	case !ok:
		return roles.missing("", s.Name.Name)
	case IsSystemRole(name):
		return usererror.DropSystemRole(name)
	}
	for g := range d.Grants() {
		if g.Role == name {
			return usererror.DropRoleWithPrivileges(name, g.target(d.Catalog))
		}
	}
	for _, m := range slices.Collect(d.Memberships()) {
		if m.Role == name || m.Member == name {
			d.drop(m)
		}
	}
	d.drop(objectByName[*Role](d.Catalog, roles, "", name))
	return nil
}

// grantRoles runs GRANT ROLE or, if revoke is set, REVOKE ROLE.
func (d *draft) grantRoles(p *ast.RolePrivilege, to []*ast.Ident, revoke bool) error {
	granted, err := d.rolesNamed(p.Names)
	if err != nil {
		return err
	}
	members, err := d.rolesNamed(to)
	if err != nil {
		return err
	}
	for _, member := range members {
		for _, role := range granted {
			if revoke {
				d.revokeRole(role, member)
			} else if err := d.grantRole(role, member); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *draft) grantRole(role, member string) error {
	switch {
	case role == PublicRole:
		return usererror.GrantPublicRole()
	case IsSystemRole(member):
		return usererror.GrantToSystemRole(member)
	case slices.Contains(d.enabled(role), member):
		return usererror.RoleCycle(role, member)
	}
	name := member + " " + role
	if objectByName[*Membership](d.Catalog, memberships, "", name) == nil {
		d.put(&Membership{Entity: Entity{ID: d.newID(), Name: name}, Role: role, Member: member})
	}
	return nil
}

func (d *draft) revokeRole(role, member string) {
	if m := objectByName[*Membership](d.Catalog, memberships, "", member+" "+role); m != nil {
		d.drop(m)
	}
}

// rolesNamed finds the roles that a statement names, ignoring case. It returns their names as the catalog spells them.
func (d *draft) rolesNamed(names []*ast.Ident) ([]string, error) {
	list := make([]string, len(names))
	for i, n := range names {
		name, ok := d.role(n.Name)
		if !ok {
			return nil, roles.missing("", n.Name)
		}
		list[i] = name
	}
	return list, nil
}
