// Package descriptor represents the PROTO and ENUM types that protocol buffer files define. It finds types by their
// names, merges sets of files, and compares definitions.
//
// Imports of this module: usererror, value.
package descriptor

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"unicode"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/crowfoot-db/crowfoot/value"
)

// Types holds the types that a set of files defines.
type Types struct {
	files      *protoregistry.Files
	extensions map[protoreflect.FullName][]protoreflect.FieldDescriptor // by the name of the extended message

	mu    sync.Mutex
	known map[string]*value.Type // the results of method Type so far, by name
	lasts map[string][]string    // the names passed to NamedIn, by their last part; nil before its first call
}

// MaxNestedTypes is the largest number of message definitions nested in each other. The protocol buffer compiler and
// the SQL analyzer's library have the same limit.
const MaxNestedTypes = 32

// Load reads a serialized FileDescriptorSet and links its files. If a file imports another one, the set must contain
// that one, too.
func Load(data []byte) (*Types, error) {
	set, err := parse(data)
	if err != nil {
		return nil, err
	}
	return link(set)
}

// parse reads a serialized FileDescriptorSet. It does not decode custom options, because Crowfoot does not use them.
func parse(data []byte) (*descriptorpb.FileDescriptorSet, error) {
	set := new(descriptorpb.FileDescriptorSet)
	if err := (proto.UnmarshalOptions{Resolver: new(protoregistry.Types)}).Unmarshal(data, set); err != nil {
		return nil, errors.New("they are no serialized FileDescriptorSet")
	}
	return set, nil
}

// link makes the types that the files of a set define. If a file imports another one, the set must contain that one,
// too.
func link(set *descriptorpb.FileDescriptorSet) (*Types, error) {
	for _, f := range set.File {
		if depth(f.MessageType, 0) > MaxNestedTypes {
			return nil, fmt.Errorf("messages of file %q are nested deeper than %d levels", f.GetName(), MaxNestedTypes)
		}
	}
	files, err := protodesc.NewFiles(set)
	if err != nil {
		return nil, plainly(err)
	}
	t := &Types{files: files, extensions: map[protoreflect.FullName][]protoreflect.FieldDescriptor{}, known: map[string]*value.Type{}}
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

// plainly removes the prefix from an error of package protodesc. That package begins each error with one of two
// prefixes, at random.
func plainly(err error) error {
	text := strings.ReplaceAll(err.Error(), "\u00a0", " ")
	return errors.New(strings.TrimPrefix(text, "proto: "))
}

// depth returns the largest number of message definitions nested in each other, for the messages in list. It returns at
// most MaxNestedTypes + 1. level is the number of definitions that contain list.
func depth(list []*descriptorpb.DescriptorProto, level int) int {
	deepest := level
	if level <= MaxNestedTypes {
		for _, m := range list {
			deepest = max(deepest, depth(m.NestedType, level+1))
		}
	}
	return deepest
}

// Type returns the message or enumeration called name as a type, or nil if there is none. For the same name it always
// returns the same pointer.
func (p *Types) Type(name string) *value.Type {
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

// NamedIn returns those of the given names whose last part, such as C in a.b.C, is a word of sql. All calls must pass
// the same names, because the first call stores them.
func (p *Types) NamedIn(sql string, names []string) (found []string) {
	p.mu.Lock()
	if p.lasts == nil {
		p.lasts = make(map[string][]string, len(names))
		for _, name := range names {
			last := name[strings.LastIndexByte(name, '.')+1:]
			p.lasts[last] = append(p.lasts[last], name)
		}
	}
	p.mu.Unlock()
	words := strings.FieldsFunc(sql, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	for _, word := range words {
		found = append(found, p.lasts[word]...)
	}
	return found
}

// Extension returns an extension of the given message: the one with the given field number, or nil if there is none.
func (p *Types) Extension(message protoreflect.FullName, number protoreflect.FieldNumber) protoreflect.FieldDescriptor {
	for _, x := range p.extensions[message] {
		if x.Number() == number {
			return x
		}
	}
	return nil
}

// ExtensionsOf returns the extensions of a message.
func (p *Types) ExtensionsOf(message protoreflect.FullName) []protoreflect.FieldDescriptor {
	return p.extensions[message]
}
