package system

import (
	"context"
	"strings"

	"github.com/crowfoot-db/crowfoot/schema"
)

type accessKey struct{}

// WithAccess returns a context in which INFORMATION_SCHEMA has only the rows that a role may see. a is the role's
// access.
// Source: https://cloud.google.com/spanner/docs/information-schema#row-filtering.
func WithAccess(ctx context.Context, a *schema.Access) context.Context {
	return context.WithValue(ctx, accessKey{}, a)
}

// accessOf returns the access that WithAccess has put in the context. It returns nil if the reader may see all rows.
func accessOf(ctx context.Context) *schema.Access {
	a, _ := ctx.Value(accessKey{}).(*schema.Access)
	if a.SeesAll() {
		return nil
	}
	return a
}

// sees reports whether the role of b.access may see a row. It may see a row about a schema object if it has a
// privilege on the object, a row about a role if it has that role's privileges, and all other rows, such as options
// of the database.
func (b *builder) sees(cells []any) bool {
	if b.access == nil {
		return true
	}
	text := func(column string) (string, bool) {
		at := b.columnAt(column)
		if at < 0 {
			return "", false
		}
		s, ok := cells[at].(string)
		return s, ok
	}
	if grantee, ok := text("GRANTEE"); ok && !b.seesGrantee(grantee) {
		return false
	}
	if name, ok := text("CHANGE_STREAM_NAME"); ok {
		return b.seesStream(name, schema.PrivilegeSelect)
	}
	if name, ok := text("SPECIFIC_NAME"); ok {
		stream, isRead := strings.CutPrefix(name, schema.ReadFunctionPrefix)
		return !isRead || b.seesStream(stream, schema.PrivilegeExecute)
	}
	switch b.table.Name {
	case "ROLES":
		name, _ := text("ROLE_NAME")
		return b.access.IsEnabled(name)
	case "SEQUENCES", "SEQUENCE_OPTIONS":
		in, _ := text("SCHEMA")
		name, _ := text("NAME")
		o := b.catalog.Object(path(in, name))
		return o != nil && b.access.HasAny(o.Number())
	}
	name, ok := text("TABLE_NAME")
	if !ok {
		return true
	}
	in, _ := text("TABLE_SCHEMA")
	column, _ := text("COLUMN_NAME")
	return b.seesTable(in, name, column)
}

// columnAt returns the index of a column in the table, -1 if the table has no such column.
func (b *builder) columnAt(name string) int {
	for i, c := range b.table.Columns {
		if c.Name == name {
			return i
		}
	}
	return -1
}

// seesGrantee reports whether the role may see rows about the privileges of a grantee. In most tables it may see them
// if it has the grantee's privileges itself. ROLE_*_GRANTS and ROLE_GRANTEES never show privileges of public.
// TABLE_PRIVILEGES and COLUMN_PRIVILEGES show the privileges of all grantees, but only on tables and columns that the
// role may see.
func (b *builder) seesGrantee(grantee string) bool {
	switch {
	case strings.HasPrefix(b.table.Name, "ROLE_"):
		return grantee != schema.PublicRole && b.access.IsEnabled(grantee)
	case b.table.Name == "TABLE_PRIVILEGES" || b.table.Name == "COLUMN_PRIVILEGES":
		return true
	}
	return b.access.IsEnabled(grantee)
}

func (b *builder) seesStream(name string, p schema.Privilege) bool {
	s := b.catalog.ChangeStream(name)
	return s != nil && b.access.Has(schema.TableID(s.ID), p, 0)
}

// seesAnyOf reports whether the role may see the table t. It is for system tables whose rows do not name t.
func (b *builder) seesAnyOf(t *schema.Table) bool {
	return b.access == nil || b.seesTable(t.Schema, t.Name, "")
}

// seesTable reports whether the role may see a table or view, given by its schema (in) and its name. Every role may
// see built-in tables; a role may see another table or view if it has a privilege on it. If the parameter column is not
// "", it names a column of a table, and the role needs a privilege that includes this column.
func (b *builder) seesTable(in, name, column string) bool {
	if in == InformationSchema || in == SpannerSys {
		return true
	}
	t := b.catalog.TableOrSynonym(path(in, name))
	switch {
	case t == nil:
		o := b.catalog.Object(path(in, name))
		return o != nil && b.access.HasAny(o.Number())
	case column == "":
		return b.access.HasAny(t.ID)
	}
	c := t.Column(column)
	return c != nil && b.access.HasAnyOn(t.ID, c.ID)
}
