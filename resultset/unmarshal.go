package resultset

import (
	"google.golang.org/protobuf/proto"

	"cloud.google.com/go/spanner/apiv1/spannerpb"

	"github.com/crowfoot-db/crowfoot/protovalue"
)

// valuesField is the number of the field values of a PartialResultSet
// (https://cloud.google.com/spanner/docs/reference/rpc/google.spanner.v1#partialresultset).
const valuesField = 2

// Unmarshal decodes a message as proto.Unmarshal does. It does not keep data.
//
// Values share memory (see protovalue.Decode): a string that you keep, even a Go string from a row, keeps up to 2 KiB in
// memory. A message that you keep also keeps its 32 neighbours with their contents. If you keep little of a large result
// for long, copy it: strings.Clone, proto.Clone.
func Unmarshal(data []byte, m *spannerpb.PartialResultSet) error {
	values, rest, ok := protovalue.Decode(data, valuesField)
	if !ok {
		return proto.Unmarshal(data, m)
	}
	if len(rest) == 0 {
		m.Reset()
	} else if proto.Unmarshal(rest, m) != nil {
		return proto.Unmarshal(data, m) // it returns the error
	}
	m.Values = values
	return nil
}
