package schema

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/cloudspannerecosystem/memefish/ast"
	"github.com/cloudspannerecosystem/memefish/token"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/crowfoot-db/crowfoot/schema/descriptor"
	"github.com/crowfoot-db/crowfoot/schema/syntax"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// MaxProtoBundle is the largest size of a bundle's descriptors in bytes. Source:
// https://cloud.google.com/spanner/docs/reference/standard-sql/protocol-buffers#limitations.
const MaxProtoBundle = 5 << 20

// ProtoBundle holds the protocol buffer messages and enumerations that are types of the database. A database has at
// most one bundle. Source:
// https://cloud.google.com/spanner/docs/reference/standard-sql/data-definition-language#proto_bundle_statements.
type ProtoBundle struct {
	Entity
	// Types holds the full names of the types, sorted.
	Types []string `json:"types"`
	// Descriptors is a serialized google.protobuf.FileDescriptorSet. It contains the files that define Types, and the
	// files that these import.
	Descriptors []byte `json:"descriptors"`
	// Revision counts the changes of the bundle. The encoding of a table that uses types contains the Revision with
	// which the table was compiled. So a change of the bundle changes the encoding of the table, and the table is
	// stored again in the new version of the catalog.
	Revision int `json:"revision"`

	types *descriptor.Types // all types that the files in Descriptors define, decoded
}

var protoBundles = &objectKind{
	name: "proto_bundle", noun: "Proto Bundle", apart: true, stage: beforeTables,
	empty: func() Object { return new(ProtoBundle) },
}

// bundleName is the name of the proto bundle among the catalog's objects.
const bundleName = "proto_bundle"

// ProtoBundle returns the proto bundle of the database, or nil.
func (c *Catalog) ProtoBundle() *ProtoBundle {
	return objectByName[*ProtoBundle](c, protoBundles, "", bundleName)
}

func (*ProtoBundle) kind() *objectKind { return protoBundles }

func (b *ProtoBundle) sql(*Catalog) []string { return []string{b.SQL()} }

// SQL returns the statement that creates the bundle.
func (b *ProtoBundle) SQL() string {
	var s strings.Builder
	s.WriteString("CREATE PROTO BUNDLE (\n")
	for _, name := range b.Types {
		s.WriteString("  " + quoteDotted(name) + ",\n")
	}
	s.WriteString(")")
	return s.String()
}

// quoteDotted prints a name such as a.b.C as DDL does. If a part needs back quotes, it puts the whole name in back
// quotes.
func quoteDotted(name string) string {
	for part := range strings.SplitSeq(name, ".") {
		if token.QuoteSQLIdent(part) != part {
			return "`" + name + "`"
		}
	}
	return name
}

// Type returns the bundle's type called name, or nil if name is not in Types. SQL and DDL can use only the types whose
// names are in Types.
func (b *ProtoBundle) Type(name string) *value.Type {
	if b == nil || !b.has(name) {
		return nil
	}
	return b.Defined(name)
}

// has reports whether name is in Types.
func (b *ProtoBundle) has(name string) bool {
	_, ok := slices.BinarySearch(b.Types, name)
	return ok
}

// Defined returns the type called name that the files of the bundle define, or nil. It also finds types that are not
// in Types, such as the types of fields.
func (b *ProtoBundle) Defined(name string) *value.Type {
	if b == nil || b.types == nil {
		return nil
	}
	return b.types.Type(name)
}

// Extension returns an extension of the given message: the one with the given field number, or nil if there is none.
func (b *ProtoBundle) Extension(message protoreflect.FullName, number protoreflect.FieldNumber) protoreflect.FieldDescriptor {
	return b.types.Extension(message, number)
}

// ExtensionsOf returns the extensions of a message.
func (b *ProtoBundle) ExtensionsOf(message protoreflect.FullName) []protoreflect.FieldDescriptor {
	return b.types.ExtensionsOf(message)
}

// typeNames returns the full names of the types that a statement lists.
func typeNames(list *ast.ProtoBundleTypes) (names []string) {
	for _, t := range list.Types {
		names = append(names, dotted(t))
	}
	return names
}

// dotted returns the name of a type as text: a.b.C.
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
	var given []string // the types that the request's descriptors must define
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

// setProtoBundle replaces the bundle old, which may be nil, by a bundle of the types in names. The parameter given
// lists some of these types: they get their definitions from the descriptors of the request. The other types keep the
// definitions of the old bundle.
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

// changeProtoBundle makes views, functions and tables use b instead of old, which may be nil.
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
	var before []byte
	if old != nil {
		b.ID, b.Revision, before = old.ID, old.Revision+1, old.Descriptors
	} else {
		b.ID = d.newID()
	}
	for i, name := range b.Types {
		b.Types[i] = strings.Clone(name)
	}
	var err error
	if b.Descriptors, b.types, err = descriptor.Merge(before, d.protoDescriptors, names, given); err != nil {
		return nil, err
	}
	if len(b.Descriptors) > MaxProtoBundle {
		return nil, usererror.ProtoBundleTooLarge(len(b.Descriptors), MaxProtoBundle)
	}
	return b, nil
}

// checkTypes returns an error if the SQL analyzer does not accept the types in names. Its protocol buffer library may
// refuse descriptors that Go's library accepts.
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

// checkTypesUnused returns an error if a column has a type of bundle old that bundle b does not have.
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

// elementOf returns the element type of an ARRAY type. It returns any other type unchanged.
func elementOf(t *value.Type) *value.Type { return cmp.Or(t.Elem, t) }

// useProtoBundle makes tables that use types of bundle old use the types of b. If an ENUM has fewer numbers in b than
// in old, useProtoBundle adds a validation that existing values have only the remaining numbers.
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
			if descriptor.LostNumbers(elementOf(was.Type), elementOf(c.Type)) {
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

// callsWithTypes reports whether an expression contains the name of a function that uses types of bundle b, directly
// or through other functions.
func (d *draft) callsWithTypes(sql string, b *ProtoBundle) bool {
	for f := range objectsOf[*Function](d.Catalog) {
		if d.reaches(f, b.ID) && syntax.ContainsWord(sql, f.Name) {
			return true
		}
	}
	return false
}

// typed returns the type of bundle b that has the name of type t. If b has no such type, it returns t.
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

// namedIn returns the names of the types in the bundle that the expression sql may name. These are the types for which
// the last part of the name, such as C in a.b.C, is a word of sql.
func (b *ProtoBundle) namedIn(sql string) []string { return b.types.NamedIn(sql, b.Types) }

// bindProtos makes t, a table of the draft, use the draft's proto bundle if it needs the bundle. A table needs it if a
// column or the text of an expression names a type of the bundle, or a function that uses such a type.
func (d *draft) bindProtos(t *Table, expressions ...string) {
	b := d.ProtoBundle()
	if b == nil || t.ProtoBundle == b {
		return
	}
	uses := slices.ContainsFunc(t.Columns, func(c *Column) bool { return elementOf(c.Type).Name != "" })
	for _, sql := range expressions {
		uses = uses || len(b.namedIn(sql)) > 0 || d.callsWithTypes(sql, b)
	}
	if uses {
		t.ProtoBundle = b
	}
}
