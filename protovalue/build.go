package protovalue

import (
	"encoding/binary"
	"math"

	"google.golang.org/protobuf/types/known/structpb"
)

// These structs hold all messages of one value side by side, so that one allocation makes an array of them.
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
	made   int // the number of values made

	// nulls to elements hold the messages of the segment. used and inLists count those that were made. To update a
	// counter is cheaper than to cut a slice, because each write of a slice costs a write barrier of the garbage
	// collector.
	nulls    []nullValue
	bools    []boolValue
	numbers  []numberValue
	strings  []stringValue
	lists    []listValue
	elements []*structpb.Value
	used     [list + 1]int
	inLists  int // the number of elements

	block   string // the text data[blockAt:], up to the end of the block
	blockAt int
}

// segment is the number of values that are allocated together. A segment takes whole values of the message until it has
// at least that many. No message points into another segment, so a message that is kept keeps only its own segment in
// memory.
const segment = 32

// build makes the values of the message.
func (o *outline) build(data []byte) []*structpb.Value {
	made := make([]*structpb.Value, len(o.roots))
	b := builder{data: data, values: o.values}
	room := uint32(0) // the index in values up to which memory is allocated
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

// allocate allocates the messages of a segment.
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

// list makes the next n values as the elements of a list.
func (b *builder) list(n int) []*structpb.Value {
	if n == 0 {
		return nil // like package proto
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
	// textBlock is the largest size of a block of text in bytes. Short strings are slices of a block, which also holds
	// the bytes between them.
	textBlock = 2 << 10
	// maxShared is the largest length of a string that is a slice of a block.
	maxShared = textBlock / 4
)

// text returns the text of the current value.
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

// blockEnd returns the end of a block that begins with the current value. It ends before a string that is too long for
// a block.
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
