package analyze

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/crowfoot-db/crowfoot/schema"
)

// randomFiles makes files with messages, nested messages, enumerations and extensions. The fields refer at random to
// types of their own file or of earlier files. It also returns the names of all types.
func randomFiles(r *rand.Rand) (set *descriptorpb.FileDescriptorSet, names []string) {
	set = new(descriptorpb.FileDescriptorSet)
	var extendable []string
	for i := range 3 {
		pkg := fmt.Sprint("p", i)
		f := &descriptorpb.FileDescriptorProto{Name: proto.String(pkg + ".proto"), Package: &pkg, Syntax: proto.String("proto2")}
		for _, before := range set.File {
			f.Dependency = append(f.Dependency, before.GetName())
		}
		var holders []*descriptorpb.DescriptorProto
		for j := range 12 {
			name := fmt.Sprint("M", j)
			m := &descriptorpb.DescriptorProto{Name: &name, NestedType: []*descriptorpb.DescriptorProto{{Name: proto.String("N")}},
				EnumType:       []*descriptorpb.EnumDescriptorProto{{Name: proto.String("E"), Value: []*descriptorpb.EnumValueDescriptorProto{{Name: proto.String("A"), Number: proto.Int32(0)}}}},
				ExtensionRange: []*descriptorpb.DescriptorProto_ExtensionRange{{Start: proto.Int32(100), End: proto.Int32(200)}}}
			f.MessageType, holders = append(f.MessageType, m), append(holders, m, m.NestedType[0])
			full := pkg + "." + name
			names, extendable = append(names, full, full+".N", full+".E"), append(extendable, full)
		}
		field := func(name string, number int) *descriptorpb.FieldDescriptorProto {
			of := names[r.IntN(len(names))]
			f := &descriptorpb.FieldDescriptorProto{Name: &name, Number: proto.Int32(int32(number)), Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
				TypeName: proto.String("." + of), Type: descriptorpb.FieldDescriptorProto_TYPE_MESSAGE.Enum()}
			if strings.HasSuffix(of, "E") {
				f.Type = descriptorpb.FieldDescriptorProto_TYPE_ENUM.Enum()
			}
			return f
		}
		for _, m := range holders {
			for k := range r.IntN(3) {
				m.Field = append(m.Field, field(fmt.Sprint("f", k), k+1))
			}
		}
		for k := range 3 {
			x := field(fmt.Sprint("x", k), 100+10*i+k)
			x.Extendee = proto.String("." + extendable[r.IntN(len(extendable))])
			f.Extension = append(f.Extension, x)
		}
		set.File = append(set.File, f)
	}
	return set, names
}

// TestNeededTypes adds the types of random files to the library one by one, in random order. The library must accept
// each type with its extensions.
func TestNeededTypes(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 5))
		set, names := randomFiles(r)
		data, err := proto.Marshal(set)
		if err != nil {
			t.Fatal(err)
		}
		c, _, err := schema.NewCatalog().Apply("CREATE PROTO BUNDLE ("+strings.Join(names, ", ")+")", anyExpr{}, data)
		if err != nil {
			t.Fatal(err)
		}
		b := c.ProtoBundle()
		err = engines.run(t.Context(), 0, nil, func(in *engine) {
			p := in.descriptors(b)
			defer func() { p.libraries-- }()
			for _, i := range r.Perm(len(names)) {
				d := b.Type(names[i]).Descriptor
				p.need(d)
				if b.Type(names[i]).Message() == nil {
					if get(p.FindEnumTypeByName(names[i])) == nil {
						t.Errorf("seed %d: no %s", seed, names[i])
					}
					continue
				}
				if get(p.FindMessageTypeByName(names[i])) == nil {
					t.Errorf("seed %d: no %s", seed, names[i])
				}
				for _, x := range b.ExtensionsOf(d.FullName()) {
					if get(p.FindExtensionByName(string(x.FullName()))) == nil {
						t.Errorf("seed %d: no extension %s", seed, x.FullName())
					}
				}
			}
		})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// TestTypesOfTexts: if a text names one of many types, the library gets only that type and the types that its fields
// need.
func TestTypesOfTexts(t *testing.T) {
	f := &descriptorpb.FileDescriptorProto{Name: proto.String("many.proto"), Package: proto.String("many"), Syntax: proto.String("proto3")}
	var names []string
	for i := range 500 {
		m := &descriptorpb.DescriptorProto{Name: proto.String(fmt.Sprint("M", i))}
		if i%10 > 0 {
			m.Field = []*descriptorpb.FieldDescriptorProto{{Name: proto.String("before"), Number: proto.Int32(1), Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
				Type: descriptorpb.FieldDescriptorProto_TYPE_MESSAGE.Enum(), TypeName: proto.String(fmt.Sprint(".many.M", i-1))}}
		}
		f.MessageType, names = append(f.MessageType, m), append(names, "many."+m.GetName())
	}
	data, err := proto.Marshal(&descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{f}})
	if err != nil {
		t.Fatal(err)
	}
	c, _, err := schema.NewCatalog().Apply("CREATE PROTO BUNDLE ("+strings.Join(names, ", ")+")", anyExpr{}, data)
	if err != nil {
		t.Fatal(err)
	}
	err = engines.run(t.Context(), 0, nil, func(in *engine) {
		l := newLibrary(in, New(c, nil), c.ProtoBundle())
		defer l.free()
		l.addTypes(typesIn("SELECT NEW many.M253(NULL AS before)", c.ProtoBundle()))
		if got := len(l.pool.files); got != 4 {
			t.Errorf("the library has %d files, want those of M250 to M253", got)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}
