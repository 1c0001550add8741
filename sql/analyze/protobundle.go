package analyze

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-googlesql"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

const (
	// maxPools is the maximum number of proto bundles that an instance of the library holds at once.
	maxPools = 8
	// maxPoolBytes is the number of bytes of descriptors beyond which an instance frees the pools that no schema
	// uses. In the instance's memory, descriptors take some ten times as many bytes.
	maxPoolBytes = 4 << 20
)

// descriptorPool holds descriptors of a proto bundle in the memory of one engine, an instance of GoogleSQL's library.
// The engine has a library (type library) for each version of a schema, and several of these can share a pool. A bundle
// may have thousands of types, so a pool gets a type, and the types of its fields, only when the first statement needs
// the type.
type descriptorPool struct {
	*googlesql.DescriptorPool
	engine    *engine
	bundle    *schema.ProtoBundle
	libraries int // number of values of type library that use the pool
	bytes     int // encoded size of the pool's descriptors
	// files maps the name of each declaration in the pool to the name of its file. Declarations are top-level messages
	// and enumerations, and extensions. Each declaration has a file of its own, except that messages whose fields refer
	// to each other share one.
	files map[protoreflect.FullName]string
}

// descriptors returns the pool of a bundle, and makes it if there is none. It counts the caller's library as a user of
// the pool until library.free is called.
func (e *engine) descriptors(b *schema.ProtoBundle) *descriptorPool {
	p := e.pools[b]
	if p == nil {
		e.makePoolRoom()
		p = &descriptorPool{DescriptorPool: own(googlesql.NewDescriptorPool()), engine: e, bundle: b, files: map[protoreflect.FullName]string{}}
		e.pools[b] = p
	}
	p.libraries++
	return p
}

func (e *engine) makePoolRoom() {
	bytes := 0
	for _, p := range e.pools {
		bytes += p.bytes
	}
	if len(e.pools) < maxPools && bytes < maxPoolBytes {
		return
	}
	for b, p := range e.pools {
		if p.libraries == 0 {
			freePool(p.DescriptorPool)
			delete(e.pools, b)
		}
	}
}

// need adds a message or an enumeration to the pool, with all types that its fields and extensions refer to.
func (p *descriptorPool) need(d protoreflect.Descriptor) {
	s := declarations{pool: p, order: map[protoreflect.FullName]int{}}
	s.visit(outermost(d))
	for len(s.extended) > 0 {
		message := s.extended[0]
		s.extended = s.extended[1:]
		for _, x := range p.bundle.ExtensionsOf(message.FullName()) {
			if p.files[x.FullName()] != "" {
				continue
			}
			for _, used := range usedBy(x) {
				s.visit(outermost(used))
			}
			p.add([]protoreflect.Descriptor{x})
		}
	}
}

// outermost returns the top-level message that contains d, a message or an enumeration. If d itself is at the top
// level, outermost returns d.
func outermost(d protoreflect.Descriptor) protoreflect.Descriptor {
	for {
		m, nested := d.Parent().(protoreflect.MessageDescriptor)
		if !nested {
			return d
		}
		d = m
	}
}

// usedBy returns the messages and enumerations that a declaration refers to.
func usedBy(d protoreflect.Descriptor) (used []protoreflect.Descriptor) {
	switch d := d.(type) {
	case protoreflect.FieldDescriptor:
		if d.Message() != nil {
			used = append(used, d.Message())
		}
		if d.Enum() != nil {
			used = append(used, d.Enum())
		}
		if d.IsExtension() {
			used = append(used, d.ContainingMessage())
		}
	case protoreflect.MessageDescriptor:
		for i := range d.Fields().Len() {
			used = append(used, usedBy(d.Fields().Get(i))...)
		}
		for i := range d.Messages().Len() {
			used = append(used, usedBy(d.Messages().Get(i))...)
		}
	}
	return used
}

// declarations walks through declarations that a pool lacks, and adds each after the declarations that it refers to.
// Declarations that refer to each other are added together: they are the strongly connected components that Tarjan's
// algorithm finds.
type declarations struct {
	pool     *descriptorPool
	order    map[protoreflect.FullName]int // number of each declaration, from 1, in the order in which they were found
	stack    []protoreflect.Descriptor     // declarations that were found but not added yet
	extended []protoreflect.Descriptor     // added messages whose extensions must still be added
}

// visit adds d to the pool, after the declarations that d refers to. If d refers to a declaration that is further down
// on the stack, d stays on the stack until that declaration is added. visit looks at d and at those declarations on the
// stack to which d refers, directly or through others. It returns the lowest of their numbers (see the field order), or
// math.MaxInt if the pool already has d.
func (s *declarations) visit(d protoreflect.Descriptor) (low int) {
	name := d.FullName()
	if s.pool.files[name] != "" {
		return math.MaxInt
	}
	if at := s.order[name]; at > 0 {
		return at
	}
	at, first := len(s.order)+1, len(s.stack)
	s.order[name], s.stack = at, append(s.stack, d)
	low = at
	for _, used := range usedBy(d) {
		low = min(low, s.visit(outermost(used)))
	}
	if low == at {
		s.pool.add(s.stack[first:])
		for _, added := range s.stack[first:] {
			s.extended = append(s.extended, messagesOf(added)...)
		}
		s.stack = s.stack[:first]
	}
	return low
}

// messagesOf returns d, if it is a message, and all messages nested in it.
func messagesOf(d protoreflect.Descriptor) (list []protoreflect.Descriptor) {
	if m, ok := d.(protoreflect.MessageDescriptor); ok {
		list = append(list, m)
		for i := range m.Messages().Len() {
			list = append(list, messagesOf(m.Messages().Get(i))...)
		}
	}
	return list
}

// add adds declarations that come from one file of the bundle to the pool, as one new file. The pool must already
// have the other declarations that they refer to.
func (p *descriptorPool) add(list []protoreflect.Descriptor) {
	f := fileOf(list[0].ParentFile())
	f.Name = proto.String(list[0].ParentFile().Path() + "#" + string(list[0].FullName()))
	together := map[protoreflect.FullName]bool{}
	for _, d := range list {
		together[d.FullName()] = true
		switch d := d.(type) {
		case protoreflect.MessageDescriptor:
			f.MessageType = append(f.MessageType, protodesc.ToDescriptorProto(d))
		case protoreflect.EnumDescriptor:
			f.EnumType = append(f.EnumType, protodesc.ToEnumDescriptorProto(d))
		case protoreflect.FieldDescriptor:
			f.Extension = append(f.Extension, protodesc.ToFieldDescriptorProto(d))
		}
	}
	for _, d := range list {
		for _, used := range usedBy(d) {
			if name := outermost(used).FullName(); !together[name] && !slices.Contains(f.Dependency, p.files[name]) {
				f.Dependency = append(f.Dependency, p.files[name])
			}
		}
	}
	p.build(f)
	for _, d := range list {
		p.files[d.FullName()] = f.GetName()
	}
	p.engine.pause()
	// The CPU time that the statement has used so far does not count toward its limit, lightTime. Later statements do
	// not need this time again, since they find the declarations in the pool.
	p.engine.loaded = p.engine.work.SoFar()
}

// fileOf copies the descriptor of a proto file without the file's declarations.
func fileOf(d protoreflect.FileDescriptor) *descriptorpb.FileDescriptorProto {
	f := &descriptorpb.FileDescriptorProto{Package: proto.String(string(d.Package())), Options: proto.Clone(d.Options()).(*descriptorpb.FileOptions)}
	if d.Syntax() != protoreflect.Proto2 {
		f.Syntax = proto.String(d.Syntax().String())
	}
	if e, ok := d.(interface{ Edition() int32 }); ok && d.Syntax() == protoreflect.Editions {
		f.Edition = descriptorpb.Edition(e.Edition()).Enum()
	}
	return f
}

func (p *descriptorPool) build(f *descriptorpb.FileDescriptorProto) {
	simplify(f)
	data := get(proto.Marshal(f))
	p.bytes += len(data)
	file := own(googlesql.NewFileDescriptorProto())
	defer freeFile(file)
	if !get(file.ParseFromString(string(data))) || get(p.BuildFile(file)) == nil {
		path, _, _ := strings.Cut(f.GetName(), "#")
		refuse(usererror.BadProtoDescriptors("file " + strconv.Quote(path) + " is not valid"))
	}
}

// simplify prepares a file for the library. It turns 32-bit and unsigned integer fields into INT64 fields, because the
// library has SQL types for such integers, and Spanner's GoogleSQL does not. It removes custom options, because some of
// them would change how the library treats a field. It also removes services and source positions, which the library
// does not need.
func simplify(f *descriptorpb.FileDescriptorProto) {
	f.Service, f.SourceCodeInfo = nil, nil
	clearUnknown(f.ProtoReflect())
	widen(f.Extension)
	for _, m := range f.MessageType {
		widenMessage(m)
	}
}

func clearUnknown(m protoreflect.Message) {
	m.SetUnknown(nil)
	m.Range(func(field protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case field.Message() == nil || field.IsMap():
		case field.Name() == "uninterpreted_option":
			m.Clear(field)
		case field.IsList():
			for i := range v.List().Len() {
				clearUnknown(v.List().Get(i).Message())
			}
		default:
			clearUnknown(v.Message())
		}
		return true
	})
}

func widenMessage(m *descriptorpb.DescriptorProto) {
	widen(m.Field)
	widen(m.Extension)
	for _, n := range m.NestedType {
		widenMessage(n)
	}
}

// integers are the types of 32-bit and unsigned integer fields, which widen turns into INT64 fields.
var integers = map[descriptorpb.FieldDescriptorProto_Type]bool{
	descriptorpb.FieldDescriptorProto_TYPE_INT32: true, descriptorpb.FieldDescriptorProto_TYPE_SINT32: true, descriptorpb.FieldDescriptorProto_TYPE_SFIXED32: true,
	descriptorpb.FieldDescriptorProto_TYPE_UINT32: true, descriptorpb.FieldDescriptorProto_TYPE_FIXED32: true,
	descriptorpb.FieldDescriptorProto_TYPE_UINT64: true, descriptorpb.FieldDescriptorProto_TYPE_FIXED64: true,
}

func widen(fields []*descriptorpb.FieldDescriptorProto) {
	for _, f := range fields {
		if !integers[f.GetType()] {
			continue
		}
		f.Type = descriptorpb.FieldDescriptorProto_TYPE_INT64.Enum()
		if _, err := strconv.ParseInt(f.GetDefaultValue(), 10, 64); err != nil {
			f.DefaultValue = nil // the executor computes the default value from the original field
		}
	}
}

// useBundle returns the library's descriptor pool. If there is none yet, it makes one.
func (l *library) useBundle() *descriptorPool {
	if l.pool == nil {
		l.pool = l.engine.descriptors(l.bundle)
	}
	return l.pool
}

// addTypes adds types of the bundle to the catalog, under their names.
func (l *library) addTypes(names []string) {
	for _, name := range names {
		if !l.named[name] {
			do(l.root.AddType(name, l.typeOf(l.types, l.bundle.Type(name))))
			l.named[name] = true
		}
	}
}

// bundleType returns the library's type for a PROTO or ENUM type t. The factory f makes it.
func (l *library) bundleType(f *googlesql.TypeFactory, t *value.Type) googlesql.Googlesql_TypeNode {
	is := l.bundle.Defined(t.Name)
	if is == nil || is.Kind != t.Kind {
		refuse(usererror.TypeNotFound(t.Name))
	}
	pool := l.useBundle()
	pool.need(is.Descriptor)
	if t.Kind == value.Enum {
		return get(f.MakeEnumType2(get(pool.FindEnumTypeByName(t.Name)), nil))
	}
	return get(f.MakeProtoType2(get(pool.FindMessageTypeByName(t.Name)), nil))
}

// defined returns the bundle's type for a PROTO or ENUM type of the library, and records that a definition uses the
// bundle. It returns nil if the bundle does not have the type.
func (w *walker) defined(t googlesql.Googlesql_TypeNode) *value.Type {
	is := w.lib.bundle.Defined(nameOf(t))
	if is != nil {
		w.definition.use(schema.Use{ID: w.lib.bundle.ID})
	}
	return is
}

// nameOf returns the name of a PROTO or ENUM type of the library: a.b.C for ENUM<a.b.C>.
func nameOf(t googlesql.Googlesql_TypeNode) string {
	_, name, _ := strings.Cut(get(t.DebugString(false)), "<")
	return strings.TrimSuffix(name, ">")
}
