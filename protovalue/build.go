package protovalue

import (
	"encoding/binary"
	"math"

	"google.golang.org/protobuf/types/known/structpb"
)

// A value consists of several messages. Each of these structs has room for all messages of one value. So the builder
// can make many values with one allocation, as an array of such structs.
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

// builder makes the values that an outline describes.
type builder struct {
	data   []byte
	values []encoded
	made   int // the number of values made

	// The slices nulls, bools, numbers, strings, lists and elements hold the messages of the current segment (see
	// segment). used counts how many messages of each kind the builder has made in this segment. The builder uses
	// counters and does not shorten the slices, because each write of a slice to the builder costs a write barrier of
	// the garbage collector.
	nulls    []nullValue
	bools    []boolValue
	numbers  []numberValue
	strings  []stringValue
	lists    []listValue
	elements []*structpb.Value
	used     [list + 1]int
	inLists  int // how many entries of the slice named elements are in use

	block   string // a copy of a part of the message; this part begins at the index blockAt of data (see textBlock)
	blockAt int
}

// segment is the least number of values that are allocated together. build takes values of the repeated field, each
// with all elements of its lists, until it has at least segment values. No message points into the memory of another
// segment. So if a caller keeps a message, only the message's own segment stays in memory.
const segment = 32

// build makes the values that the outline describes. data is the encoded message.
func (o *outline) build(data []byte) []*structpb.Value {
	made := make([]*structpb.Value, len(o.roots))
	b := builder{data: data, values: o.values}
	room := uint32(0) // the index in o.values up to which memory is allocated
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

// allocate allocates memory for the messages of the given values, which form one segment.
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

// next makes the next value of the outline, including its elements.
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

// list makes the next n values of the outline, which are the elements of a list.
func (b *builder) list(n int) []*structpb.Value {
	if n == 0 {
		return nil // package proto makes nil, too
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
	// textBlock is the largest size of a block in bytes. A block is a copy of a part of the encoded message. Short
	// strings are slices of a block, so a block also holds the bytes that lie between the strings in the message.
	textBlock = 2 << 10
	// maxShared is the largest length in bytes of a string that is a slice of a block. Longer strings get memory of
	// their own.
	maxShared = textBlock / 4
)

// text returns the text of the string e, which the method next is making.
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

// blockEnd returns the position in the message at which a block ends. The block begins at the position in the parameter
// begin, with the text of the string that the method next is making. It ends before the first string that is longer
// than maxShared, or with which the block would be longer than textBlock.
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
