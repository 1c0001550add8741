package result

import (
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/crowfoot-db/crowfoot/sql/plan"
	"github.com/crowfoot-db/crowfoot/value"
)

// Tags (number<<3 | wire type) of fields of google.spanner.v1. Tags without a comment are those of other fields of the
// message above them.
const (
	tagPartialMetadata = 1<<3 | 2 // PartialResultSet.metadata
	tagPartialValue    = 2<<3 | 2
	tagPartialChunked  = 3 << 3
	tagPartialToken    = 4<<3 | 2
	tagPartialStats    = 5<<3 | 2
	tagPartialLast     = 9 << 3

	tagResultMetadata = 1<<3 | 2 // ResultSet.metadata
	tagResultRow      = 2<<3 | 2
	tagResultStats    = 3<<3 | 2

	tagListValue = 1<<3 | 2 // google.protobuf.ListValue.values

	tagMetadataRowType     = 1<<3 | 2 // ResultSetMetadata.row_type
	tagMetadataTransaction = 2<<3 | 2
	tagMetadataUndeclared  = 3<<3 | 2

	tagStructField = 1<<3 | 2 // StructType.fields
	tagFieldName   = 1<<3 | 2 // StructType.Field.name
	tagFieldType   = 2<<3 | 2
	tagTypeCode    = 1 << 3 // Type.code
	tagTypeElement = 2<<3 | 2
	tagTypeStruct  = 3<<3 | 2
	tagTypeName    = 5<<3 | 2 // Type.proto_type_fqn
)

// appendRowType appends the body of the StructType that describes the columns.
func appendRowType(dst []byte, columns []plan.Column) []byte {
	for _, c := range columns {
		dst = appendField(dst, c.Name, c.Type)
	}
	return dst
}

// appendField appends an element of StructType.fields.
func appendField(dst []byte, name string, t *value.Type) []byte {
	dst = append(dst, tagStructField)
	dst = protowire.AppendVarint(dst, uint64(sizeField(name, t)))
	if name != "" {
		dst = append(dst, tagFieldName)
		dst = protowire.AppendString(dst, name)
	}
	dst = append(dst, tagFieldType)
	dst = protowire.AppendVarint(dst, uint64(sizeType(t)))
	return appendType(dst, t)
}

// appendType appends the body of a Type.
func appendType(dst []byte, t *value.Type) []byte {
	dst = append(dst, tagTypeCode)
	dst = protowire.AppendVarint(dst, uint64(t.Kind))
	switch t.Kind {
	case value.Array:
		dst = append(dst, tagTypeElement)
		dst = protowire.AppendVarint(dst, uint64(sizeType(t.Elem)))
		dst = appendType(dst, t.Elem)
	case value.Proto, value.Enum:
		dst = append(dst, tagTypeName)
		dst = protowire.AppendString(dst, t.Name)
	case value.Struct:
		dst = append(dst, tagTypeStruct)
		dst = protowire.AppendVarint(dst, uint64(sizeFields(t.Fields)))
		for _, f := range t.Fields {
			dst = appendField(dst, f.Name, f.Type)
		}
	}
	return dst
}

func sizeRowType(columns []plan.Column) int {
	n := 0
	for _, c := range columns {
		n += 1 + protowire.SizeBytes(sizeField(c.Name, c.Type))
	}
	return n
}

func sizeFields(fields []value.Field) int {
	n := 0
	for _, f := range fields {
		n += 1 + protowire.SizeBytes(sizeField(f.Name, f.Type))
	}
	return n
}

func sizeField(name string, t *value.Type) int {
	n := 1 + protowire.SizeBytes(sizeType(t))
	if name != "" {
		n += 1 + protowire.SizeBytes(len(name))
	}
	return n
}

func sizeType(t *value.Type) int {
	n := 1 + protowire.SizeVarint(uint64(t.Kind))
	switch t.Kind {
	case value.Array:
		n += 1 + protowire.SizeBytes(sizeType(t.Elem))
	case value.Proto, value.Enum:
		n += 1 + protowire.SizeBytes(len(t.Name))
	case value.Struct:
		n += 1 + protowire.SizeBytes(sizeFields(t.Fields))
	}
	return n
}
