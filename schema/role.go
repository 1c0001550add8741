package schema

import (
	"iter"
	"slices"
	"strings"

	"github.com/cloudspannerecosystem/memefish/ast"

	"github.com/crowfoot-db/crowfoot/usererror"
)

// Role is a database role, which a session may be made with. Source: https://cloud.google.com/spanner/docs/fgac-about.
type Role struct{ Entity }

// Membership says that a role has, beside its own privileges, those of another.
type Membership struct {
	Entity        // its Name is both roles, the member first, so that the memberships of a role stand together
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

// The roles that every database has. Source: https://cloud.google.com/spanner/docs/fgac-system-roles.
const (
	PublicRole     = "public"              // every role is a member of it
	InfoReaderRole = "spanner_info_reader" // sees all rows of INFORMATION_SCHEMA
	SysReaderRole  = "spanner_sys_reader"  // may read SPANNER_SYS
)

var systemRoles = []string{PublicRole, InfoReaderRole, SysReaderRole}

const (
	reservedRolePrefix = "spanner_" // of the names of system roles
	// maxRoles is how many roles a database may have beside system roles. Source: https://cloud.google.com/spanner/quotas#database-limits.
	maxRoles = 100
)

func (*Role) kind() *objectKind       { return roles }
func (*Membership) kind() *objectKind { return memberships }

func (r *Role) sql(*Catalog) []string { return []string{"CREATE ROLE " + quote(r.Name)} }

func (m *Membership) sql(*Catalog) []string {
	return []string{"GRANT ROLE " + quote(m.Role) + " TO ROLE " + quote(m.Member)}
}

// RoleNames are the names of all roles, in order, those of system roles among them.
func (c *Catalog) RoleNames() []string {
	names := slices.Clone(systemRoles)
	for r := range objectsOf[*Role](c) {
		names = append(names, r.Name)
	}
	slices.Sort(names)
	return names
}

// IsSystemRole says whether a role is one that every database has.
func IsSystemRole(name string) bool { return slices.Contains(systemRoles, name) }

// Memberships are those that statements have granted, in order of creation.
func (c *Catalog) Memberships() iter.Seq[*Membership] { return objectsOf[*Membership](c) }

// role is the name of a role as it was made; false if there is none.
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

// enabled are the roles whose privileges a role has: itself, the roles that it is a member of, directly or not, and public.
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

// under are the objects of a kind whose names begin with a word.
func under[T Object](c *Catalog, kind *objectKind, word string) iter.Seq[T] {
	first := kind.key("", word+" ")
	return func(yield func(T) bool) {
		for key, n := range c.names.from(first) {
			if !strings.HasPrefix(key, first) {
				return
			}
			o, _ := c.objects.get(n.table)
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

// dropRole drops a role that has no privileges, with its memberships.
// Source: https://cloud.google.com/spanner/docs/reference/standard-sql/data-definition-language#drop-role.
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

// grantRoles is GRANT ROLE or, if revoke is set, REVOKE ROLE.
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

// rolesNamed are the roles that a statement names, as they were made.
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
