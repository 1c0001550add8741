package schema

import (
	"strings"

	"github.com/cloudspannerecosystem/memefish/ast"

	"github.com/crowfoot-db/crowfoot/usererror"
)

// ReadFunctionPrefix begins the name of the table-valued function that reads a change stream: READ_<stream>. Source:
// https://cloud.google.com/spanner/docs/change-streams/details#query-syntax.
const ReadFunctionPrefix = "READ_"

// grantings returns the objects that a GRANT or REVOKE names, with the privileges on each.
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
				if schema == "" { // other schemas have no change streams
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

// eachPath calls f for each name and collects the results.
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

// privilegesOn returns the privileges on a table that a statement lists. Each may have a list of columns.
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

// objectsNamed returns the named objects of a kind. Errors call the kind noun.
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

// allObjectsIn returns all objects of a kind in the given schemas.
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

// streamsNamed returns the named change streams. With a prefix, the names are those of functions that read the streams.
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

// defaultSchema is the name of the schema "" in GRANT and REVOKE.
const defaultSchema = "default"

// allIn calls f for each schema that a statement names, and collects the results.
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
