package analyze

import (
	"slices"
	"strings"

	"github.com/goccy/go-googlesql"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// protoField translates the access to a field of a PROTO, or the test whether the field is set. The access to a field
// of a field becomes one call with the whole path.
func (w *walker) protoField(n *googlesql.ResolvedGetProtoField) tree.Expr {
	arg := w.expr(get(n.Expr()))
	path := []protoreflect.FieldDescriptor{w.fieldOf(arg.Type(), get(n.FieldDescriptor()))}
	if inner, ok := arg.(*tree.Call); ok && inner.Func.Name == tree.ProtoField {
		arg, path = inner.Args[0], slices.Concat(inner.Func.Fields[0], path)
	}
	f := &tree.Function{Name: tree.ProtoField, Args: []*value.Type{arg.Type()}, Type: w.typeOf(get(n.Type())), Fields: [][]protoreflect.FieldDescriptor{path}}
	if get(n.GetHasBit()) {
		f.Name = tree.HasProtoField
	}
	return &tree.Call{Func: f, Args: []tree.Expr{arg}}
}

// fieldOf returns the field or extension of message that has the same number as the library's field.
func (w *walker) fieldOf(message *value.Type, field *googlesql.FieldDescriptor) protoreflect.FieldDescriptor {
	number := protoreflect.FieldNumber(get(field.Number()))
	m := message.Message()
	if get(field.IsExtension()) {
		return w.lib.bundle.Extension(m.FullName(), number)
	}
	return m.Fields().ByNumber(number)
}

// makeProto translates the constructors NEW T(...), NEW T {...} and SELECT AS T.
func (w *walker) makeProto(n *googlesql.ResolvedMakeProto) tree.Expr {
	t := w.typeOf(get(n.Type()))
	f := &tree.Function{Name: tree.MakeProto, Type: t, Fields: [][]protoreflect.FieldDescriptor{}}
	c := &tree.Call{Func: f}
	for _, field := range get(n.FieldList()) {
		c.Args = append(c.Args, w.expr(get(field.Expr())))
		f.Args = append(f.Args, c.Args[len(c.Args)-1].Type())
		f.Fields = append(f.Fields, []protoreflect.FieldDescriptor{w.fieldOf(t, get(field.FieldDescriptor()))})
	}
	return c
}

// replaceFields translates REPLACE_FIELDS of a PROTO.
func (w *walker) replaceFields(n *googlesql.ResolvedReplaceField) tree.Expr {
	arg := w.expr(get(n.Expr()))
	if arg.Type().Kind != value.Proto {
		unsupported("REPLACE_FIELDS of a STRUCT")
	}
	c := &tree.Call{Func: &tree.Function{Name: tree.ReplaceFields, Args: []*value.Type{arg.Type()}, Type: arg.Type()}, Args: []tree.Expr{arg}}
	for _, item := range get(n.ReplaceFieldItemList()) {
		var path []protoreflect.FieldDescriptor
		in := arg.Type()
		for _, field := range get(item.ProtoFieldPath()) {
			path = append(path, w.fieldOf(in, field))
			if m := path[len(path)-1].Message(); m != nil {
				in = value.ProtoType(m)
			}
		}
		setField(c, path, w.expr(get(item.Expr())))
	}
	return c
}

// setField adds the field at path and its new value v to c, a call that replaces or sets fields.
func setField(c *tree.Call, path []protoreflect.FieldDescriptor, v tree.Expr) {
	c.Args = append(c.Args, v)
	c.Func.Args = append(c.Func.Args, v.Type())
	c.Func.Fields = append(c.Func.Fields, path)
}

// fieldAssignment adds SET column.field = value to the assignments in set. It merges the assignments to all fields of
// a column into one assignment to the column.
func (w *walker) fieldAssignment(set []tree.Assignment, target *googlesql.ResolvedGetProtoField, to *googlesql.ResolvedDMLValue, columns map[int]*schema.Column) []tree.Assignment {
	field := w.protoField(target).(*tree.Call)
	ref, ok := field.Args[0].(*tree.Ref)
	if !ok || field.Func.Name != tree.ProtoField {
		unsupported("UPDATE of a part of a column")
	}
	v := w.dmlValue(to)
	if v == nil {
		refuse(usererror.InvalidSQL("DEFAULT is not a value of a field of a protocol buffer"))
	}
	column := columns[ref.Col.ID]
	at := slices.IndexFunc(set, func(a tree.Assignment) bool { return a.Column == column })
	if at < 0 {
		t := ref.Col.Type
		call := &tree.Call{Func: &tree.Function{Name: tree.SetFields, Args: []*value.Type{t}, Type: t}, Args: []tree.Expr{ref}}
		set, at = append(set, tree.Assignment{Column: column, Value: call}), len(set)
	}
	setField(set[at].Value.(*tree.Call), field.Func.Fields[0], v)
	return set
}

// protoLiteral translates a string literal where a PROTO is required. It returns a cast of the text, which is
// computed when the statement runs. The value that the library has parsed cannot be used, because its numbers are not
// encoded as the message requires (see simplify).
func (w *walker) protoLiteral(v *googlesql.Value, t *value.Type) tree.Expr {
	text := strings.TrimSuffix(strings.TrimPrefix(get(v.DebugString(false)), "{"), "}")
	return &tree.Cast{Arg: &tree.Literal{T: value.StringType, Value: value.OfString(text)}, T: t}
}
