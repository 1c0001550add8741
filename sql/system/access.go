package system

import (
	"context"
	"strings"

	"github.com/crowfoot-db/crowfoot/schema"
)

type accessKey struct{}

// WithAccess is a context in which the rows of INFORMATION_SCHEMA are those of what a role has privileges on.
// Source: https://cloud.google.com/spanner/docs/information-schema#row-filtering.
func WithAccess(ctx context.Context, a *schema.Access) context.Context {
	return context.WithValue(ctx, accessKey{}, a)
}

// accessOf is the access of a context; nil if all rows are seen.
func accessOf(ctx context.Context) *schema.Access {
	a, _ := ctx.Value(accessKey{}).(*schema.Access)
	if a.SeesAll() {
		return nil
	}
	return a
}

// sees says whether the role whose rows are wanted may see a row: it has a privilege on what the row is about. Rows about neither a role nor
// something on which privileges are granted, such as options of the database, are seen by all.
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

// columnAt is the place of a column in the table; -1 if it has none of that name.
func (b *builder) columnAt(name string) int {
	for i, c := range b.table.Columns {
		if c.Name == name {
			return i
		}
	}
	return -1
}

// seesGrantee says whether the role may see what a grantee was granted. ROLE_*_GRANTS and ROLE_GRANTEES do not show what public was granted, and tables
// and columns that the role may see are shown with all who have privileges on them.
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

// seesAnyOf says whether the role may see a table: for rows that do not name it.
func (b *builder) seesAnyOf(t *schema.Table) bool {
	return b.access == nil || b.seesTable(t.Schema, t.Name, "")
}

// seesTable says whether the role has a privilege on a table or view, or on one of its columns if column is not "".
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
