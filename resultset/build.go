package resultset

import (
	"encoding/binary"
	"math"

	"google.golang.org/protobuf/types/known/structpb"
)

// The messages of a value lie beside each other: an allocation is an array of these.
type (
	nullValue struct {
		value structpb.Value
		kind  structpb.Value_NullValue
	}
	boolValue struct {
		value structpb.Value
		kind  structpb.Value_BoolValue
	}
	numberValue struct {
		value structpb.Value
		kind  structpb.Value_NumberValue
	}
	stringValue struct {
		value structpb.Value
		kind  structpb.Value_StringValue
	}
	listValue struct {
		value structpb.Value
		kind  structpb.Value_ListValue
		list  structpb.ListValue
	}
)

// builder makes the values of an outline.
type builder struct {
	data   []byte
	values []encoded
	made   int // so many of values

	// room for the messages of the segment, and how many of each kind are made: cursors, as to write slices costs a write barrier of the garbage collector
	nulls    []nullValue
	bools    []boolValue
	numbers  []numberValue
	strings  []stringValue
	lists    []listValue
	elements []*structpb.Value
	used     [list + 1]int
	inLists  int // elements

	block   string // the text at data[blockAt:]
	blockAt int
}

// segment is how many values are allocated at once, at least: those of further values of the message until there are so many. No message points
// into another segment, so that one which is kept keeps its own segment only.
const segment = 32

// build makes the values of the message.
func (o *outline) build(data []byte) []*structpb.Value {
	made := make([]*structpb.Value, len(o.roots))
	b := builder{data: data, values: o.values}
	room := uint32(0) // up to which value there is room
	for i, behind := range o.roots {
		if behind > room {
			begin := room
			for _, room = range o.roots[i:] {
				if room-begin >= segment {
					break
				}
			}
			b.allocate(o.values[begin:room])
		}
		made[i] = b.next()
	}
	return made
}

// allocate makes room for the messages of a segment.
func (b *builder) allocate(values []encoded) {
	var count [list + 1]int
	elements := 0
	for i := range values {
		count[values[i].kind]++
		if values[i].kind == list {
			elements += int(values[i].n)
		}
	}
	b.nulls = make([]nullValue, count[null])
	b.bools = make([]boolValue, count[boolean])
	b.numbers = make([]numberValue, count[number])
	b.strings = make([]stringValue, count[text])
	b.lists = make([]listValue, count[list])
	b.elements = make([]*structpb.Value, elements)
	b.used, b.inLists = [list + 1]int{}, 0
}

// next makes the next value, with its elements.
func (b *builder) next() *structpb.Value {
	e := b.values[b.made]
	b.made++
	at := b.used[e.kind]
	b.used[e.kind]++
	switch e.kind {
	case text:
		v := &b.strings[at]
		v.kind.StringValue = b.text(e)
		v.value.Kind = &v.kind
		return &v.value
	case list:
		v := &b.lists[at]
		v.value.Kind, v.kind.ListValue = &v.kind, &v.list
		v.list.Values = b.list(int(e.n))
		return &v.value
	case boolean:
		v := &b.bools[at]
		v.kind.BoolValue = b.data[e.at] != 0
		v.value.Kind = &v.kind
		return &v.value
	case number:
		v := &b.numbers[at]
		v.kind.NumberValue = math.Float64frombits(binary.LittleEndian.Uint64(b.data[e.at:]))
		v.value.Kind = &v.kind
		return &v.value
	}
	v := &b.nulls[at]
	v.value.Kind = &v.kind
	return &v.value
}

// list makes the next n values, as the elements of a list.
func (b *builder) list(n int) []*structpb.Value {
	if n == 0 {
		return nil // as package proto
	}
	first := b.inLists
	b.inLists += n
	elements := b.elements[first:b.inLists:b.inLists]
	for i := range elements {
		elements[i] = b.next()
	}
	return elements
}

const (
	// textBlock is how many bytes a block of text has at most: short strings are cut from it, with the bytes that are between them.
	textBlock = 2 << 10
	// maxShared is how long the strings are that are cut from blocks.
	maxShared = textBlock / 4
)

// text is that of the value that is being made.
func (b *builder) text(e encoded) string {
	at, n := int(e.at), int(e.n)
	if n > maxShared {
		return string(b.data[at : at+n])
	}
	if at+n > b.blockAt+len(b.block) {
		b.blockAt, b.block = at, string(b.data[at:b.blockEnd(at)])
	}
	return b.block[at-b.blockAt:][:n]
}

// blockEnd is where a block ends that begins with the value that is being made: before a string that is not cut from it.
func (b *builder) blockEnd(begin int) (end int) {
	values := b.values[b.made-1:]
	for i := range values {
		e := &values[i]
		if e.kind != text {
			if int(e.at)-begin > textBlock {
				break
			}
			continue
		}
		behind := int(e.at + e.n)
		if e.n > maxShared || behind-begin > textBlock {
			break
		}
		end = behind
	}
	return end
}
