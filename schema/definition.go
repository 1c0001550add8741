package schema

import (
	"reflect"
	"slices"
	"strings"

	"github.com/crowfoot-db/crowfoot/usererror"
)

// Definition is the SQL text of a view or a function.
type Definition struct {
	SQL string `json:"sql"` // as the user wrote it, without comments
	// Uses lists the tables and objects that the text names, in the order of the text.
	Uses []Use `json:"uses,omitempty"`
}

func (f *Definition) definition() *Definition { return f }

// Use is a table or an object that a Definition names. If the Definition names a view, the view is a Use, but the
// tables that the view reads are not. A Use can also be the proto bundle, if the Definition names one of its types.
type Use struct {
	ID      TableID    `json:"id"`
	Columns []ColumnID `json:"columns,omitempty"` // the columns that the Definition names, if the Use is a table
	Indexes []string   `json:"indexes,omitempty"` // the full names of the indexes that the Definition names in FORCE_INDEX
}

// defined is an object that has a Definition.
type defined interface {
	Object
	definition() *Definition
	// compiled returns a new version of the object, which is compiled with the catalog of the draft.
	compiled(d *draft) (defined, error)
	// changed compares the object with its new version, which is the parameter now. It returns an error if the new
	// version would break a user of the object, else nil. Two parameters are for the text of the error: action says
	// what the statement does, such as "alter VIEW", and cause is the name of the object that the statement changes.
	changed(action, cause string, now defined) *usererror.Error
}

// dependentsOf lists the views and functions that name the table or object with the given ID. Each of them has a Use of
// that table or object. The parameter uses may be a filter: dependentsOf then leaves out the views and functions for
// whose Use the filter returns false. If uses is nil, dependentsOf lists all.
func (c *Catalog) dependentsOf(id TableID, uses func(*Use) bool) (list []defined) {
	for o := range objectsOf[defined](c) {
		if slices.ContainsFunc(o.definition().Uses, func(u Use) bool { return u.ID == id && (uses == nil || uses(&u)) }) {
			list = append(list, o)
		}
	}
	return list
}

func usesColumn(id ColumnID) func(*Use) bool {
	return func(u *Use) bool { return slices.Contains(u.Columns, id) }
}

func usesIndex(name string) func(*Use) bool {
	return func(u *Use) bool {
		return slices.ContainsFunc(u.Indexes, func(used string) bool { return sameName(used, name) })
	}
}

// checkUnnamed returns an error if list is not empty. list has the views and functions that name an object; while there
// are any, the object cannot be dropped. The parameter what describes the object in the error, such as
// TABLE `t` or column `c`.
func checkUnnamed(what string, list []defined) error {
	views, functions := list, []defined(nil)
	if at := slices.IndexFunc(list, func(o defined) bool { return o.kind() != viewKind }); at >= 0 {
		views = slices.DeleteFunc(slices.Clone(list), func(o defined) bool { return o.kind() != viewKind })
		functions = list[at:]
	}
	switch {
	case len(views) > 0:
		return usererror.DropUnderViews(what, definedNames(views))
	case len(functions) > 0:
		return usererror.DropUnderFunction(what, definedNames(functions[:1]))
	}
	return nil
}

// definedNames returns the sorted names of the objects in list, separated by commas, for an error.
func definedNames(list []defined) string {
	var names []string
	for _, o := range list {
		names = append(names, o.entity().FullName())
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// reaches reports whether o names the object with the given ID, directly or through other views and functions.
func (c *Catalog) reaches(o defined, id TableID) bool {
	visited := map[TableID]bool{}
	var visit func(o defined) bool
	visit = func(o defined) bool {
		for _, u := range o.definition().Uses {
			if u.ID == id {
				return true
			}
			if next := c.definedBy(u.ID); next != nil && !visited[u.ID] {
				visited[u.ID] = true
				if visit(next) {
					return true
				}
			}
		}
		return false
	}
	return visit(o)
}

// definedBy returns the view or function with the given ID, or nil.
func (c *Catalog) definedBy(id TableID) defined {
	o, _ := c.objects.Get(id)
	found, _ := o.(defined)
	return found
}

// depth returns the length of the longest chain of views and functions that starts at o, in which each one names the
// next. known caches results by ID.
func (c *Catalog) depth(o defined, known map[TableID]int) int {
	id := o.entity().ID
	if n := known[id]; n > 0 {
		return n
	}
	deepest := 0
	for _, u := range o.definition().Uses {
		if below := c.definedBy(u.ID); below != nil {
			deepest = max(deepest, c.depth(below, known))
		}
	}
	known[id] = deepest + 1
	return deepest + 1
}

// checkDepth returns an error if a changed object makes a chain of views and functions too long, whether the chain
// begins with that object or with another one that depends on it.
func (d *draft) checkDepth(changed defined) error {
	known := map[TableID]int{}
	if d.depth(changed, known) > maxViewNesting {
		return usererror.TooDeepViews(changed.entity().FullName(), maxViewNesting)
	}
	if !d.replaces(changed) {
		return nil
	}
	for o := range objectsOf[defined](d.Catalog) {
		if d.depth(o, known) > maxViewNesting {
			return usererror.TooDeepViews(o.entity().FullName(), maxViewNesting)
		}
	}
	return nil
}

// replaces reports whether the old catalog has an object with the ID of o. If so, o is the new version of that object.
func (d *draft) replaces(o Object) bool {
	_, is := d.old.objects.Get(o.entity().ID)
	return is
}

// replace puts o in place of the view or function with the same ID. It returns an error if o would break views or
// functions that depend on it.
func (d *draft) replace(o defined, action string) error {
	d.put(o)
	if err := d.checkDepth(o); err != nil || !d.replaces(o) {
		return err
	}
	return d.revalidate(action, o.entity().FullName(), d.dependentsOf(o.entity().ID, nil))
}

// revalidate compiles the views and functions in list again, because they name the object called cause, which was
// changed by an action such as "alter VIEW". It returns an error if one of them does not compile, or if its new version
// breaks its own users.
func (d *draft) revalidate(action, cause string, list []defined) error {
	for _, o := range list {
		now, err := o.compiled(d)
		if err != nil {
			return usererror.DependentInvalid(action, cause, o.kind().noun, o.entity().FullName(), err.Error())
		}
		if err := o.changed(action, cause, now); err != nil {
			return err
		}
		if reflect.DeepEqual(o, now) {
			continue
		}
		d.put(now)
		if o.kind() == functionKind { // the type of the function may have changed
			if err := d.revalidate(action, cause, d.dependentsOf(o.entity().ID, nil)); err != nil {
				return err
			}
		}
	}
	return nil
}

// revalidateColumn runs revalidate for the views and functions that name an altered column, if the column's type has
// changed.
func (d *draft) revalidateColumn(t *Table, name string) error {
	c := t.Column(name)
	before := d.old.TableByID(t.ID).columnByID(c.ID)
	if before == nil || before.Type.Equal(c.Type) {
		return nil
	}
	return d.revalidate("alter column", t.FullName()+"."+c.Name, d.dependentsOf(t.ID, usesColumn(c.ID)))
}

// inOrder sorts objects so that each comes after those that it names. Apart from that, it preserves their order.
func (c *Catalog) inOrder(list []Object) []Object {
	sorted := make([]Object, 0, len(list))
	done := map[TableID]bool{}
	here := map[TableID]Object{}
	for _, o := range list {
		here[o.entity().ID] = o
	}
	var add func(o Object)
	add = func(o Object) {
		if done[o.entity().ID] {
			return
		}
		done[o.entity().ID] = true
		if o, ok := o.(defined); ok {
			for _, u := range o.definition().Uses {
				if below := here[u.ID]; below != nil {
					add(below)
				}
			}
		}
		sorted = append(sorted, o)
	}
	for _, o := range list {
		add(o)
	}
	return sorted
}
