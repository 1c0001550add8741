package schema

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/cloudspannerecosystem/memefish/ast"
	"github.com/cloudspannerecosystem/memefish/token"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// MaxProtoBundle is how many bytes the descriptors of a bundle have at most.
// Source: https://cloud.google.com/spanner/docs/reference/standard-sql/protocol-buffers#limitations.
const MaxProtoBundle = 5 << 20

// ProtoBundle is the messages and enumerations of protocol buffers that are types of the database. A database has one at most.
// Source: https://cloud.google.com/spanner/docs/reference/standard-sql/data-definition-language#proto_bundle_statements.
type ProtoBundle struct {
	Entity
	// Types are the full names of the types, sorted.
	Types []string `json:"types"`
	// Descriptors is a serialized google.protobuf.FileDescriptorSet: the files that define Types, and those that they import.
	Descriptors []byte `json:"descriptors"`
	// Revision counts the changes of the bundle. A table that uses types has the number of the bundle with which it was compiled.
	Revision int `json:"revision"`

	types *protoTypes // what Descriptors says
}

var protoBundles = &objectKind{
	name: "proto_bundle", noun: "Proto Bundle", apart: true, stage: beforeTables,
	empty: func() Object { return new(ProtoBundle) },
}

// bundleName is the name of the one proto bundle among the objects of its kind.
const bundleName = "proto_bundle"

// ProtoBundle is the proto bundle of the database, or nil.
func (c *Catalog) ProtoBundle() *ProtoBundle {
	return objectByName[*ProtoBundle](c, protoBundles, "", bundleName)
}

func (*ProtoBundle) kind() *objectKind { return protoBundles }

func (b *ProtoBundle) sql(*Catalog) []string { return []string{b.SQL()} }

// SQL is the statement that makes the bundle.
func (b *ProtoBundle) SQL() string {
	var s strings.Builder
	s.WriteString("CREATE PROTO BUNDLE (\n")
	for _, name := range b.Types {
		s.WriteString("  " + quoteDotted(name) + ",\n")
	}
	s.WriteString(")")
	return s.String()
}

// quoteDotted is a.b.C as DDL has it, in back quotes if a part of it needs them.
func quoteDotted(name string) string {
	for part := range strings.SplitSeq(name, ".") {
		if token.QuoteSQLIdent(part) != part {
			return "`" + name + "`"
		}
	}
	return name
}

// Type is the type of the bundle that is called name, as SQL and DDL may name it; nil if there is none.
func (b *ProtoBundle) Type(name string) *value.Type {
	if b == nil || !b.has(name) {
		return nil
	}
	return b.Defined(name)
}

// has says whether a type is one of Types.
func (b *ProtoBundle) has(name string) bool {
	_, ok := slices.BinarySearch(b.Types, name)
	return ok
}

// Defined is the type called name that the files of the bundle define: one of Types, or one that fields of these have. It is nil if there is none.
func (b *ProtoBundle) Defined(name string) *value.Type {
	if b == nil || b.types == nil {
		return nil
	}
	return b.types.typeOf(name)
}

// Extension is the extension of a message that has a field number, nil if there is none.
func (b *ProtoBundle) Extension(message protoreflect.FullName, number protoreflect.FieldNumber) protoreflect.FieldDescriptor {
	return b.types.extension(message, number)
}

// ExtensionsOf are the extensions of a message.
func (b *ProtoBundle) ExtensionsOf(message protoreflect.FullName) []protoreflect.FieldDescriptor {
	return b.types.extensions[message]
}

// load implements loadable.
func (b *ProtoBundle) load() (err error) {
	set, err := parseDescriptors(b.Descriptors)
	if err != nil {
		return err
	}
	b.types, err = newProtoTypes(set)
	return err
}

// typeNames are the full names in a list of a statement.
func typeNames(list *ast.ProtoBundleTypes) (names []string) {
	for _, t := range list.Types {
		names = append(names, dotted(t))
	}
	return names
}

// dotted is the name of a type as one text: a.b.C.
func dotted(t *ast.NamedType) string {
	var parts []string
	for _, i := range t.Path {
		parts = append(parts, i.Name)
	}
	return strings.Join(parts, ".")
}

func (d *draft) createProtoBundle(s *ast.CreateProtoBundle) error {
	if d.ProtoBundle() != nil {
		return usererror.ProtoBundleExists()
	}
	names := typeNames(s.Types)
	return d.setProtoBundle(nil, names, names)
}

func (d *draft) alterProtoBundle(s *ast.AlterProtoBundle) error {
	old := d.ProtoBundle()
	if old == nil {
		return usererror.NoProtoBundle()
	}
	names := slices.Clone(old.Types)
	var given []string // the types that the request defines
	if s.Insert != nil {
		given = append(given, typeNames(s.Insert.Types)...)
		names = append(names, given...)
	}
	if s.Update != nil {
		for _, name := range typeNames(s.Update.Types) {
			if !old.has(name) {
				return usererror.ProtoTypeToUpdateNotFound(name)
			}
			given = append(given, name)
		}
	}
	if s.Delete != nil {
		gone := map[string]bool{}
		for _, name := range typeNames(s.Delete.Types) {
			if !old.has(name) || gone[name] {
				return usererror.ProtoTypeToDeleteNotFound(name)
			}
			gone[name] = true
		}
		kept := slices.DeleteFunc(names[:len(old.Types):len(old.Types)], func(name string) bool { return gone[name] })
		names = append(kept, names[len(old.Types):]...)
	}
	if len(given) == 0 && len(names) == len(old.Types) {
		return d.nothing()
	}
	return d.setProtoBundle(old, names, given)
}

func (d *draft) dropProtoBundle() error {
	old := d.ProtoBundle()
	if old == nil {
		return usererror.NoProtoBundle()
	}
	return d.setProtoBundle(old, nil, nil)
}

// setProtoBundle makes a bundle of types in the place of old, which may be nil. The descriptors of the request define those that are given, the old bundle
// the others.
func (d *draft) setProtoBundle(old *ProtoBundle, names, given []string) error {
	slices.Sort(names)
	for i := 1; i < len(names); i++ {
		if names[i] == names[i-1] {
			return usererror.ProtoTypeExists(names[i])
		}
	}
	if len(names) == 0 {
		if err := d.checkTypesUnused(old, nil); err != nil {
			return err
		}
		d.drop(old)
		return d.changeProtoBundle(old, nil)
	}
	b, err := d.newProtoBundle(old, names, given)
	if err != nil {
		return err
	}
	if old != nil && slices.Equal(old.Types, b.Types) && bytes.Equal(old.Descriptors, b.Descriptors) {
		return d.nothing()
	}
	if err := d.checkTypesUnused(old, b); err != nil {
		return err
	}
	d.put(b)
	if err := d.checkTypes(b, given); err != nil {
		return err
	}
	return d.changeProtoBundle(old, b)
}

// changeProtoBundle has views, functions and tables use b in the place of old, which may be nil.
func (d *draft) changeProtoBundle(old, b *ProtoBundle) error {
	if old != nil {
		if err := d.revalidate("alter PROTO BUNDLE", bundleName, d.dependentsOf(old.ID, nil)); err != nil {
			return err
		}
	}
	return d.useProtoBundle(old, b)
}

func (d *draft) newProtoBundle(old *ProtoBundle, names, given []string) (*ProtoBundle, error) {
	b := &ProtoBundle{Entity: Entity{Name: bundleName}, Types: names, Revision: 1}
	if old != nil {
		b.ID, b.Revision = old.ID, old.Revision+1
	} else {
		b.ID = d.newID()
	}
	for i, name := range b.Types {
		b.Types[i] = strings.Clone(name)
	}
	var err error
	if b.Descriptors, b.types, err = mergeDescriptors(old, d.protoDescriptors, names, given); err != nil {
		return nil, err
	}
	if len(b.Descriptors) > MaxProtoBundle {
		return nil, usererror.ProtoBundleTooLarge(len(b.Descriptors), MaxProtoBundle)
	}
	return b, nil
}

// checkTypes has the SQL analyzer look at types that a request defines: its library may refuse descriptors that Go's accepts.
func (d *draft) checkTypes(b *ProtoBundle, names []string) error {
	t := &Table{Name: "t", ProtoBundle: b}
	for i, name := range names {
		t.Columns = append(t.Columns, &Column{Name: "c" + strconv.Itoa(i), Type: b.Type(name), Ordinal: i, KeyOrdinal: -1})
	}
	if _, err := d.compiler.CompileExpr(d.Catalog, t, "TRUE", value.BoolType); err != nil {
		return usererror.BadProtoDescriptors(err.Error())
	}
	return nil
}

// checkTypesUnused refuses to take a type away that a column has.
func (d *draft) checkTypesUnused(old, b *ProtoBundle) error {
	if old == nil {
		return nil
	}
	for t := range d.Tables() {
		for _, c := range t.Columns {
			if e := elementOf(c.Type); e.Name != "" {
				is := b.Type(e.Name)
				if is == nil || is.Kind != e.Kind {
					return usererror.ProtoTypeInUse(e.Name, t.FullName()+"."+c.Name)
				}
			}
		}
	}
	return nil
}

// elementOf is the type of the elements of an ARRAY, and any other type itself.
func elementOf(t *value.Type) *value.Type { return cmp.Or(t.Elem, t) }

// useProtoBundle has the tables that use types of the old bundle use those of b. Existing values of an ENUM must be among its numbers if it has lost some.
func (d *draft) useProtoBundle(old, b *ProtoBundle) error {
	var list []*Table
	for t := range d.Tables() {
		if t.ProtoBundle != nil {
			list = append(list, t)
		}
	}
	for _, t := range list {
		t = d.own(d.TableByID(t.ID))
		t.ProtoBundle = b
		for _, c := range t.Columns {
			was := *c
			c.Type = b.typed(c.Type)
			if lostNumbers(elementOf(was.Type), elementOf(c.Type)) {
				d.validate(ValidateEnum, t, c, &was)
			}
		}
		if err := d.recompile(t); err != nil {
			return err
		}
		if err := d.compareComputed(t); err != nil {
			return err
		}
	}
	return nil
}

// redefinedMessage says whether a field, or the type of one, is another one. A field that is gone is none: what reads it does not compile. The messages seen
// are left out.
func redefinedMessage(was, is protoreflect.MessageDescriptor, seen map[protoreflect.FullName]bool) bool {
	if was == nil || is == nil {
		return was != is
	}
	if seen[was.FullName()] {
		return false
	}
	seen[was.FullName()] = true
	for i := range was.Fields().Len() {
		f := was.Fields().Get(i)
		g := is.Fields().ByName(f.Name())
		if g == nil {
			if is.Fields().ByNumber(f.Number()) != nil {
				return true
			}
			continue
		}
		if f.Number() != g.Number() || f.Kind() != g.Kind() || f.Cardinality() != g.Cardinality() || !f.Default().Equal(g.Default()) {
			return true
		}
		if redefinedEnum(f.Enum(), g.Enum()) || redefinedMessage(f.Message(), g.Message(), seen) {
			return true
		}
	}
	return false
}

// redefinedEnum says whether a value has another name or number. One that is gone has none: ValidateEnum looks for it in the rows.
func redefinedEnum(was, is protoreflect.EnumDescriptor) bool {
	if was == nil || is == nil {
		return was != is
	}
	for i := range was.Values().Len() {
		v := was.Values().Get(i)
		if w := is.Values().ByName(v.Name()); w == nil && is.Values().ByNumber(v.Number()) != nil || w != nil && w.Number() != v.Number() {
			return true
		}
	}
	return false
}

// callsWithTypes says whether a text has the name of a function that uses types of the bundle.
func (d *draft) callsWithTypes(sql string, b *ProtoBundle) bool {
	for f := range objectsOf[*Function](d.Catalog) {
		if d.reaches(f, b.ID) && containsWord(sql, f.Name) {
			return true
		}
	}
	return false
}

// typed is a type with the descriptor that the bundle has of it.
func (b *ProtoBundle) typed(t *value.Type) *value.Type {
	if t.Elem != nil {
		elem := b.typed(t.Elem)
		if elem == t.Elem {
			return t
		}
		return value.ArrayOf(elem)
	}
	if is := b.Type(t.Name); t.Name != "" && is != nil && is.Kind == t.Kind {
		return is
	}
	return t
}

// lostNumbers says whether an ENUM has lost a number.
func lostNumbers(from, to *value.Type) bool {
	was, is := from.Enumeration(), to.Enumeration()
	if was == nil || is == nil {
		return false
	}
	for i := range was.Values().Len() {
		if is.Values().ByNumber(was.Values().Get(i).Number()) == nil {
			return true
		}
	}
	return false
}

// mayBeIn says whether a text has a word that is the last part of the name of a type.
func (b *ProtoBundle) mayBeIn(sql string) bool { return len(b.namedIn(sql)) > 0 }

// namedIn are the types of the bundle whose names have a word of a text as their last part.
func (b *ProtoBundle) namedIn(sql string) (names []string) {
	lasts := b.types.lastParts(b.Types)
	words := strings.FieldsFunc(sql, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	for _, word := range words {
		names = append(names, lasts[word]...)
	}
	return names
}

// bindProtos has a table of the draft's own use the bundle if a column of it, or the text of an expression, names a type, or a function that uses one.
func (d *draft) bindProtos(t *Table, expressions ...string) {
	b := d.ProtoBundle()
	if b == nil || t.ProtoBundle == b {
		return
	}
	uses := slices.ContainsFunc(t.Columns, func(c *Column) bool { return elementOf(c.Type).Name != "" })
	for _, sql := range expressions {
		uses = uses || b.mayBeIn(sql) || d.callsWithTypes(sql, b)
	}
	if uses {
		t.ProtoBundle = b
	}
}
