package schema

import (
	"reflect"
	"slices"
	"strings"

	"github.com/crowfoot-db/crowfoot/usererror"
)

// Definition is the SQL text that a view or a function stands for.
type Definition struct {
	SQL string `json:"sql"` // as written, but for comments
	// Uses are what the text names, in the order in which it names them.
	Uses []Use `json:"uses,omitempty"`
}

func (f *Definition) definition() *Definition { return f }

// Use is a table or an object that a Definition names; of the proto bundle, types. What a view that it names reads is not among its uses.
type Use struct {
	ID      TableID    `json:"id"`
	Columns []ColumnID `json:"columns,omitempty"` // of a table
	Indexes []string   `json:"indexes,omitempty"` // of a table, by their full names: those of FORCE_INDEX
}

// defined is an object that has a Definition.
type defined interface {
	Object
	definition() *Definition
	// compiled is the object anew, with what its text yields in the draft.
	compiled(d *draft) (defined, error)
	// changed says what another version of the object would change for those who use it; nil if nothing.
	changed(action, cause string, now defined) *usererror.Error
}

// dependentsOf are the views and functions that name a table or an object and of which uses, if it is not nil, is true.
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

// checkUnnamed refuses to drop what views or functions name; what is TABLE `t`, column `c`, and so on.
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

// definedNames lists names in order.
func definedNames(list []defined) string {
	var names []string
	for _, o := range list {
		names = append(names, o.entity().FullName())
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// reaches says whether an object names another one, itself or by way of those that it names.
func (c *Catalog) reaches(o defined, id TableID) bool {
	seen := map[TableID]bool{}
	var visit func(o defined) bool
	visit = func(o defined) bool {
		for _, u := range o.definition().Uses {
			if u.ID == id {
				return true
			}
			if next := c.definedBy(u.ID); next != nil && !seen[u.ID] {
				seen[u.ID] = true
				if visit(next) {
					return true
				}
			}
		}
		return false
	}
	return visit(o)
}

// definedBy is the view or function with a number, or nil.
func (c *Catalog) definedBy(id TableID) defined {
	o, _ := c.objects.get(id)
	found, _ := o.(defined)
	return found
}

// depth is how many views and functions stand on each other in o, itself included.
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

// checkDepth refuses an object that makes itself, or one that stands on it, too deep.
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

// replaces says whether an object of the draft takes the place of an older one.
func (d *draft) replaces(o Object) bool {
	_, is := d.old.objects.get(o.entity().ID)
	return is
}

// replace puts a view or a function in the place of the one with its number. Those that stand on it must stay what they are.
func (d *draft) replace(o defined, action string) error {
	d.put(o)
	if err := d.checkDepth(o); err != nil || !d.replaces(o) {
		return err
	}
	return d.revalidate(action, o.entity().FullName(), d.dependentsOf(o.entity().ID, nil))
}

// revalidate compiles views and functions again, after cause, which they name, has changed by an action such as "alter VIEW".
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
		if o.kind() == functionKind { // its type may be another one
			if err := d.revalidate(action, cause, d.dependentsOf(o.entity().ID, nil)); err != nil {
				return err
			}
		}
	}
	return nil
}

// revalidateColumn is revalidate for a column that was altered.
func (d *draft) revalidateColumn(t *Table, name string) error {
	c := t.Column(name)
	before := d.old.TableByID(t.ID).columnByID(c.ID)
	if before == nil || before.Type.Equal(c.Type) {
		return nil
	}
	return d.revalidate("alter column", t.FullName()+"."+c.Name, d.dependentsOf(t.ID, usesColumn(c.ID)))
}

// inOrder sorts objects so that those that others name come first; otherwise they stay in their order.
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
