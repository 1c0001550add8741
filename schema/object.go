package schema

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"

	"github.com/crowfoot-db/crowfoot/schema/descriptor"
	"github.com/crowfoot-db/crowfoot/schema/immutable"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// Object is a schema object that is not a table, a part of a table or a change stream. An Object is immutable: a
// statement that alters it makes a new one with the same ID. It is stored as its kind and the JSON of its exported
// fields.
type Object interface {
	entity() *Entity
	// Number returns the object's ID.
	Number() TableID
	kind() *objectKind
	// sql returns the statements that create the object, as GetDatabaseDdl prints them.
	sql(c *Catalog) []string
}

// Entity is the ID and the name of an Object. Each type that implements Object embeds an Entity.
type Entity struct {
	ID     TableID `json:"id"`
	Schema string  `json:"schema,omitempty"` // "" is the default schema
	Name   string  `json:"name"`
}

func (e *Entity) entity() *Entity { return e }

// FullName returns the object's name as SQL writes it: schema.name, or name in the default schema.
func (e *Entity) FullName() string { return fullName(e.Schema, e.Name) }

// Number implements Object.
func (e *Entity) Number() TableID { return e.ID }

// objectKind describes one kind of objects.
type objectKind struct {
	// name identifies the kind in stored catalogs.
	name string
	// noun is the word for the kind in errors.
	noun string
	// apart says that objects of the kind have a name space of their own, so that such an object and a table can have
	// the same name.
	apart bool
	// stage says where GetDatabaseDdl prints objects of the kind.
	stage stage
	// empty returns a new object of the kind, into which JSON can be decoded.
	empty func() Object
}

// stage is a section of the output of GetDatabaseDdl.
type stage uint8

const (
	beforeTables stage = iota
	afterIndexes
	afterChangeStreams
)

// objectKinds lists the kinds of objects. GetDatabaseDdl prints the kinds of one stage in this order.
var objectKinds = []*objectKind{protoBundles, localityGroups, placements, sequences, functionKind, viewKind, roles, memberships, grants, statisticsPackages}

// key returns the key of an object of the kind in a catalog's map of names.
func (k *objectKind) key(schema, name string) string {
	if k.apart {
		return strings.ToLower(k.name + " " + name) // the space keeps this key distinct from the names of tables
	}
	return key(schema, name)
}

// objectsOf yields the objects of type T, in order of creation.
func objectsOf[T Object](c *Catalog) iter.Seq[T] {
	return func(yield func(T) bool) {
		for _, o := range c.objects.All() {
			if found, ok := o.(T); ok && !yield(found) {
				return
			}
		}
	}
}

// objectByName returns the object with the given kind, schema and name, or nil. It ignores case.
func objectByName[T Object](c *Catalog, kind *objectKind, schema, name string) (found T) {
	if n, ok := c.names.Get(kind.key(schema, name)); ok && n.kind == nameOfObject {
		o, _ := c.objects.Get(n.table)
		found, _ = o.(T)
	}
	return found
}

// Object returns the object called name ("o" or "schema.o"), ignoring case; nil if there is none. It finds only
// objects of kinds that share the name space of tables.
func (c *Catalog) Object(name string) Object {
	if n, ok := c.names.Get(strings.ToLower(name)); ok && n.kind == nameOfObject {
		o, _ := c.objects.Get(n.table)
		return o
	}
	return nil
}

// checkNew returns an error if a new object of the given kind cannot have the given name.
func (d *draft) checkNew(kind *objectKind, schema, name string) error {
	if err := checkName(kind.noun, name); err != nil {
		return err
	}
	if _, err := d.findSchema(schema); err != nil {
		return err
	}
	return d.checkFreeKey(kind.key(schema, name), fullName(schema, name))
}

// put registers an object under its ID and its name. If the draft has another version of the object, with the same ID,
// o replaces it.
func (d *draft) put(o Object) {
	e := o.entity()
	d.objects = d.objects.With(e.ID, o)
	d.names = d.names.With(o.kind().key(e.Schema, e.Name), named{e.ID, nameOfObject})
}

// drop removes what put has registered for o.
func (d *draft) drop(o Object) {
	e := o.entity()
	d.objects = d.objects.Without(e.ID)
	d.names = d.names.Without(o.kind().key(e.Schema, e.Name))
}

// objectsSQL prints the statements that create the objects of a stage.
func (c *Catalog) objectsSQL(at stage) (stmts []string) {
	var list []Object
	for o := range objectsOf[Object](c) {
		if c.stageOf(o) == at {
			list = append(list, o)
		}
	}
	slices.SortStableFunc(list, func(a, b Object) int {
		return cmp.Compare(slices.Index(objectKinds, a.kind()), slices.Index(objectKinds, b.kind()))
	})
	for _, o := range c.inOrder(list) {
		stmts = append(stmts, o.sql(c)...)
	}
	return stmts
}

// measureObjects adds to d.size the number of bytes by which the DDL text of all objects is longer in the draft than in
// the old catalog.
func (d *draft) measureObjects() {
	length := func(c *Catalog, o Object) (n int) {
		if o == nil {
			return 0
		}
		for _, s := range o.sql(c) {
			n += len(s)
		}
		return n
	}
	immutable.Differences(d.old.objects, d.objects, func(_ TableID, before, after Object) {
		d.size += length(d.Catalog, after) - length(d.old, before)
	})
	if !d.renamed {
		return
	}
	for g := range d.Grants() { // the DDL of a grant contains the name of a table, which may have changed
		if before, _ := d.old.objects.Get(g.ID); before == Object(g) {
			d.size += length(d.Catalog, g) - length(d.old, g)
		}
	}
}

// storedKind is used to decode only the kind of a stored object. Kind is "" for a stored table, so the loader can tell
// tables from objects.
type storedKind struct {
	Kind string `json:"kind,omitempty"`
}

// storeObjects adds to the encoding each object that is new or has changed in a version of the catalog. The parameter
// before is the previous version, and the parameter after is the version that is encoded. For an object that only the
// previous version has, storeObjects adds nil.
func (e *Encoding) storeObjects(before, after *Catalog) (err error) {
	immutable.Differences(before.objects, after.objects, func(id TableID, was, is Object) {
		switch {
		case is == nil:
			e.Objects[id] = nil
		case was == nil || !reflect.DeepEqual(was, is):
			data, failed := storeObject(is)
			e.Objects[id], err = data, cmp.Or(err, failed)
		}
	})
	return err
}

func storeObject(o Object) ([]byte, error) {
	data, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	kind, err := json.Marshal(o.kind().name)
	if err != nil {
		return nil, err
	}
	return slices.Concat([]byte(`{"kind":`), kind, []byte{','}, data[1:]), nil
}

// loadObjects decodes the objects that differ from the previous version. encoded holds the encodings of objects and of
// tables. loadObjects decodes no tables; it returns their encodings.
func (l *loader) loadObjects(encoded map[TableID][]byte) (tables map[TableID][]byte, err error) {
	tables = map[TableID][]byte{}
	for id, data := range encoded {
		before, isObject := l.objects.Get(id)
		if isObject {
			l.drop(before)
		}
		if data == nil {
			if !isObject {
				tables[id] = nil
			}
			continue
		}
		var stored storedKind
		if err := json.Unmarshal(data, &stored); err != nil {
			return nil, err
		}
		if stored.Kind == "" {
			tables[id] = data
			continue
		}
		if err := l.loadObject(id, stored.Kind, data); err != nil {
			return nil, fmt.Errorf("object %d: %w", id, err)
		}
	}
	return tables, nil
}

func (l *loader) loadObject(id TableID, kind string, data []byte) error {
	at := slices.IndexFunc(objectKinds, func(k *objectKind) bool { return k.name == kind })
	if at < 0 {
		return fmt.Errorf("unknown kind %q", kind)
	}
	o := objectKinds[at].empty()
	if err := json.Unmarshal(data, o); err != nil {
		return err
	}
	if o.entity().ID != id {
		return fmt.Errorf("it is stored as %d", o.entity().ID)
	}
	if o.entity().Name == "" {
		return errors.New("it has no name")
	}
	if b, ok := o.(*ProtoBundle); ok {
		var err error
		if b.types, err = descriptor.Load(b.Descriptors); err != nil {
			return err
		}
	}
	l.put(o)
	return nil
}

// missing returns the error for a statement that names an object of the kind if there is no object with that name.
func (k *objectKind) missing(schema, name string) error {
	return usererror.SchemaObjectNotFound(k.noun, fullName(schema, name))
}
