package resultset

import (
	"google.golang.org/protobuf/proto"

	"cloud.google.com/go/spanner/apiv1/spannerpb"

	"github.com/crowfoot-db/crowfoot/protovalue"
)

// valuesField is the number of the field named values in a PartialResultSet
// (https://cloud.google.com/spanner/docs/reference/rpc/google.spanner.v1#partialresultset).
const valuesField = 2

// Unmarshal decodes a message as proto.Unmarshal does. The result does not refer to data.
//
// Values share memory (see protovalue.Decode). If you keep a string, even a Go string from a row, up to 2 KiB stay in
// memory. If you keep a value's message, the messages in the same array (32 or more) stay in memory, too, with their
// contents. So if you keep a small part of a large result for long, copy that part with strings.Clone or proto.Clone.
func Unmarshal(data []byte, m *spannerpb.PartialResultSet) error {
	values, rest, ok := protovalue.Decode(data, valuesField)
	if !ok {
		return proto.Unmarshal(data, m)
	}
	if len(rest) == 0 {
		m.Reset()
	} else if proto.Unmarshal(rest, m) != nil {
		return proto.Unmarshal(data, m) // so that the error is the same as that of package proto
	}
	m.Values = values
	return nil
}
