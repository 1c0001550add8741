package resultset

import (
	"math"
	"sync"

	"google.golang.org/protobuf/proto"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
)

// Unmarshal decodes a message as proto.Unmarshal does. It does not keep data.
//
// Strings of up to maxShared bytes are cut from blocks of at most textBlock bytes, and the messages of neighbouring values from arrays: those of at least
// 32 values of the result, or of one value if that is an ARRAY or STRUCT with more. So a string that is kept, also as a Go string out of a row, keeps at
// most 2 KiB in memory; a message that is kept, 32 values of the result and what they consist of. Clone what is to stay for long from among much
// that does not: strings.Clone, proto.Clone.
func Unmarshal(data []byte, m *spannerpb.PartialResultSet) error {
	if len(data) > math.MaxInt32 { // beyond the positions of an outline
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
		return proto.Unmarshal(data, m) // whose error it is
	}
	if len(o.roots) > 0 {
		m.Values = o.build(data)
	}
	return nil
}

// outlines are unused ones.
var outlines = sync.Pool{New: func() any { return new(outline) }}

// maxKept is the length of the slices that an unused outline may have: a megabyte. Servers make messages of about that size.
const maxKept = 64 << 10

func (o *outline) release() {
	if cap(o.values) > maxKept || cap(o.roots) > maxKept || cap(o.rest) > maxKept {
		return
	}
	o.values, o.roots, o.rest = o.values[:0], o.roots[:0], o.rest[:0]
	outlines.Put(o)
}
