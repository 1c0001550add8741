package value

import (
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// Kind is a GoogleSQL type without its parameters. The numbers are those of google.spanner.v1.TypeCode, so a Kind is
// also the type code on the wire.
type Kind uint8

// The kinds of Spanner's GoogleSQL dialect that Crowfoot supports.
const (
	Invalid   Kind = 0
	Bool      Kind = 1
	Int64     Kind = 2
	Float64   Kind = 3
	Timestamp Kind = 4
	Date      Kind = 5
	String    Kind = 6
	Bytes     Kind = 7
	Array     Kind = 8
	Struct    Kind = 9
	Numeric   Kind = 10
	JSON      Kind = 11
	Proto     Kind = 13
	Enum      Kind = 14
	Float32   Kind = 15
	Interval  Kind = 16
	UUID      Kind = 17
)

// Type is a GoogleSQL type. Types are immutable and may be shared. Compare types with Equal and not by address,
// because equal types may be at different addresses.
type Type struct {
	Kind   Kind
	Elem   *Type   // the type of the elements of an ARRAY; nil for other kinds
	Fields []Field // the fields of a STRUCT, in order; names may be empty or occur twice
	Name   string  // the full name of the message of a PROTO or the enumeration of an ENUM, a.b.C; else ""
	// Descriptor describes the PROTO's message or the ENUM's enumeration. It is set where SQL needs the fields of the
	// message or the value names of the enumeration. It is nil where only the type's name matters, as in the columns of
	// a schema.
	Descriptor protoreflect.Descriptor
}

// Field is one field of a STRUCT type.
type Field struct {
	Name string
	Type *Type
}

// The scalar types.
var (
	BoolType      = &Type{Kind: Bool}
	Int64Type     = &Type{Kind: Int64}
	Float64Type   = &Type{Kind: Float64}
	Float32Type   = &Type{Kind: Float32}
	TimestampType = &Type{Kind: Timestamp}
	DateType      = &Type{Kind: Date}
	StringType    = &Type{Kind: String}
	BytesType     = &Type{Kind: Bytes}
	NumericType   = &Type{Kind: Numeric}
	JSONType      = &Type{Kind: JSON}
	IntervalType  = &Type{Kind: Interval}
	UUIDType      = &Type{Kind: UUID}
)

var kindNames = [...]string{
	Bool: "BOOL", Int64: "INT64", Float64: "FLOAT64", Timestamp: "TIMESTAMP", Date: "DATE",
	String: "STRING", Bytes: "BYTES", Array: "ARRAY", Struct: "STRUCT", Numeric: "NUMERIC",
	JSON: "JSON", Proto: "PROTO", Enum: "ENUM", Float32: "FLOAT32", Interval: "INTERVAL", UUID: "UUID",
}

func (k Kind) String() string {
	if int(k) < len(kindNames) && kindNames[k] != "" {
		return kindNames[k]
	}
	return "INVALID"
}

// ArrayOf returns ARRAY<elem>.
func ArrayOf(elem *Type) *Type { return &Type{Kind: Array, Elem: elem} }

// StructOf returns STRUCT<fields>.
func StructOf(fields ...Field) *Type { return &Type{Kind: Struct, Fields: fields} }

// ProtoType returns the PROTO type of a message.
func ProtoType(d protoreflect.MessageDescriptor) *Type {
	return &Type{Kind: Proto, Name: string(d.FullName()), Descriptor: d}
}

// EnumType returns the ENUM type of an enumeration.
func EnumType(d protoreflect.EnumDescriptor) *Type {
	return &Type{Kind: Enum, Name: string(d.FullName()), Descriptor: d}
}

// Message returns the descriptor of a PROTO type's message, or nil if the type has none.
func (t *Type) Message() protoreflect.MessageDescriptor {
	d, _ := t.Descriptor.(protoreflect.MessageDescriptor)
	return d
}

// Enumeration returns the descriptor of an ENUM type's enumeration, or nil if the type has none.
func (t *Type) Enumeration() protoreflect.EnumDescriptor {
	d, _ := t.Descriptor.(protoreflect.EnumDescriptor)
	return d
}

// Equal reports whether two types are the same. Field names must be equal, too; as in SQL, case does not matter. PROTO
// and ENUM types are the same if they have the same name.
func (t *Type) Equal(u *Type) bool {
	if t == u {
		return true
	}
	if t == nil || u == nil || t.Kind != u.Kind || t.Name != u.Name || len(t.Fields) != len(u.Fields) {
		return false
	}
	if t.Kind == Array {
		return t.Elem.Equal(u.Elem)
	}
	for i, f := range t.Fields {
		if !strings.EqualFold(f.Name, u.Fields[i].Name) || !f.Type.Equal(u.Fields[i].Type) {
			return false
		}
	}
	return true
}

// String prints the type as GoogleSQL writes it: ARRAY<STRUCT<a INT64, STRING>>.
func (t *Type) String() string {
	if t == nil {
		return "INVALID"
	}
	switch t.Kind {
	case Array:
		return "ARRAY<" + t.Elem.String() + ">"
	case Proto, Enum:
		return t.Kind.String() + "<" + t.Name + ">"
	case Struct:
		var b strings.Builder
		b.WriteString("STRUCT<")
		for i, f := range t.Fields {
			if i > 0 {
				b.WriteString(", ")
			}
			if f.Name != "" {
				b.WriteString(f.Name + " ")
			}
			b.WriteString(f.Type.String())
		}
		b.WriteString(">")
		return b.String()
	}
	return t.Kind.String()
}
