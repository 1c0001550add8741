package rpc

import (
	"slices"
	"testing"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/protobuf/encoding/protowire"
)

// TestDeepMessage: the memory of a message is estimated before the decoder refuses it for being nested too deeply. This
// message has five million levels; an estimate that recurses into all of them would exceed the goroutine's stack.
func TestDeepMessage(t *testing.T) {
	const levels, list, values, fields, entry, params = 2_500_000, 6, 1, 1, 2, 4
	var reversed []byte
	within := func(number protowire.Number) { // puts the message that is built so far into a field of a new message
		head := protowire.AppendVarint(protowire.AppendTag(nil, number, protowire.BytesType), uint64(len(reversed)))
		slices.Reverse(head)
		reversed = append(reversed, head...)
	}
	for range levels {
		within(values)
		within(list)
	}
	for _, number := range []protowire.Number{entry, fields, params} {
		within(number)
	}
	slices.Reverse(reversed)
	d := new(spannerpb.ExecuteSqlRequest).ProtoReflect().Descriptor()
	if n := DecodedBytes(d, reversed); n < protowire.DefaultRecursionLimit*messageBytes/2 {
		t.Errorf("%d bytes for a message of %d levels", n, levels)
	}
}
