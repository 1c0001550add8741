package protovalue

import (
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// outline holds the positions of the values in an encoded message. The method read checks the encoding, so that the
// method build cannot fail.
type outline struct {
	values []encoded // in order; a list is followed by its elements
	roots  []uint32  // for each value of the repeated field, the index in the slice values behind it and its elements
}

// encoded is the position of an encoded google.protobuf.Value.
type encoded struct {
	kind kind
	at   uint32 // position of the text of a string, or of the first element of a list; else of the byte after the tag
	n    uint32 // the number of bytes of a string, or of elements of a list
}

type kind uint8

const (
	null kind = iota
	boolean
	number
	text
	list
)

// The tags of fields: the field number times 8, plus the wire type
// (https://protobuf.dev/programming-guides/encoding/#structure).
const (
	elementsTag = 1<<3 | byte(protowire.BytesType) // the field named values of the message ListValue

	nullTag    = 1<<3 | byte(protowire.VarintType) // this and the following are fields of the message Value
	numberTag  = 2<<3 | byte(protowire.Fixed64Type)
	stringTag  = 3<<3 | byte(protowire.BytesType)
	booleanTag = 4<<3 | byte(protowire.VarintType)
	listTag    = 6<<3 | byte(protowire.BytesType)
)

// maxDepth is the largest nesting depth of lists. Spanner allows STRUCTs to be nested 15 levels deep
// (https://cloud.google.com/spanner/quotas#query_limits), and each level may be in an ARRAY, so lists from Spanner are
// not nested deeper.
const maxDepth = 64

// read reads the values in one field of the encoded message data: the field with the given number. rest is the encoding
// of the message's other fields. ok is false if package proto must decode the message (see Decode).
func (o *outline) read(data []byte, field protowire.Number) (rest []byte, ok bool) {
	valuesTag := byte(field)<<3 | byte(protowire.BytesType)
	for at := 0; at < len(data); {
		if data[at] == valuesTag {
			begin, end, ok := length(data, at+1, len(data))
			if !ok || !o.value(data, begin, end, 0) {
				return nil, false
			}
			o.roots = append(o.roots, uint32(len(o.values)))
			at = end
			continue
		}
		other, _, n := protowire.ConsumeField(data[at:])
		if n < 0 || other == field {
			return nil, false
		}
		rest = append(rest, data[at:at+n]...)
		at += n
	}
	return rest, true
}

// value reads the encoded google.protobuf.Value in data[at:end]. It returns false unless the Value consists of exactly
// one valid field. depth is the number of lists that contain the Value.
func (o *outline) value(data []byte, at, end, depth int) bool {
	if end-at < 2 {
		return false
	}
	tag := data[at]
	at++
	switch tag {
	case stringTag:
		begin, behind, ok := length(data, at, end)
		if !ok || behind != end || !utf8.Valid(data[begin:end]) {
			return false
		}
		o.values = append(o.values, encoded{text, uint32(begin), uint32(end - begin)})
		return true
	case listTag:
		begin, behind, ok := length(data, at, end)
		return ok && behind == end && depth < maxDepth && o.list(data, begin, end, depth+1)
	case nullTag:
		o.values = append(o.values, encoded{null, uint32(at), 0})
		return end-at == 1 && data[at] == 0
	case booleanTag:
		o.values = append(o.values, encoded{boolean, uint32(at), 0})
		return end-at == 1 && data[at] <= 1
	case numberTag:
		o.values = append(o.values, encoded{number, uint32(at), 0})
		return end-at == 8
	}
	return false
}

// list reads the ListValue in data[at:end].
func (o *outline) list(data []byte, at, end, depth int) bool {
	head := len(o.values)
	o.values = append(o.values, encoded{list, uint32(at), 0})
	n := uint32(0)
	for ; at < end; n++ {
		if data[at] != elementsTag {
			return false
		}
		begin, behind, ok := length(data, at+1, end)
		if !ok || !o.value(data, begin, behind, depth) {
			return false
		}
		at = behind
	}
	o.values[head].n = n
	return true
}

// length reads the length of a field's contents, which is encoded at data[at] before the contents. begin and behind are
// the start and the end of the contents. ok is false if the length is malformed, or if the contents reach beyond
// data[:end].
func length(data []byte, at, end int) (begin, behind int, ok bool) {
	if at < end && data[at] < 0x80 {
		begin, behind = at+1, at+1+int(data[at])
		return begin, behind, behind <= end
	}
	size, n := protowire.ConsumeVarint(data[min(at, end):end])
	if n < 0 || size > uint64(end-at-n) {
		return 0, 0, false
	}
	return at + n, at + n + int(size), true
}
