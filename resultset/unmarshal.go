package resultset

import (
	"math"
	"sync"

	"google.golang.org/protobuf/proto"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
)

// Unmarshal decodes a message as proto.Unmarshal does. It does not keep data.
//
// Strings of up to maxShared bytes are slices of shared blocks, which have at most textBlock bytes. The messages of
// neighbouring values share arrays. An array holds at least 32 values of the result, or one value if that is an ARRAY
// or STRUCT with more. So a string that you keep, even a Go string from a row, keeps up to 2 KiB in memory. A message
// that you keep also keeps its 32 values with their contents. If you keep little of a large result for long, copy it:
// strings.Clone, proto.Clone.
func Unmarshal(data []byte, m *spannerpb.PartialResultSet) error {
	if len(data) > math.MaxInt32 { // more than the positions of an outline can hold
		return proto.Unmarshal(data, m)
	}
	o := outlines.Get().(*outline)
	defer o.release()
	if !o.read(data) {
		return proto.Unmarshal(data, m)
	}
	if len(o.rest) == 0 {
		m.Reset()
	} else if proto.Unmarshal(o.rest, m) != nil {
		return proto.Unmarshal(data, m) // it returns the error
	}
	if len(o.roots) > 0 {
		m.Values = o.build(data)
	}
	return nil
}

// outlines holds unused outlines for reuse.
var outlines = sync.Pool{New: func() any { return new(outline) }}

// maxKept is the largest capacity of the slices of an outline that is kept for reuse: a megabyte. Servers send messages
// of about that size.
const maxKept = 64 << 10

func (o *outline) release() {
	if cap(o.values) > maxKept || cap(o.roots) > maxKept || cap(o.rest) > maxKept {
		return
	}
	o.values, o.roots, o.rest = o.values[:0], o.roots[:0], o.rest[:0]
	outlines.Put(o)
}
