package schema

import (
	"slices"
	"sort"
	"strings"

	"github.com/cloudspannerecosystem/memefish/ast"

	"github.com/crowfoot-db/crowfoot/usererror"
)

func (d *draft) dropTable(s *ast.DropTable) error {
	t, err := d.table(s.Name)
	if err != nil {
		if s.IfExists && isMissing(err) {
			return d.nothing()
		}
		return err
	}
	if err := d.checkDroppable(t); err != nil {
		return err
	}
	for len(t.ForeignKeys) > 0 {
		d.dropForeignKey(t.ForeignKeys[0])
	}
	d.leave(t)
	d.change.DroppedTables = append(d.change.DroppedTables, d.old.TableByID(t.ID))
	return nil
}

// checkDroppable returns an error if anything but the table's own foreign keys depends on it.
func (d *draft) checkDroppable(t *Table) error {
	if names := namesOf(d.Children(t), (*Table).FullName); names != "" {
		return usererror.DropTableWithChildren(t.FullName(), names)
	}
	own := func(i *Index) bool { return !i.Managed }
	if names := namesOf(filter(t.Indexes, own), (*Index).FullName); names != "" {
		return usererror.DropTableWithIndexes(t.FullName(), names)
	}
	others := func(fk *ForeignKey) bool { return fk.Table != t }
	if names := d.foreignKeyNames(t, others); names != "" {
		return usererror.DropTableReferenced(t.FullName(), names)
	}
	if err := checkUnnamed("TABLE `"+t.FullName()+"`", d.dependentsOf(t.ID, nil)); err != nil {
		return err
	}
	if streams := d.streamsNaming(t, nil); streams != nil {
		return usererror.DropWatchedTable(t.FullName(), len(streams), namesOf(streams, changeStreamName))
	}
	return nil
}

// streamsNaming returns the change streams that name a table, or a column of it if c is not nil.
func (c *Catalog) streamsNaming(t *Table, col *Column) []*ChangeStream {
	return filter(c.Streams, func(s *ChangeStream) bool {
		_, named := s.watches(t)
		return named != nil && (col == nil || slices.Contains(named.Columns, col.ID))
	})
}

func changeStreamName(s *ChangeStream) string { return s.Name }

// namesOf returns sorted names as "a,b,c".
func namesOf[T any](list []*T, name func(*T) string) string {
	var names []string
	for _, x := range list {
		names = append(names, name(x))
	}
	sort.Strings(names)
	return strings.Join(names, ",")
}

func filter[T any](list []*T, keep func(*T) bool) []*T {
	var kept []*T
	for _, x := range list {
		if keep(x) {
			kept = append(kept, x)
		}
	}
	return kept
}

func remove[T any](list []*T, x *T) []*T {
	return slices.DeleteFunc(list, func(y *T) bool { return y == x })
}
