package conversion

import (
	"encoding/base64"
	"strings"
	"unicode/utf8"

	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/sql/fn/text"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// The functions in this file convert between BYTES and STRING for CAST with FORMAT.

func encodeBytes(ctx *fn.Context, a []value.Value) (value.Value, error) {
	switch strings.ToLower(a[1].AsString()) {
	case "hex", "base16":
		return text.ToHex(ctx, a)
	case "base64":
		return text.ToBase64(ctx, a)
	case "base64m":
		return fn.OfString(wrap(base64.StdEncoding.EncodeToString(a[0].AsBytes())))
	case "utf-8", "utf8":
		if !utf8.Valid(a[0].AsBytes()) {
			return fn.BadArgument("A string is not valid UTF-8.")
		}
		return fn.OfString(a[0].AsString())
	case "ascii":
		return asASCII(a[0], value.String)
	}
	return invalidFormat(a[1])
}

func decodeBytes(ctx *fn.Context, a []value.Value) (value.Value, error) {
	switch strings.ToLower(a[1].AsString()) {
	case "hex", "base16":
		return text.FromHex(ctx, a)
	case "base64", "base64m":
		return text.FromBase64(ctx, a)
	case "utf-8", "utf8":
		return stringToBytes(ctx, a)
	case "ascii":
		return asASCII(a[0], value.Bytes)
	}
	return invalidFormat(a[1])
}

func invalidFormat(format value.Value) (value.Value, error) {
	return value.Value{}, usererror.BadArgument("Invalid format '" + format.AsString() + "'")
}

func asASCII(v value.Value, kind value.Kind) (value.Value, error) {
	if !fn.IsASCII(v.AsString()) {
		return fn.BadArgument("Failed to decode invalid ASCII string")
	}
	return fn.TextOf(kind, v.AsString()), nil
}

// wrap breaks text in base 64 into lines of 76 characters (RFC 2045, 6.8).
func wrap(s string) string {
	const line = 76
	var b strings.Builder
	for len(s) > line {
		b.WriteString(s[:line] + "\n")
		s = s[line:]
	}
	return b.String() + s
}
