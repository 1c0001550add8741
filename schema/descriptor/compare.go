package descriptor

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/crowfoot-db/crowfoot/value"
)

// Definitions describes types, and the types of their fields. The description holds everything that SQL can find out
// about them. It is "" if there are no types.
func (p *Types) Definitions(list []*value.Type) string {
	d := describer{types: p, visited: map[protoreflect.FullName]bool{}}
	for _, of := range list {
		d.enum(of.Enumeration())
		d.message(of.Message())
	}
	return d.text.String()
}

// describer writes the description that Definitions returns: names and numbers, and how fields are encoded and
// printed.
type describer struct {
	types   *Types
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
	fields = append(fields, d.types.ExtensionsOf(m.FullName())...)
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

// Redefined reports whether new definitions change or remove a type in list, or change the type of one of its fields.
// Added fields and values do not count. The second argument is a function that returns the new definition of the type
// with a given name, or nil if there is none.
func Redefined(list []*value.Type, in func(name string) *value.Type) bool {
	visited := map[protoreflect.FullName]bool{}
	return slices.ContainsFunc(list, func(was *value.Type) bool {
		is := in(was.Name)
		return is == nil || redefinedMessage(was.Message(), is.Message(), visited) || redefinedEnum(was.Enumeration(), is.Enumeration())
	})
}

// redefinedMessage compares two versions of a message. The first argument is the old version, and the second one is the
// new version. It reports whether a field, or the type of a field, is different in the new version. It ignores removed
// fields, because an expression that reads a removed field does not compile. It skips the messages in visited.
func redefinedMessage(was, is protoreflect.MessageDescriptor, visited map[protoreflect.FullName]bool) bool {
	if was == nil || is == nil {
		return was != is
	}
	if visited[was.FullName()] {
		return false
	}
	visited[was.FullName()] = true
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
		if redefinedEnum(f.Enum(), g.Enum()) || redefinedMessage(f.Message(), g.Message(), visited) {
			return true
		}
	}
	return false
}

// redefinedEnum compares two versions of an enumeration. The first argument is the old version, and the second one is
// the new version. It reports whether a value has another name or number in the new version. It ignores removed values,
// because the schema change will look for them in the rows (ValidateEnum of package schema).
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

// LostNumbers reports whether a number of an ENUM type was removed. The first argument is the old version of the type,
// and the second one is the new version.
func LostNumbers(from, to *value.Type) bool {
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
