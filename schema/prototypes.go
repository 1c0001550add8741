package schema

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sort"
	"strings"
	"sync"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// protoTypes holds the types that a set of files defines.
type protoTypes struct {
	files      *protoregistry.Files
	extensions map[protoreflect.FullName][]protoreflect.FieldDescriptor // by the name of the extended message

	mu    sync.Mutex
	known map[string]*value.Type // cache of typeOf
	lasts map[string][]string    // the names of the bundle's types by their last parts; nil before the first use
}

// maxNestedTypes is the limit for message definitions nested in each other. The protocol buffer compiler and the SQL
// analyzer's library have the same limit.
const maxNestedTypes = 32

// parseDescriptors reads a serialized FileDescriptorSet. It does not decode custom options, which have no meaning here.
func parseDescriptors(data []byte) (*descriptorpb.FileDescriptorSet, error) {
	set := new(descriptorpb.FileDescriptorSet)
	if err := (proto.UnmarshalOptions{Resolver: new(protoregistry.Types)}).Unmarshal(data, set); err != nil {
		return nil, errors.New("they are no serialized FileDescriptorSet")
	}
	return set, nil
}

// newProtoTypes links files. The set must contain each file that another one imports.
func newProtoTypes(set *descriptorpb.FileDescriptorSet) (*protoTypes, error) {
	for _, f := range set.File {
		if depth(f.MessageType, 0) > maxNestedTypes {
			return nil, fmt.Errorf("messages of file %q are nested deeper than %d levels", f.GetName(), maxNestedTypes)
		}
	}
	files, err := protodesc.NewFiles(set)
	if err != nil {
		return nil, plainly(err)
	}
	t := &protoTypes{files: files, extensions: map[protoreflect.FullName][]protoreflect.FieldDescriptor{}, known: map[string]*value.Type{}}
	files.RangeFiles(func(f protoreflect.FileDescriptor) bool {
		for i := range f.Extensions().Len() {
			x := f.Extensions().Get(i)
			of := x.ContainingMessage().FullName()
			t.extensions[of] = append(t.extensions[of], x)
		}
		return true
	})
	return t, nil
}

// plainly returns an error of package protodesc without its prefix. The package begins errors randomly with one of two
// prefixes.
func plainly(err error) error {
	text := strings.ReplaceAll(err.Error(), "\u00a0", " ")
	return errors.New(strings.TrimPrefix(text, "proto: "))
}

// depth returns the nesting depth of messages; maxNestedTypes + 1 if they are nested deeper than that.
func depth(list []*descriptorpb.DescriptorProto, level int) int {
	deepest := level
	if level <= maxNestedTypes {
		for _, m := range list {
			deepest = max(deepest, depth(m.NestedType, level+1))
		}
	}
	return deepest
}

// typeOf returns the message or enumeration called name as a type, or nil. It always returns the same type for a name.
func (p *protoTypes) typeOf(name string) *value.Type {
	p.mu.Lock()
	defer p.mu.Unlock()
	if t := p.known[name]; t != nil {
		return t
	}
	d, err := p.files.FindDescriptorByName(protoreflect.FullName(name))
	if err != nil {
		return nil
	}
	var t *value.Type
	switch d := d.(type) {
	case protoreflect.MessageDescriptor:
		t = value.ProtoType(d)
	case protoreflect.EnumDescriptor:
		t = value.EnumType(d)
	default:
		return nil
	}
	p.known[t.Name] = t
	return t
}

// lastParts returns the names of the bundle's types by their last parts.
func (p *protoTypes) lastParts(names []string) map[string][]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lasts == nil {
		p.lasts = make(map[string][]string, len(names))
		for _, name := range names {
			last := name[strings.LastIndexByte(name, '.')+1:]
			p.lasts[last] = append(p.lasts[last], name)
		}
	}
	return p.lasts
}

func (p *protoTypes) extension(message protoreflect.FullName, number protoreflect.FieldNumber) protoreflect.FieldDescriptor {
	for _, x := range p.extensions[message] {
		if x.Number() == number {
			return x
		}
	}
	return nil
}

// mergeDescriptors returns the files that define the types called names. For types in given, and for what their files
// import, it takes the files of the request. For the other types it takes the files of the old bundle. It leaves out
// files that no type needs.
func mergeDescriptors(old *ProtoBundle, request []byte, names, given []string) ([]byte, *protoTypes, error) {
	m := merger{files: map[string]*descriptorpb.FileDescriptorProto{}}
	if len(given) > 0 {
		if len(request) == 0 {
			return nil, nil, usererror.MissingProtoDescriptors()
		}
		if err := m.add(request, given); err != nil {
			return nil, nil, err
		}
	}
	if old != nil {
		isGiven := map[string]bool{}
		for _, name := range given {
			isGiven[name] = true
		}
		added := newDefinitions(maps.Values(m.files))
		kept := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return isGiven[name] || added.file(name) != nil })
		if err := m.add(old.Descriptors, kept); err != nil {
			return nil, nil, err
		}
	}
	set := new(descriptorpb.FileDescriptorSet)
	for _, f := range m.files {
		set.File = append(set.File, f)
	}
	sort.Slice(set.File, func(i, j int) bool { return set.File[i].GetName() < set.File[j].GetName() })
	types, err := newProtoTypes(set)
	if err != nil {
		return nil, nil, usererror.BadProtoDescriptors(err.Error())
	}
	if err := types.check(names); err != nil {
		return nil, nil, err
	}
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(set)
	return data, types, err
}

// merger collects files by name.
type merger struct {
	files map[string]*descriptorpb.FileDescriptorProto
}

// add adds the files of a serialized set that define the types names, with their imports. It skips files whose names
// are taken already.
func (m *merger) add(data []byte, names []string) error {
	set, err := parseDescriptors(data)
	if err != nil {
		return usererror.BadProtoDescriptors(err.Error())
	}
	byName := make(map[string]*descriptorpb.FileDescriptorProto, len(set.File))
	for _, f := range set.File {
		if byName[f.GetName()] != nil {
			return usererror.BadProtoDescriptors(fmt.Sprintf("file %q stands there twice", f.GetName()))
		}
		byName[f.GetName()] = f
	}
	defined := newDefinitions(slices.Values(set.File))
	for _, name := range names {
		f := defined.file(name)
		if f == nil {
			return usererror.MissingProtoDescriptor(name)
		}
		m.addFile(f.GetName(), byName)
	}
	return nil
}

// addFile adds a file and its imports. If a file is missing, the error comes later, when the files are linked.
func (m *merger) addFile(name string, from map[string]*descriptorpb.FileDescriptorProto) {
	f := from[name]
	if f == nil || m.files[name] != nil {
		return
	}
	m.files[name] = f
	for _, imported := range f.Dependency {
		m.addFile(imported, from)
	}
}

// definitions finds the file that defines a type. It maps packages to their files.
type definitions map[string][]*definitionsOfFile

type definitionsOfFile struct {
	file     *descriptorpb.FileDescriptorProto
	messages map[string]*descriptorpb.DescriptorProto
	enums    map[string]bool
}

func newDefinitions(files iter.Seq[*descriptorpb.FileDescriptorProto]) definitions {
	d := definitions{}
	for f := range files {
		of := &definitionsOfFile{file: f, messages: map[string]*descriptorpb.DescriptorProto{}, enums: map[string]bool{}}
		for _, m := range f.MessageType {
			of.messages[m.GetName()] = m
		}
		for _, e := range f.EnumType {
			of.enums[e.GetName()] = true
		}
		d[f.GetPackage()] = append(d[f.GetPackage()], of)
	}
	return d
}

// file returns the file that defines the message or enumeration called name, or nil.
func (d definitions) file(name string) *descriptorpb.FileDescriptorProto {
	path := strings.Split(name, ".")
	for i := range path {
		for _, f := range d[strings.Join(path[:i], ".")] {
			if m := f.messages[path[i]]; m != nil && isDefined(path[i+1:], m) || i == len(path)-1 && f.enums[path[i]] {
				return f.file
			}
		}
	}
	return nil
}

// isDefined reports whether path names the message m, or a type defined inside it.
func isDefined(path []string, m *descriptorpb.DescriptorProto) bool {
	if len(path) == 0 {
		return true
	}
	for _, n := range m.NestedType {
		if n.GetName() == path[0] {
			return isDefined(path[1:], n)
		}
	}
	return len(path) == 1 && slices.ContainsFunc(m.EnumType, func(e *descriptorpb.EnumDescriptorProto) bool { return e.GetName() == path[0] })
}

// reservedPackages lists the packages whose types may not be in a bundle.
var reservedPackages = []string{"spanner", "tech.spanner"}

// check returns an error for linked types that Spanner refuses.
func (p *protoTypes) check(names []string) error {
	visited := map[protoreflect.FullName]bool{}
	for _, name := range names {
		for _, reserved := range reservedPackages {
			if strings.HasPrefix(name, reserved+".") {
				return usererror.ReservedProtoPackage(name, reserved)
			}
		}
		t := p.typeOf(name)
		if t == nil {
			return usererror.MissingProtoDescriptor(name)
		}
		if m := t.Message(); m != nil {
			if err := checkMessage(m, visited); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkMessage checks a message and the messages of its fields.
func checkMessage(m protoreflect.MessageDescriptor, visited map[protoreflect.FullName]bool) error {
	if visited[m.FullName()] {
		return nil
	}
	visited[m.FullName()] = true
	if m.Extensions().Len() > 0 {
		return usererror.ProtoExtensions(string(m.FullName()))
	}
	if options, ok := m.Options().(*descriptorpb.MessageOptions); ok && options.GetMessageSetWireFormat() {
		return usererror.ProtoMessageSet(string(m.FullName()))
	}
	for i := range m.Fields().Len() {
		if f := m.Fields().Get(i).Message(); f != nil {
			if err := checkMessage(f, visited); err != nil {
				return err
			}
		}
	}
	return nil
}
