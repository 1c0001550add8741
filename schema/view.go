package schema

import (
	"encoding/json"
	"slices"
	"strings"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/cloudspannerecosystem/memefish/ast"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// View is a query with a name.
type View struct {
	Entity
	Definition
	// Definer says that the view has SQL SECURITY DEFINER: a reader of the view needs no privileges on the tables
	// that the view reads. Otherwise the reader needs them.
	Definer bool         `json:"definer,omitempty"`
	Columns []ViewColumn `json:"columns"`
}

// ViewColumn is a column of a view's result.
type ViewColumn struct {
	Name string
	Type *value.Type
}

// storedViewColumn is a ViewColumn as it is stored. Type is a google.spanner.v1.Type message in JSON.
type storedViewColumn struct {
	Name string          `json:"name"`
	Type json.RawMessage `json:"type"`
}

// MarshalJSON encodes the column for storage.
func (c ViewColumn) MarshalJSON() ([]byte, error) {
	t, err := protojson.Marshal(c.Type.Proto())
	if err != nil {
		return nil, err
	}
	return json.Marshal(storedViewColumn{c.Name, t})
}

// UnmarshalJSON decodes what MarshalJSON has encoded.
func (c *ViewColumn) UnmarshalJSON(data []byte) error {
	var s storedViewColumn
	if err := json.Unmarshal(data, &s); err != nil {
		return err
	}
	var t spannerpb.Type
	if err := protojson.Unmarshal(s.Type, &t); err != nil {
		return err
	}
	c.Name = s.Name
	var err error
	c.Type, err = value.TypeFromProto(&t)
	return err
}

// TypeSQL prints the column's type as DDL writes it.
func (c *ViewColumn) TypeSQL() string { return typeSQL(c.Type) }

// typeSQL prints a type as DDL writes it, with MAX for all lengths.
func typeSQL(t *value.Type) string {
	c := Column{Type: t, LengthIsMax: true}
	if t.Kind == value.Struct || t.Kind == value.Array && t.Elem.Kind == value.Struct {
		return t.String()
	}
	return c.TypeSQL()
}

var viewKind = &objectKind{
	name: "view", noun: "View", stage: afterIndexes,
	empty: func() Object { return new(View) },
}

func (*View) kind() *objectKind { return viewKind }

// ViewByID returns the view with an ID, or nil.
func (c *Catalog) ViewByID(id TableID) *View {
	o, _ := c.objects.Get(id)
	v, _ := o.(*View)
	return v
}

// View returns the view called name ("v" or "schema.v"), ignoring case, or nil.
func (c *Catalog) View(name string) *View {
	v, _ := c.Object(name).(*View)
	return v
}

// Views returns the views in order of creation.
func (c *Catalog) Views() []*View { return slices.Collect(objectsOf[*View](c)) }

// Security returns "INVOKER" or "DEFINER".
func (v *View) Security() string {
	if v.Definer {
		return "DEFINER"
	}
	return "INVOKER"
}

func (v *View) sql(*Catalog) []string {
	return []string{"CREATE VIEW " + quotePath(v.Schema, v.Name) + " SQL SECURITY " + v.Security() + " AS " + v.SQL}
}

func (d *draft) createView(s *ast.CreateView) error {
	schema, name, err := d.path(viewKind.noun, s.Name)
	if err != nil {
		return err
	}
	if !d.src.Secured {
		return usererror.NoSQLSecurity(viewKind.noun, fullName(schema, name))
	}
	v := &View{Entity: Entity{Schema: schema, Name: name}, Definer: s.SecurityType == ast.SecurityTypeDefiner}
	v.SQL = strings.Clone(d.src.Body)
	old := d.View(fullName(schema, name))
	if old == nil || !s.OrReplace {
		return d.addView(v)
	}
	v.Entity = old.Entity
	now, err := v.compiled(d)
	if err != nil {
		return usererror.BadReplacement(viewKind.noun, v.FullName(), err)
	}
	if d.reaches(now, v.ID) {
		return usererror.RecursiveReplacement(viewKind.noun, v.FullName())
	}
	return d.replace(now, "alter VIEW")
}

// addView adds a new view.
func (d *draft) addView(v *View) error {
	var err error
	if v.Schema, err = d.findSchema(v.Schema); err != nil {
		return err
	}
	if err := d.checkNew(viewKind, v.Schema, v.Name); err != nil {
		return err
	}
	if len(d.Views()) >= MaxViews {
		return usererror.TooManyObjects(viewKind.noun, v.FullName(), MaxViews)
	}
	v.ID = d.newID()
	now, err := v.compiled(d)
	if err != nil {
		return usererror.BadDefinition("view", v.FullName(), err)
	}
	return d.replace(now, "")
}

func (v *View) compiled(d *draft) (defined, error) {
	columns, uses, err := d.compiler.CompileView(d.Catalog, v.SQL)
	if err != nil {
		return nil, err
	}
	n := *v
	n.Columns, n.Uses = columns, uses
	return &n, nil
}

func (v *View) changed(action, cause string, to defined) *usererror.Error {
	now := to.(*View)
	for i := range min(len(v.Columns), len(now.Columns)) {
		was, is := &v.Columns[i], &now.Columns[i]
		if was.Name != is.Name {
			return usererror.DependentRenamed(action, cause, v.FullName(), was.Name, is.Name)
		}
		if !was.Type.Equal(is.Type) {
			return usererror.DependentRetyped(action, cause, v.FullName(), was.Type.String(), is.Type.String())
		}
	}
	return nil
}

func (d *draft) dropView(s *ast.DropView) error {
	schema, name, err := d.path(viewKind.noun, s.Name)
	if err != nil {
		return err
	}
	v := d.View(fullName(schema, name))
	if v == nil {
		if s.IfExists {
			return d.nothing()
		}
		return viewKind.missing(schema, name)
	}
	if err := checkUnnamed("VIEW `"+v.FullName()+"`", d.dependentsOf(v.ID, nil)); err != nil {
		return err
	}
	d.drop(v)
	return nil
}
