package analyze

import (
	"strconv"
	"strings"

	"github.com/goccy/go-googlesql"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// maxPools is how many proto bundles an instance of the library knows at once.
const maxPools = 8

// descriptorPool is the descriptors of a proto bundle in the memory of an instance of the library. Libraries of several schema versions share it.
type descriptorPool struct {
	*googlesql.DescriptorPool
	libraries int // that use it
}

// descriptors are the descriptors of a bundle for one more library, until release.
func (e *engine) descriptors(b *schema.ProtoBundle) *descriptorPool {
	p := e.pools[b]
	if p == nil {
		e.makePoolRoom()
		p = e.newPool(b)
		e.pools[b] = p
	}
	p.libraries++
	return p
}

func (e *engine) makePoolRoom() {
	if len(e.pools) < maxPools {
		return
	}
	for b, p := range e.pools {
		if p.libraries == 0 {
			freePool(p.DescriptorPool)
			delete(e.pools, b)
		}
	}
}

// newPool gives the library the descriptors of a bundle. That they take long does not make the statement at hand a slow one: those after it find them there.
func (e *engine) newPool(b *schema.ProtoBundle) *descriptorPool {
	set := new(descriptorpb.FileDescriptorSet)
	do(proto.UnmarshalOptions{Resolver: new(protoregistry.Types)}.Unmarshal(b.Descriptors, set))
	p := &descriptorPool{DescriptorPool: own(googlesql.NewDescriptorPool())}
	complete := false
	defer func() {
		if !complete {
			freePool(p.DescriptorPool)
		}
	}()
	byName := map[string]*descriptorpb.FileDescriptorProto{}
	for _, f := range set.File {
		byName[f.GetName()] = f
	}
	built := map[string]bool{}
	var build func(name string)
	build = func(name string) {
		f := byName[name]
		if f == nil || built[name] {
			return
		}
		built[name] = true
		for _, imported := range f.Dependency {
			build(imported)
		}
		p.add(f)
		e.pause()
	}
	for _, f := range set.File {
		build(f.GetName())
	}
	e.loaded, complete = e.work.SoFar(), true
	return p
}

// add adds a file, after those that it imports.
func (p *descriptorPool) add(f *descriptorpb.FileDescriptorProto) {
	simplify(f)
	data := get(proto.Marshal(f))
	file := own(googlesql.NewFileDescriptorProto())
	defer freeFile(file)
	if !get(file.ParseFromString(string(data))) || get(p.BuildFile(file)) == nil {
		refuse(usererror.BadProtoDescriptors("file " + strconv.Quote(f.GetName()) + " is not valid"))
	}
}

// simplify leaves of a file what the library is to know. It has types for integers of 32 bits and without a sign, which Spanner's GoogleSQL does not have: their
// fields are INT64. Custom options, of which some would change what the library thinks of a field, are left out, and so are services.
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

// integers are the types of fields that are INT64, but for TYPE_INT64.
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
			f.DefaultValue = nil // the executor has its own
		}
	}
}

// useBundle has the library know the descriptors of its bundle.
func (l *library) useBundle() *descriptorPool {
	if l.pool == nil {
		l.pool = l.engine.descriptors(l.bundle)
	}
	return l.pool
}

// addTypes adds types of the bundle under their names.
func (l *library) addTypes(names []string) {
	for _, name := range names {
		if !l.named[name] {
			do(l.root.AddType(name, l.typeOf(l.types, l.bundle.Type(name))))
			l.named[name] = true
		}
	}
}

// bundleType is a PROTO or ENUM type as one of the library, made in f.
func (l *library) bundleType(f *googlesql.TypeFactory, t *value.Type) googlesql.Googlesql_TypeNode {
	is := l.bundle.Defined(t.Name)
	if is == nil || is.Kind != t.Kind {
		refuse(usererror.TypeNotFound(t.Name))
	}
	pool := l.useBundle()
	if t.Kind == value.Enum {
		return get(f.MakeEnumType2(get(pool.FindEnumTypeByName(t.Name)), nil))
	}
	return get(f.MakeProtoType2(get(pool.FindMessageTypeByName(t.Name)), nil))
}

// defined is a PROTO or ENUM type of the library as that of the bundle, which a definition then uses; nil if the bundle does not have it.
func (w *walker) defined(t googlesql.Googlesql_TypeNode) *value.Type {
	is := w.lib.bundle.Defined(nameOf(t))
	if is != nil {
		w.definition.use(schema.Use{ID: w.lib.bundle.ID})
	}
	return is
}

// nameOf is the name of a PROTO or ENUM type of the library: of ENUM<a.b.C> it is a.b.C.
func nameOf(t googlesql.Googlesql_TypeNode) string {
	_, name, _ := strings.Cut(get(t.DebugString(false)), "<")
	return strings.TrimSuffix(name, ">")
}
