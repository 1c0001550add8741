package schema

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/crowfoot-db/crowfoot/value"
)

// roots returns the PROTO and ENUM types that an expression may read, without the types of their fields. These are the
// types of its columns, and types whose names may stand in its text or in the text of a function that it calls.
func (e *Expr) roots() (list []*value.Type) {
	if e.bundle == nil {
		return nil
	}
	names := e.bundle.namedIn(e.SQL)
	for _, f := range e.Functions {
		names = append(names, e.bundle.namedIn(f.Text())...)
	}
	for _, c := range e.Uses {
		if name := elementOf(c.Type).Name; name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if t := e.bundle.Type(name); t != nil {
			list = append(list, t)
		}
	}
	return list
}

// definitions returns a hash of the definitions of all types that an expression may read; "" if there are none.
func (e *Expr) definitions() string {
	d := describer{bundle: e.bundle, visited: map[protoreflect.FullName]bool{}}
	for _, t := range e.roots() {
		d.enum(t.Enumeration())
		d.message(t.Message())
	}
	return hashOf(d.text.String())
}

// isRedefined reports whether another bundle changes a type that an expression may read. Additions do not count.
func (e *Expr) isRedefined(in *ProtoBundle) bool {
	visited := map[protoreflect.FullName]bool{}
	return slices.ContainsFunc(e.roots(), func(was *value.Type) bool {
		is := in.Type(was.Name)
		return is == nil || redefinedMessage(was.Message(), is.Message(), visited) || redefinedEnum(was.Enumeration(), is.Enumeration())
	})
}

// describer writes all that SQL can find out about types: names and numbers, and how fields are encoded and printed.
type describer struct {
	bundle  *ProtoBundle
	visited map[protoreflect.FullName]bool
	text    strings.Builder
}

func (d *describer) message(m protoreflect.MessageDescriptor) {
	if m == nil || d.visited[m.FullName()] {
		return
	}
	d.visited[m.FullName()] = true
	fmt.Fprintf(&d.text, "message %s\n", m.FullName())
	var fields []protoreflect.FieldDescriptor
	for i := range m.Fields().Len() {
		fields = append(fields, m.Fields().Get(i))
	}
	fields = append(fields, d.bundle.ExtensionsOf(m.FullName())...)
	slices.SortFunc(fields, func(a, b protoreflect.FieldDescriptor) int { return int(a.Number()) - int(b.Number()) })
	for _, f := range fields {
		options, err := proto.MarshalOptions{Deterministic: true}.Marshal(f.Options())
		if err != nil {
			options = []byte(err.Error())
		}
		oneof := protoreflect.FullName("")
		if o := f.ContainingOneof(); o != nil {
			oneof = o.FullName()
		}
		fmt.Fprintf(&d.text, "%s %q %q %d %v %v %t %q %x", f.FullName(), f.TextName(), f.JSONName(), f.Number(), f.Kind(), f.Cardinality(), f.HasPresence(), oneof, options)
		if f.HasDefault() {
			fmt.Fprintf(&d.text, " = %q", f.Default().String())
		}
		if e := f.Enum(); e != nil {
			d.text.WriteString(" " + string(e.FullName()))
		}
		if sub := f.Message(); sub != nil {
			d.text.WriteString(" " + string(sub.FullName()))
		}
		d.text.WriteByte('\n')
	}
	for _, f := range fields {
		d.enum(f.Enum())
		d.message(f.Message())
	}
}

func (d *describer) enum(e protoreflect.EnumDescriptor) {
	if e == nil || d.visited[e.FullName()] {
		return
	}
	d.visited[e.FullName()] = true
	fmt.Fprintf(&d.text, "enum %s %t\n", e.FullName(), e.IsClosed())
	for i := range e.Values().Len() {
		v := e.Values().Get(i)
		fmt.Fprintf(&d.text, "%s %d\n", v.Name(), v.Number())
	}
}
