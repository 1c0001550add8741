// Package protovalue decodes fields of google.protobuf.Value
// (https://protobuf.dev/reference/protobuf/google.protobuf/#value), in which Spanner's API carries rows. It makes the
// same Go values as package proto of protobuf, with a thirtieth of the allocations.
//
// The server uses it to decode the rows of mutations. Package resultset uses it to decode the results that a client
// receives.
//
// Imports of this module: nothing.
package protovalue

import (
	"math"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/structpb"
)

// Decode decodes an encoded message that has a repeated field of type google.protobuf.Value. field is the number of
// this field, from 1 to 15. Decode returns the values of the field, and the other fields, still encoded, as rest. The
// results do not refer to data.
//
// ok is false if the caller must decode the message with package proto, because the message is malformed or unusual. It
// is unusual if it contains a google.protobuf.Struct, lists nested deeper than 64 levels, a value without a kind or
// with several kinds, or an encoding that is longer than necessary.
//
// Strings of up to maxShared bytes are slices of shared blocks, which have at most textBlock bytes. So if you keep a
// string, up to 2 KiB stay in memory. The messages of neighbouring values share arrays. An array takes whole values
// until it holds at least 32, counting the elements of lists. So if you keep a value, the other values of its array
// stay in memory, too, with their contents.
func Decode(data []byte, field protowire.Number) (values []*structpb.Value, rest []byte, ok bool) {
	if len(data) > math.MaxInt32 { // positions in an outline have 32 bits
		return nil, nil, false
	}
	o := outlines.Get().(*outline)
	defer o.release()
	if rest, ok = o.read(data, field); ok && len(o.roots) > 0 {
		values = o.build(data)
	}
	return values, rest, ok
}

// outlines holds unused outlines for reuse.
var outlines = sync.Pool{New: func() any { return new(outline) }}

// maxKept is the largest capacity, in elements, of an outline's slices that are kept for reuse. Two slices of this
// capacity take a mebibyte of memory. They are large enough for the messages that servers usually send.
const maxKept = 64 << 10

func (o *outline) release() {
	if cap(o.values) > maxKept || cap(o.roots) > maxKept {
		return
	}
	o.values, o.roots = o.values[:0], o.roots[:0]
	outlines.Put(o)
}
