package descriptor

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"sort"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/crowfoot-db/crowfoot/usererror"
)

// Merge returns the files that define the types in names, serialized and linked. old and request are serialized
// FileDescriptorSets. Merge takes from request the files of the types in the parameter given, and all files that these
// import. It takes the files of all other types from old. It leaves out files that no type needs.
func Merge(old, request []byte, names, given []string) ([]byte, *Types, error) {
	m := merger{files: map[string]*descriptorpb.FileDescriptorProto{}}
	if len(given) > 0 {
		if len(request) == 0 {
			return nil, nil, usererror.MissingProtoDescriptors()
		}
		if err := m.add(request, given); err != nil {
			return nil, nil, err
		}
	}
	if len(old) > 0 {
		isGiven := map[string]bool{}
		for _, name := range given {
			isGiven[name] = true
		}
		added := newDefinitions(maps.Values(m.files))
		kept := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return isGiven[name] || added.file(name) != nil })
		if err := m.add(old, kept); err != nil {
			return nil, nil, err
		}
	}
	set := new(descriptorpb.FileDescriptorSet)
	for _, f := range m.files {
		set.File = append(set.File, f)
	}
	sort.Slice(set.File, func(i, j int) bool { return set.File[i].GetName() < set.File[j].GetName() })
	types, err := link(set)
	if err != nil {
		return nil, nil, usererror.BadProtoDescriptors(err.Error())
	}
	if err := types.check(names); err != nil {
		return nil, nil, err
	}
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(set)
	return data, types, err
}

// merger collects files by their names.
type merger struct {
	files map[string]*descriptorpb.FileDescriptorProto
}

// add adds the files in data, a serialized set, that define the types in names, and the files that these import. It
// skips a file if the merger has a file of that name already.
func (m *merger) add(data []byte, names []string) error {
	set, err := parse(data)
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

// addFile adds the file from[name] and the files that it imports. It ignores a missing file, because linking the files
// later returns an error for it.
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

// definitions finds the file that defines a type. It maps the name of each protocol buffer package to the files of that
// package.
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

// isDefined reports whether message m contains a type with the given path of names. An empty path stands for m itself.
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

// check returns an error if one of the types in names is missing or is a type that Spanner does not permit.
func (p *Types) check(names []string) error {
	visited := map[protoreflect.FullName]bool{}
	for _, name := range names {
		for _, reserved := range reservedPackages {
			if strings.HasPrefix(name, reserved+".") {
				return usererror.ReservedProtoPackage(name, reserved)
			}
		}
		t := p.Type(name)
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

// checkMessage returns an error if Spanner does not permit message m or the message of one of its fields. It skips
// the messages in visited.
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
