package fn

import (
	"unicode/utf8"

	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// Conversions of text, dates and other types that are written as text.

func stringToBytes(_ *Context, a []value.Value) (value.Value, error) {
	return bytesOf(a[0].AsString()), nil
}

func bytesToString(_ *Context, a []value.Value) (value.Value, error) {
	if !utf8.Valid(a[0].AsBytes()) {
		return value.Value{}, usererror.BytesNotUTF8()
	}
	return ofString(a[0].AsString())
}

func parseUUID(_ *Context, a []value.Value) (value.Value, error) {
	u, err := value.ParseUUID(a[0].AsString())
	if err != nil {
		return badArgument("Invalid input: Failed to parse UUID from string: " + quotedValue(a[0].AsString()))
	}
	return value.OfUUID(u), nil
}

func uuidToBytes(_ *Context, a []value.Value) (value.Value, error) {
	u := a[0].AsUUID()
	return ofBytes(u[:])
}

func bytesToUUID(_ *Context, a []value.Value) (value.Value, error) {
	b := a[0].AsBytes()
	if len(b) != 16 {
		return badArgument("Invalid bytes value size for UUID, expected 16 bytes, but got " + int64Text(int64(len(b))) + " bytes.")
	}
	return value.OfUUID([16]byte(b)), nil
}
