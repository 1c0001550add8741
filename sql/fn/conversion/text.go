package conversion

import (
	"unicode/utf8"

	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// The functions in this file convert between STRING, BYTES and UUID.

func stringToBytes(_ *fn.Context, a []value.Value) (value.Value, error) {
	return fn.BytesOf(a[0].AsString()), nil
}

func bytesToString(_ *fn.Context, a []value.Value) (value.Value, error) {
	if !utf8.Valid(a[0].AsBytes()) {
		return value.Value{}, usererror.BytesNotUTF8()
	}
	return fn.OfString(a[0].AsString())
}

func parseUUID(_ *fn.Context, a []value.Value) (value.Value, error) {
	u, err := value.ParseUUID(a[0].AsString())
	if err != nil {
		return fn.BadArgument("Invalid input: Failed to parse UUID from string: " + quotedValue(a[0].AsString()))
	}
	return value.OfUUID(u), nil
}

func uuidToBytes(_ *fn.Context, a []value.Value) (value.Value, error) {
	u := a[0].AsUUID()
	return fn.OfBytes(u[:])
}

func bytesToUUID(_ *fn.Context, a []value.Value) (value.Value, error) {
	b := a[0].AsBytes()
	if len(b) != 16 {
		return fn.BadArgument("Invalid bytes value size for UUID, expected 16 bytes, but got " + fn.Int64Text(int64(len(b))) + " bytes.")
	}
	return value.OfUUID([16]byte(b)), nil
}
