package schema

import (
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/cloudspannerecosystem/memefish/ast"

	"github.com/crowfoot-db/crowfoot/usererror"
)

// Privilege is what a role may do with an object. Source: https://cloud.google.com/spanner/docs/fgac-privileges.
type Privilege string

const (
	PrivilegeSelect  Privilege = "SELECT"
	PrivilegeInsert  Privilege = "INSERT"
	PrivilegeUpdate  Privilege = "UPDATE"
	PrivilegeDelete  Privilege = "DELETE"
	PrivilegeExecute Privilege = "EXECUTE"
	PrivilegeUsage   Privilege = "USAGE"
)

// privileges are in the order in which DDL prints them.
var privileges = []Privilege{PrivilegeSelect, PrivilegeInsert, PrivilegeUpdate, PrivilegeDelete, PrivilegeExecute, PrivilegeUsage}

// Grant is what one role may do with one object, or with the objects of a schema: what statements have granted, taken together.
type Grant struct {
	Entity        // its Name is grantTarget, then the role, so that the grants on one object stand together
	Role   string `json:"role"`
	// On is a table, an object or a change stream; 0: a schema, Of. EXECUTE on a change stream is that on the function that reads it.
	On TableID `json:"on,omitempty"`
	Of string  `json:"of,omitempty"`
	// Privileges has the columns of those that are for some columns only, and nothing for those that are for the whole object.
	Privileges map[Privilege][]ColumnID `json:"privileges,omitempty"`
	// Revoked says that public does not have USAGE of the default schema, which it has unless that was revoked.
	Revoked bool `json:"revoked,omitempty"`
}

var grants = &objectKind{
	name: "grant", noun: "Grant", apart: true, stage: afterChangeStreams,
	empty: func() Object { return new(Grant) },
}

func (*Grant) kind() *objectKind { return grants }

// Grants are those that statements have granted, in order of creation.
func (c *Catalog) Grants() iter.Seq[*Grant] { return objectsOf[*Grant](c) }

// grantTarget is the first word of the names of the grants on an object, or on a schema if on is 0.
func grantTarget(on TableID, schema string) string {
	if on == 0 {
		return strconv.Quote(schema)
	}
	return strconv.FormatUint(uint64(on), 10)
}

// grantOf is what a role was granted on an object or schema; nil if that is nothing.
func (c *Catalog) grantOf(role string, on TableID, schema string) *Grant {
	return objectByName[*Grant](c, grants, "", grantTarget(on, schema)+" "+role)
}

// Holds says whether the grant has a privilege on a column, or on the whole object if column is 0.
func (g *Grant) Holds(p Privilege, column ColumnID) bool {
	columns, ok := g.Privileges[p]
	return ok && (len(columns) == 0 || column != 0 && slices.Contains(columns, column))
}

// A granting is what GRANT gives, or REVOKE takes, of one object or schema.
type granting struct {
	on     TableID
	schema string // if on is 0
	list   []grantedPrivilege
}

type grantedPrivilege struct {
	privilege Privilege
	columns   []ColumnID // nil: the whole object
}

func (d *draft) grantPrivileges(s *ast.Grant) error {
	if p, ok := s.Privilege.(*ast.RolePrivilege); ok {
		return d.changeGrants(d.grantRoles(p, s.Roles, false))
	}
	return d.changeGrants(d.eachGranting(s.Privilege, s.Roles, func(role string, g granting) error {
		if IsSystemRole(role) && role != PublicRole {
			return usererror.GrantToSystemRole(role)
		}
		if err := d.checkGranted(g); err != nil {
			return err
		}
		d.give(role, g)
		return nil
	}))
}

func (d *draft) revokePrivileges(s *ast.Revoke) error {
	if p, ok := s.Privilege.(*ast.RolePrivilege); ok {
		return d.changeGrants(d.grantRoles(p, s.Roles, true))
	}
	return d.changeGrants(d.eachGranting(s.Privilege, s.Roles, func(role string, g granting) error {
		d.take(role, g)
		return nil
	}))
}

// changeGrants ends a GRANT or REVOKE: one that has changed nothing has no effect.
func (d *draft) changeGrants(err error) error {
	if err == nil && d.objects == d.old.objects {
		return d.nothing()
	}
	return err
}

// eachGranting calls f for each role and each object that a GRANT or REVOKE names.
func (d *draft) eachGranting(p ast.Privilege, to []*ast.Ident, f func(role string, g granting) error) error {
	list, err := d.grantings(p)
	if err != nil {
		return err
	}
	roles, err := d.rolesNamed(to)
	if err != nil {
		return err
	}
	for _, role := range roles {
		for _, g := range list {
			if err := f(role, g); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkGranted refuses to grant what Spanner does not: the values of generated columns are never written.
func (d *draft) checkGranted(g granting) error {
	t := d.TableByID(g.on)
	for _, p := range g.list {
		for _, id := range p.columns {
			if c := t.columnByID(id); c.Generated != nil && p.privilege != PrivilegeSelect {
				return usererror.GrantOnGeneratedColumn(string(p.privilege), t.FullName(), c.Name)
			}
		}
	}
	return nil
}

// give adds privileges to those of a role. One on a whole table takes the place of the same one on columns.
func (d *draft) give(role string, g granting) {
	if g.on == 0 && g.schema == "" && role == PublicRole {
		d.setDefaultUsage(true)
		return
	}
	old := d.grantOf(role, g.on, g.schema)
	next := &Grant{Entity: Entity{Name: grantTarget(g.on, g.schema) + " " + role}, Role: role, On: g.on, Of: g.schema, Privileges: map[Privilege][]ColumnID{}}
	if old != nil {
		next.Entity, next.Privileges = old.Entity, maps.Clone(old.Privileges)
	}
	for _, p := range g.list {
		columns, has := next.Privileges[p.privilege]
		if has && len(columns) == 0 {
			continue
		}
		if p.columns == nil {
			columns = nil
		} else {
			columns = slices.Compact(slices.Sorted(slices.Values(slices.Concat(columns, p.columns))))
		}
		next.Privileges[p.privilege] = columns
	}
	d.replaceGrant(old, next)
}

// take removes privileges from those of a role. What is on a whole table is not taken from columns.
func (d *draft) take(role string, g granting) {
	if g.on == 0 && g.schema == "" && role == PublicRole {
		d.setDefaultUsage(false)
		return
	}
	old := d.grantOf(role, g.on, g.schema)
	if old == nil {
		return
	}
	next := *old
	next.Privileges = maps.Clone(old.Privileges)
	for _, p := range g.list {
		columns, has := next.Privileges[p.privilege]
		switch {
		case p.columns == nil:
			delete(next.Privileges, p.privilege)
		case has && len(columns) > 0:
			next.setColumns(p.privilege, without(columns, p.columns))
		}
	}
	d.replaceGrant(old, &next)
}

// setColumns makes a privilege one on some columns; without columns it is gone.
func (g *Grant) setColumns(p Privilege, columns []ColumnID) {
	if len(columns) == 0 {
		delete(g.Privileges, p)
		return
	}
	g.Privileges[p] = columns
}

func without(list, gone []ColumnID) (rest []ColumnID) {
	for _, id := range list {
		if !slices.Contains(gone, id) {
			rest = append(rest, id)
		}
	}
	return rest
}

// replaceGrant puts a grant in the place of another, which may be nil. A grant of nothing is none.
func (d *draft) replaceGrant(old, next *Grant) {
	if old != nil && maps.EqualFunc(old.Privileges, next.Privileges, slices.Equal[[]ColumnID]) {
		return
	}
	if len(next.Privileges) == 0 {
		if old != nil {
			d.drop(old)
		}
		return
	}
	if old == nil {
		next.ID = d.newID()
	}
	d.put(next)
}

// setDefaultUsage says whether public has USAGE of the default schema.
func (d *draft) setDefaultUsage(has bool) {
	revoked := d.grantOf(PublicRole, 0, "")
	switch {
	case has && revoked != nil:
		d.drop(revoked)
	case !has && revoked == nil:
		d.put(&Grant{Entity: Entity{ID: d.newID(), Name: grantTarget(0, "") + " " + PublicRole}, Role: PublicRole, Revoked: true})
	}
}

// dropGrants drops the grants on what the statement has dropped: tables, change streams, objects and schemas. A column on which privileges are granted cannot be dropped.
func (d *draft) dropGrants() {
	dropOn := func(on TableID, schema string) {
		for _, g := range slices.Collect(under[*Grant](d.Catalog, grants, grantTarget(on, schema))) {
			d.drop(g)
		}
	}
	differences(d.old.tables, d.tables, func(id TableID, _, after *Table) {
		if after == nil {
			dropOn(id, "")
		}
	})
	differences(d.old.objects, d.objects, func(id TableID, _, after Object) {
		if after == nil {
			dropOn(id, "")
		}
	})
	for _, s := range d.old.Streams {
		if !slices.ContainsFunc(d.Streams, func(now *ChangeStream) bool { return now.ID == s.ID }) {
			dropOn(TableID(s.ID), "")
		}
	}
	for _, s := range d.old.Schemas {
		if !slices.Contains(d.Schemas, s) {
			dropOn(0, s)
		}
	}
}

// grantedOn are the roles that have privileges on a column by its name; "" if there are none. Those on the whole table do not count.
func (c *Catalog) grantedOn(t *Table, col *Column) string {
	var roles []string
	for g := range under[*Grant](c, grants, grantTarget(t.ID, "")) {
		named := func(columns []ColumnID) bool { return slices.Contains(columns, col.ID) }
		if slices.ContainsFunc(slices.Collect(maps.Values(g.Privileges)), named) {
			roles = append(roles, g.Role)
		}
	}
	return strings.Join(roles, ", ")
}

// target is how DDL names what a grant is on: TABLE t.
func (g *Grant) target(c *Catalog) string {
	if g.On == 0 {
		if g.Of == "" {
			return "SCHEMA DEFAULT"
		}
		return "SCHEMA " + quote(g.Of)
	}
	if t := c.TableByID(g.On); t != nil {
		return "TABLE " + quotePath(t.Schema, t.Name)
	}
	if s := c.ChangeStreamByID(ChangeStreamID(g.On)); s != nil {
		return "CHANGE STREAM " + quote(s.Name)
	}
	o, _ := c.objects.get(g.On)
	return strings.ToUpper(o.kind().noun) + " " + quotePath(o.entity().Schema, o.entity().Name)
}

// ChangeStreamByID returns the change stream with a number, or nil.
func (c *Catalog) ChangeStreamByID(id ChangeStreamID) *ChangeStream {
	if at := slices.IndexFunc(c.Streams, func(s *ChangeStream) bool { return s.ID == id }); at >= 0 {
		return c.Streams[at]
	}
	return nil
}

func (g *Grant) sql(c *Catalog) (stmts []string) {
	target := g.target(c)
	if g.Revoked {
		return []string{"REVOKE USAGE ON " + target + " FROM ROLE " + PublicRole}
	}
	var list []string
	for _, p := range privileges {
		columns, ok := g.Privileges[p]
		switch {
		case !ok:
		case p == PrivilegeExecute:
			s := c.ChangeStreamByID(ChangeStreamID(g.On))
			stmts = append(stmts, "GRANT EXECUTE ON TABLE FUNCTION "+quote(ReadFunctionPrefix+s.Name)+" TO ROLE "+quote(g.Role))
		case len(columns) > 0:
			list = append(list, string(p)+"("+columnsSQL(c.TableByID(g.On).columnsByID(columns))+")")
		default:
			list = append(list, string(p))
		}
	}
	if list != nil {
		stmts = slices.Insert(stmts, 0, "GRANT "+strings.Join(list, ", ")+" ON "+target+" TO ROLE "+quote(g.Role))
	}
	return stmts
}
