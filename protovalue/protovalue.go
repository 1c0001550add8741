// Package protovalue decodes fields of google.protobuf.Value
// (https://protobuf.dev/reference/protobuf/google.protobuf/#value), in which Spanner's API carries rows. It makes the
// same Go values as package proto of protobuf, with a thirtieth of the allocations.
//
// The server decodes the rows of mutations with it, and package resultset the results that a client receives.
//
// Imports of this module: nothing.
package protovalue

import (
	"math"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/structpb"
)

// Decode decodes the values of a message whose repeated field has the number field, from 1 to 15, and is of type
// google.protobuf.Value. It returns the encoded other fields as rest. It does not keep data.
//
// It returns false if package proto must decode the message, because it is malformed or unusual: it contains a
// google.protobuf.Struct, lists nested deeper than 64 levels, a value without a kind or with several kinds, or an
// encoding that is longer than necessary.
//
// Strings of up to maxShared bytes are slices of shared blocks, which have at most textBlock bytes. The messages of
// neighbouring values share arrays. An array holds at least 32 values of the message, or one value if that is a list
// with more. So a string that you keep keeps up to 2 KiB in memory. A value that you keep also keeps its 32 neighbours
// with their contents.
func Decode(data []byte, field protowire.Number) (values []*structpb.Value, rest []byte, ok bool) {
	if len(data) > math.MaxInt32 { // more than the positions of an outline can hold
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

// maxKept is the largest capacity of the slices of an outline that is kept for reuse: a megabyte. Servers send messages
// of about that size.
const maxKept = 64 << 10

func (o *outline) release() {
	if cap(o.values) > maxKept || cap(o.roots) > maxKept {
		return
	}
	o.values, o.roots = o.values[:0], o.roots[:0]
	outlines.Put(o)
}
