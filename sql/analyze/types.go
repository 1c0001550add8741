package analyze

import (
	"github.com/goccy/go-googlesql"

	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// scalarKinds pairs the scalar types of package value with the library's kinds of types.
var scalarKinds = []struct {
	ours   *value.Type
	theirs googlesql.TypeKind
}{
	{value.BoolType, googlesql.TypeKindTypeBool},
	{value.Int64Type, googlesql.TypeKindTypeInt64},
	{value.Float64Type, googlesql.TypeKindTypeDouble},
	{value.Float32Type, googlesql.TypeKindTypeFloat},
	{value.TimestampType, googlesql.TypeKindTypeTimestamp},
	{value.DateType, googlesql.TypeKindTypeDate},
	{value.StringType, googlesql.TypeKindTypeString},
	{value.BytesType, googlesql.TypeKindTypeBytes},
	{value.NumericType, googlesql.TypeKindTypeNumeric},
	{value.JSONType, googlesql.TypeKindTypeJson},
	{value.IntervalType, googlesql.TypeKindTypeInterval},
	{value.UUIDType, googlesql.TypeKindTypeUuid},
}

// typeOf translates a type of the library. An enumeration that GoogleSQL itself defines becomes STRING: each of its
// values becomes the value's name.
func (w *walker) typeOf(t googlesql.Googlesql_TypeNode) *value.Type {
	w.fields = 0
	return w.typeIn(t)
}

// typeIn translates a type for typeOf: the whole type, or the type of an element or field.
func (w *walker) typeIn(t googlesql.Googlesql_TypeNode) *value.Type {
	w.lib.engine.rest()
	kind := get(t.Kind())
	for _, s := range scalarKinds {
		if s.theirs == kind {
			return s.ours
		}
	}
	switch kind {
	case googlesql.TypeKindTypeEnum:
		if t := w.defined(t); t != nil {
			return t
		}
		return value.StringType
	case googlesql.TypeKindTypeProto:
		if t := w.defined(t); t != nil {
			return t
		}
	case googlesql.TypeKindTypeArray:
		return value.ArrayOf(w.typeIn(get(get(t.AsArray()).ElementType())))
	case googlesql.TypeKindTypeStruct:
		fields := get(get(t.AsStruct()).Fields())
		w.fields += len(fields)
		atMost(limitNestedFields, w.fields, maxNestedFields)
		of := make([]value.Field, len(fields))
		for i, f := range fields {
			of[i] = value.Field{Name: f.Name, Type: w.typeIn(f.Type_)}
		}
		return value.StructOf(of...)
	}
	refuse(usererror.SQLUnimplemented("Type " + get(t.DebugString(false))))
	return nil
}

// typeOf translates t to a type of the library. The factory f makes that type.
func (l *library) typeOf(f *googlesql.TypeFactory, t *value.Type) googlesql.Googlesql_TypeNode {
	for _, s := range scalarKinds {
		if s.ours.Kind == t.Kind {
			return get(f.MakeSimpleType(s.theirs))
		}
	}
	switch t.Kind {
	case value.Proto, value.Enum:
		return l.bundleType(f, t)
	case value.Array:
		return get(f.MakeArrayType2(l.typeOf(f, t.Elem)))
	case value.Struct:
		fields := make([]*googlesql.StructField, len(t.Fields))
		for i, field := range t.Fields {
			fields[i] = &googlesql.StructField{Name: field.Name, Type_: l.typeOf(f, field.Type)}
		}
		return get(f.MakeStructType2(fields))
	}
	refuse(usererror.SQLUnimplemented("Type " + t.String()))
	return nil
}
