package value

import (
	"fmt"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
)

// maxTypeDepth is the greatest nesting depth of types. Most clients could not read a deeper type in a reply: most
// languages limit the nesting of protocol buffers to 100 messages, and each level of a type takes one message (ARRAY)
// or three (STRUCT).
const maxTypeDepth = 100

// TypeFromProto makes a Type from its wire form.
func TypeFromProto(p *spannerpb.Type) (*Type, error) { return typeFromProto(p, 0) }

func typeFromProto(p *spannerpb.Type, depth int) (*Type, error) {
	if depth > maxTypeDepth {
		return nil, fmt.Errorf("type nests deeper than %d levels", maxTypeDepth)
	}
	if a := p.GetTypeAnnotation(); a != spannerpb.TypeAnnotationCode_TYPE_ANNOTATION_CODE_UNSPECIFIED {
		return nil, fmt.Errorf("type annotation %s is not supported", a)
	}
	switch code := p.GetCode(); code {
	case spannerpb.TypeCode_ARRAY:
		return arrayFromProto(p, depth)
	case spannerpb.TypeCode_STRUCT:
		return structFromProto(p, depth)
	case spannerpb.TypeCode_PROTO, spannerpb.TypeCode_ENUM:
		if p.ProtoTypeFqn == "" {
			return nil, fmt.Errorf("%s type without proto_type_fqn", code)
		}
		return &Type{Kind: Kind(code), Name: p.ProtoTypeFqn}, nil
	default:
		if code > 0 && int(code) < len(scalarTypes) && scalarTypes[code] != nil {
			return scalarTypes[code], nil
		}
		return nil, fmt.Errorf("type code %s is not supported", code)
	}
}

// scalarTypes holds the scalar types, indexed by Kind.
var scalarTypes = [...]*Type{
	Bool: BoolType, Int64: Int64Type, Float64: Float64Type, Float32: Float32Type, Timestamp: TimestampType,
	Date: DateType, String: StringType, Bytes: BytesType, Numeric: NumericType, JSON: JSONType,
	Interval: IntervalType, UUID: UUIDType,
}

// ScalarType returns the scalar type of a kind, or nil if the kind is not scalar.
func ScalarType(k Kind) *Type {
	if int(k) < len(scalarTypes) {
		return scalarTypes[k]
	}
	return nil
}

func arrayFromProto(p *spannerpb.Type, depth int) (*Type, error) {
	if p.ArrayElementType == nil {
		return nil, fmt.Errorf("ARRAY type without array_element_type")
	}
	elem, err := typeFromProto(p.ArrayElementType, depth+1)
	if err != nil {
		return nil, err
	}
	if elem.Kind == Array {
		return nil, fmt.Errorf("ARRAY of ARRAY is not supported")
	}
	return ArrayOf(elem), nil
}

func structFromProto(p *spannerpb.Type, depth int) (*Type, error) {
	if p.StructType == nil {
		return nil, fmt.Errorf("STRUCT type without struct_type")
	}
	fields := make([]Field, len(p.StructType.Fields))
	for i, f := range p.StructType.Fields {
		t, err := typeFromProto(f.GetType(), depth+1)
		if err != nil {
			return nil, fmt.Errorf("STRUCT field %d: %w", i+1, err)
		}
		fields[i] = Field{Name: f.GetName(), Type: t}
	}
	return StructOf(fields...), nil
}

// Proto returns the wire form of a type.
func (t *Type) Proto() *spannerpb.Type {
	p := &spannerpb.Type{Code: spannerpb.TypeCode(t.Kind)}
	switch t.Kind {
	case Array:
		p.ArrayElementType = t.Elem.Proto()
	case Proto, Enum:
		p.ProtoTypeFqn = t.Name
	case Struct:
		p.StructType = &spannerpb.StructType{Fields: make([]*spannerpb.StructType_Field, len(t.Fields))}
		for i, f := range t.Fields {
			p.StructType.Fields[i] = &spannerpb.StructType_Field{Name: f.Name, Type: f.Type.Proto()}
		}
	}
	return p
}
