package prepare

import (
	"slices"
	"strings"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/stats"
	"github.com/crowfoot-db/crowfoot/stats/cpu"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// Projection holds the table or index and the columns that a READ names, and everything else that is the same for all
// READs of these columns in one schema version.
type Projection struct {
	*table.Projection
	Access       *stats.Access
	Dependencies *schema.Dependencies
	Copied       bool        // the table or index has a columnar copy
	Needs        *Needs      // privileges to read the columns
	KeyNeeds     *Needs      // privileges for a READ that names keys of rows: to read the columns and the key columns
	Typical      cpu.Typical // typical CPU time of reads with this Projection
}

// Projection resolves the table, index and columns that a READ names. index is "" for a read of the table itself. The
// result is cached.
func (p *Preparer) Projection(tableName, index string, columns []string) (*Projection, error) {
	key := projectionKey(tableName, index, columns)
	if found, ok := p.projections.Get(key); ok {
		return found, nil
	}
	made, err := project(p.catalog, tableName, index, columns)
	if err != nil {
		return nil, err
	}
	p.projections.Put(key, made)
	return made, nil
}

func projectionKey(tableName, index string, columns []string) string {
	size := len(tableName) + len(index) + 2
	for _, c := range columns {
		size += len(c) + 1
	}
	var b strings.Builder
	b.Grow(size)
	b.WriteString(tableName)
	b.WriteByte(0)
	b.WriteString(index)
	for _, c := range columns {
		b.WriteByte(0)
		b.WriteString(c)
	}
	return b.String()
}

func project(c *schema.Catalog, tableName, index string, columns []string) (*Projection, error) {
	t := c.TableOrSynonym(tableName)
	if t == nil {
		return nil, usererror.TableNotFound(tableName)
	}
	var x *schema.Index
	if index != "" {
		if x = t.Index(index); x == nil || x.State != schema.IndexReadWrite {
			return nil, usererror.IndexNotFound(index, t.FullName())
		}
	}
	list := make([]*schema.Column, len(columns))
	for i, name := range columns {
		if list[i] = t.Column(name); list[i] == nil {
			return nil, usererror.ColumnNotFound(t.FullName(), name)
		}
	}
	p, err := table.NewProjection(t, x, list)
	if err != nil {
		return nil, err
	}
	target, key := t.FullName(), t.Key
	if x != nil {
		target, key = x.FullName(), x.Key
	}
	copied := x == nil && c.TableIsColumnar(t) || x != nil && c.IndexIsColumnar(x)
	read := &Projection{Projection: p, Copied: copied, Access: stats.NewRead(target, namesOf(list), shownOf(list, x)), Dependencies: new(schema.Dependencies)}
	read.Dependencies.Read(t, x, list)
	read.Needs = &Needs{list: readNeeds(t, list)}
	read.KeyNeeds = &Needs{list: readNeeds(t, slices.Concat(list, schema.KeyColumns(key)))}
	return read, nil
}

// shownOf returns the columns of a READ as READ_COLUMNS shows them. For a read of a table, each primary key column is
// shown as _exists. Cloud Spanner shows it so in a published study, Pablo Arrojo's comparison of SQL and READ.
func shownOf(list []*schema.Column, x *schema.Index) []string {
	names := namesOf(list)
	for i, c := range list {
		if x == nil && c.KeyOrdinal >= 0 {
			names[i] = stats.Exists
		}
	}
	return names
}
