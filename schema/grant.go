package schema

import (
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/cloudspannerecosystem/memefish/ast"

	"github.com/crowfoot-db/crowfoot/schema/immutable"
	"github.com/crowfoot-db/crowfoot/schema/syntax"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// Privilege is an action that a role can be allowed to take on an object. Source:
// https://cloud.google.com/spanner/docs/fgac-privileges.
type Privilege string

const (
	PrivilegeSelect  Privilege = "SELECT"
	PrivilegeInsert  Privilege = "INSERT"
	PrivilegeUpdate  Privilege = "UPDATE"
	PrivilegeDelete  Privilege = "DELETE"
	PrivilegeExecute Privilege = "EXECUTE"
	PrivilegeUsage   Privilege = "USAGE"
)

// privileges lists all privileges in the order in which DDL prints them.
var privileges = []Privilege{PrivilegeSelect, PrivilegeInsert, PrivilegeUpdate, PrivilegeDelete, PrivilegeExecute, PrivilegeUsage}

// Grant holds the privileges that one role has on one object or schema. Several statements may have granted them.
type Grant struct {
	// The Entity's Name is the result of grantTarget, a space and the role. So all grants on one object are adjacent in
	// the catalog's sorted map of names.
	Entity
	Role string `json:"role"`
	// On is the ID of the table, the object or the change stream that the grant is about. It is 0 if the grant is about
	// a schema. EXECUTE on a change stream means EXECUTE on the function that reads the change stream.
	On TableID `json:"on,omitempty"`
	// Of is the name of the schema that the grant is about, if On is 0. The name of the default schema is "".
	Of string `json:"of,omitempty"`
	// Privileges maps each privilege to the columns for which it was granted. No columns means the whole object.
	Privileges map[Privilege][]ColumnID `json:"privileges,omitempty"`
	// Revoked says that a statement has revoked USAGE of the default schema from the role public. At first, public has
	// this privilege.
	Revoked bool `json:"revoked,omitempty"`
}

var grants = &objectKind{
	name: "grant", noun: "Grant", apart: true, stage: afterChangeStreams,
	empty: func() Object { return new(Grant) },
}

func (*Grant) kind() *objectKind { return grants }

// Grants yields the grants that statements have made, in order of creation.
func (c *Catalog) Grants() iter.Seq[*Grant] { return objectsOf[*Grant](c) }

// grantTarget returns the first word of the Name of a Grant. The parameter on is the ID of the object that the grant is
// about. If this ID is 0, the grant is about a schema, and the parameter schema is the name of the schema.
func grantTarget(on TableID, schema string) string {
	if on == 0 {
		return strconv.Quote(schema)
	}
	return strconv.FormatUint(uint64(on), 10)
}

// grantOf returns the grant of a role on one object or schema, or nil. The parameter on is the ID of the object. If
// this ID is 0, the grant is about a schema, and the parameter schema is the name of the schema.
func (c *Catalog) grantOf(role string, on TableID, schema string) *Grant {
	return objectByName[*Grant](c, grants, "", grantTarget(on, schema)+" "+role)
}

// Holds reports whether the grant has a privilege on a column, or on the whole object if column is 0.
func (g *Grant) Holds(p Privilege, column ColumnID) bool {
	columns, ok := g.Privileges[p]
	return ok && (len(columns) == 0 || column != 0 && slices.Contains(columns, column))
}

// A granting is the part of a GRANT or REVOKE statement about one object or schema.
type granting struct {
	on     TableID // the ID of the object; 0 if the granting is about a schema
	schema string  // the name of the schema, if the granting is about a schema
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
		d.grant(role, g)
		return nil
	}))
}

func (d *draft) revokePrivileges(s *ast.Revoke) error {
	if p, ok := s.Privilege.(*ast.RolePrivilege); ok {
		return d.changeGrants(d.grantRoles(p, s.Roles, true))
	}
	return d.changeGrants(d.eachGranting(s.Privilege, s.Roles, func(role string, g granting) error {
		d.revoke(role, g)
		return nil
	}))
}

// changeGrants runs at the end of a GRANT or REVOKE. err is the error of the earlier steps, or nil; changeGrants
// returns it. If there is no error and no grant has changed, changeGrants notes that the statement has no effect.
func (d *draft) changeGrants(err error) error {
	if err == nil && d.objects == d.old.objects {
		return d.nothing()
	}
	return err
}

// eachGranting calls f for each pair of a role and an object that a GRANT or REVOKE names.
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

// checkGranted returns an error if g grants a privilege to write a generated column, because Spanner does not grant it.
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

// grant gives privileges to a role. A privilege on a whole table replaces the same privilege on columns.
func (d *draft) grant(role string, g granting) {
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

// revoke takes privileges from a role. If a statement revokes a privilege on columns, a role that has this privilege on
// the whole table keeps it.
func (d *draft) revoke(role string, g granting) {
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

// setColumns sets the columns for which a privilege is granted. If columns is empty, it removes the privilege.
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

// replaceGrant replaces grant old, which may be nil, by next. If next has no privileges, it drops old.
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

// setDefaultUsage sets whether the role public has the privilege USAGE on the default schema.
func (d *draft) setDefaultUsage(has bool) {
	revoked := d.grantOf(PublicRole, 0, "")
	switch {
	case has && revoked != nil:
		d.drop(revoked)
	case !has && revoked == nil:
		d.put(&Grant{Entity: Entity{ID: d.newID(), Name: grantTarget(0, "") + " " + PublicRole}, Role: PublicRole, Revoked: true})
	}
}

// dropGrants drops the grants on everything that the statement has dropped: tables, change streams, objects and
// schemas. It need not look at columns, because a column with grants cannot be dropped.
func (d *draft) dropGrants() {
	dropOn := func(on TableID, schema string) {
		for _, g := range slices.Collect(under[*Grant](d.Catalog, grants, grantTarget(on, schema))) {
			d.drop(g)
		}
	}
	immutable.Differences(d.old.tables, d.tables, func(id TableID, _, after *Table) {
		if after == nil {
			dropOn(id, "")
		}
	})
	immutable.Differences(d.old.objects, d.objects, func(id TableID, _, after Object) {
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

// grantedOn returns the names of the roles that have a privilege on the column itself, separated by commas.
// Privileges on the whole table do not count.
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

// target returns the kind and the name of the object or schema to which the grant applies, as DDL writes them: TABLE t.
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
	o, _ := c.objects.Get(g.On)
	return strings.ToUpper(o.kind().noun) + " " + quotePath(o.entity().Schema, o.entity().Name)
}

// ChangeStreamByID returns the change stream with an ID, or nil.
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

// ReadFunctionPrefix begins the name of the table-valued function that reads a change stream: READ_ and the stream's
// name. Source:
// https://cloud.google.com/spanner/docs/change-streams/details#query-syntax.
const ReadFunctionPrefix = "READ_"

// grantings returns the objects that a GRANT or REVOKE names, each with the privileges that the statement lists.
func (d *draft) grantings(p ast.Privilege) ([]granting, error) {
	switch p := p.(type) {
	case *ast.PrivilegeOnTable:
		return eachPath(p.Names, func(name *ast.Path) (granting, error) {
			t, err := d.find(name)
			if err != nil {
				return granting{}, err
			}
			list, err := d.privilegesOn(t, p.Privileges)
			return granting{on: t.ID, list: list}, err
		})
	case *ast.PrivilegeOnAllTablesInSchema:
		return d.allIn(p.Schemas, func(schema string) (list []granting, err error) {
			for t := range d.Tables() {
				if !sameName(t.Schema, schema) {
					continue
				}
				on, err := d.privilegesOn(t, p.Privileges)
				if err != nil {
					return nil, err
				}
				list = append(list, granting{on: t.ID, list: on})
			}
			return list, nil
		})
	case *ast.PrivilegeOnSequence:
		return d.objectsNamed("Sequence", p.Names, wholePrivileges(p.Privileges))
	case *ast.PrivilegeOnAllSequencesInSchema:
		return d.allObjectsIn("Sequence", p.Schemas, wholePrivileges(p.Privileges))
	case *ast.SelectPrivilegeOnView:
		return d.objectsNamed("View", p.Names, whole(PrivilegeSelect))
	case *ast.SelectPrivilegeOnAllViewsInSchema:
		return d.allObjectsIn("View", p.Schemas, whole(PrivilegeSelect))
	case *ast.SelectPrivilegeOnChangeStream:
		return d.streamsNamed("Change Stream", "", p.Names, PrivilegeSelect)
	case *ast.SelectPrivilegeOnAllChangeStreamsInSchema:
		return d.allIn(p.Schemas, func(schema string) (list []granting, err error) {
			for _, s := range d.Streams {
				if schema == "" { // all change streams are in the default schema
					list = append(list, granting{on: TableID(s.ID), list: whole(PrivilegeSelect)})
				}
			}
			return list, nil
		})
	case *ast.ExecutePrivilegeOnTableFunction:
		return d.streamsNamed("Table Function", ReadFunctionPrefix, p.Names, PrivilegeExecute)
	case *ast.UsagePrivilegeOnSchema:
		return d.allIn(p.Schemas, func(schema string) ([]granting, error) {
			return []granting{{schema: schema, list: whole(PrivilegeUsage)}}, nil
		})
	}
	return nil, usererror.DDLUnimplemented("This form of GRANT or REVOKE")
}

func whole(p Privilege) []grantedPrivilege { return []grantedPrivilege{{privilege: p}} }

// eachPath calls f for each name in names and returns the results in the same order. It ends at the first error.
func eachPath(names []*ast.Path, f func(*ast.Path) (granting, error)) ([]granting, error) {
	list := make([]granting, len(names))
	for i, name := range names {
		var err error
		if list[i], err = f(name); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// privilegesOn returns the privileges on table t that a statement lists. Each privilege may have a list of columns.
func (d *draft) privilegesOn(t *Table, list []ast.TablePrivilege) ([]grantedPrivilege, error) {
	granted := make([]grantedPrivilege, len(list))
	for i, p := range list {
		privilege, columns := tablePrivilege(p)
		granted[i].privilege = privilege
		for _, name := range columns {
			c, err := t.column(name)
			if err != nil {
				return nil, err
			}
			granted[i].columns = append(granted[i].columns, c.ID)
		}
	}
	return granted, nil
}

func wholePrivileges(list []ast.TablePrivilege) []grantedPrivilege {
	granted := make([]grantedPrivilege, len(list))
	for i, p := range list {
		granted[i].privilege, _ = tablePrivilege(p)
	}
	return granted
}

func tablePrivilege(p ast.TablePrivilege) (Privilege, []*ast.Ident) {
	switch p := p.(type) {
	case *ast.SelectPrivilege:
		return PrivilegeSelect, p.Columns
	case *ast.InsertPrivilege:
		return PrivilegeInsert, p.Columns
	case *ast.UpdatePrivilege:
		return PrivilegeUpdate, p.Columns
	}
	return PrivilegeDelete, nil
}

// objectsNamed returns one granting for each name in names: it grants the privileges in list on the object with that
// name. noun is the word for the kind of these objects, as errors write it.
func (d *draft) objectsNamed(noun string, names []*ast.Path, list []grantedPrivilege) ([]granting, error) {
	return eachPath(names, func(path *ast.Path) (granting, error) {
		schema, name, err := d.path(noun, path)
		if err != nil {
			return granting{}, err
		}
		if o := d.Object(fullName(schema, name)); o != nil && o.kind().noun == noun {
			return granting{on: o.Number(), list: list}, nil
		}
		return granting{}, usererror.SchemaObjectNotFound(noun, fullName(schema, name))
	})
}

// allObjectsIn returns one granting for each object of a kind in the given schemas: it grants the privileges in list on
// that object. noun is the word for the kind, as errors write it.
func (d *draft) allObjectsIn(noun string, schemas []*ast.Path, list []grantedPrivilege) ([]granting, error) {
	return d.allIn(schemas, func(schema string) (all []granting, err error) {
		for o := range objectsOf[Object](d.Catalog) {
			if o.kind().noun == noun && sameName(o.entity().Schema, schema) {
				all = append(all, granting{on: o.Number(), list: list})
			}
		}
		return all, nil
	})
}

// streamsNamed returns one granting for each name in names: it grants privilege p on a change stream. If prefix is "",
// the name is that of the change stream. Otherwise it is that of the function that reads the change stream, and
// consists of prefix and the name of the stream.
func (d *draft) streamsNamed(noun, prefix string, names []*ast.Path, p Privilege) ([]granting, error) {
	return eachPath(names, func(path *ast.Path) (granting, error) {
		schema, name, err := d.path(noun, path)
		if err != nil {
			return granting{}, err
		}
		if schema == "" && len(name) > len(prefix) && sameName(name[:len(prefix)], prefix) {
			if s := d.ChangeStream(name[len(prefix):]); s != nil {
				return granting{on: TableID(s.ID), list: whole(p)}, nil
			}
		}
		return granting{}, usererror.SchemaObjectNotFound(noun, fullName(schema, name))
	})
}

// defaultSchema is the word for the default schema in GRANT and REVOKE.
const defaultSchema = syntax.DefaultName

// allIn calls f for each schema that a statement names, and returns all results.
func (d *draft) allIn(schemas []*ast.Path, f func(schema string) ([]granting, error)) (all []granting, err error) {
	for _, path := range schemas {
		_, name, err := d.path("Schema", path)
		if err != nil {
			return nil, err
		}
		if sameName(name, defaultSchema) {
			name = ""
		}
		if name, err = d.findSchema(name); err != nil {
			return nil, err
		}
		list, err := f(strings.Clone(name))
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	return all, nil
}
