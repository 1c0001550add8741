package sequence

import (
	"strings"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// Names finds the sequences of a catalog by name. SQL functions use it.
type Names struct {
	counters *Counters
	catalog  func() *schema.Catalog
}

// In returns Names for one catalog.
func (c *Counters) In(catalog *schema.Catalog) *Names {
	return &Names{c, func() *schema.Catalog { return catalog }}
}

// Newest returns Names that always use the newest catalog, for expressions that outlive a schema version.
func (c *Counters) Newest() *Names { return &Names{c, func() *schema.Catalog { return c.newest() }} }

// Next takes the next value of the sequence of this name.
func (n *Names) Next(name string) (int64, error) {
	s := n.catalog().Sequence(name)
	if s == nil {
		return 0, usererror.SequenceNotFound(name)
	}
	return n.counters.Next(s.FullName(), &s.Generator)
}

// State returns the number that the counter of a sequence gives out next. ok is false if the counter was never used.
func (n *Names) State(name string) (next int64, ok bool, err error) {
	s := n.catalog().Sequence(name)
	if s == nil {
		return 0, false, usererror.SequenceNotFound(name)
	}
	return n.counters.State(&s.Generator)
}

// IdentityState returns the number that the counter of an identity column gives out next. ok is false if the counter
// was never used. path is "table.column" or "schema.table.column".
func (n *Names) IdentityState(path string) (next int64, ok bool, err error) {
	dot := strings.LastIndexByte(path, '.')
	if parts := strings.Count(path, ".") + 1; parts != 2 && parts != 3 {
		return 0, false, usererror.BadColumnIdentifier(path)
	}
	table, column := path[:dot], path[dot+1:]
	t := n.catalog().Table(table)
	if t == nil {
		return 0, false, usererror.IdentityTableNotFound(table)
	}
	c := t.Column(column)
	if c == nil || c.Identity == nil {
		return 0, false, usererror.IdentityColumnNotFound(table, column)
	}
	return n.counters.State(c.Identity)
}
