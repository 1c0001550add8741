package fn

import (
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"github.com/crowfoot-db/crowfoot/value"
)

// encodings convert between text, bytes and code points.
var encodings = []record{
	{name: "to_hex", doc: "Bytes in hexadecimal, lower case.", overloads: []overload{on("BYTES -> STRING", strict(toHex))}},
	{name: "from_hex", doc: "The bytes that hexadecimal digits stand for; an odd digit is the first.", overloads: []overload{on("STRING -> BYTES", strict(fromHex))}},
	{name: "to_base32", doc: "Bytes in base 32 (RFC 4648).", overloads: []overload{on("BYTES -> STRING", strict(toBase32))}},
	{name: "from_base32", doc: "The bytes of a base 32 text (RFC 4648).", overloads: []overload{on("STRING -> BYTES", strict(fromBase32))}},
	{name: "to_base64", doc: "Bytes in base 64 (RFC 4648).", overloads: []overload{on("BYTES -> STRING", strict(toBase64))}},
	{name: "from_base64", doc: "The bytes of a base 64 text (RFC 4648).", overloads: []overload{on("STRING -> BYTES", strict(fromBase64))}},
	{name: "to_code_points", doc: "The code points of a STRING, the values of the bytes of a BYTES.", overloads: []overload{
		on("STRING -> ARRAY<INT64>", strict(toCodePoints)),
		on("BYTES -> ARRAY<INT64>", strict(toCodePointsBytes)),
	}},
	{name: "code_points_to_string", doc: "The text of code points; NULL if one is NULL.", overloads: []overload{on("ARRAY<INT64> -> STRING", strict(codePointsToString))}},
	{name: "code_points_to_bytes", doc: "Bytes of values from 0 to 255; NULL if one is NULL.", overloads: []overload{on("ARRAY<INT64> -> BYTES", strict(codePointsToBytes))}},
	{name: "safe_convert_bytes_to_string", doc: "Bytes as text; those that are no UTF-8 become U+FFFD, one each.", overloads: []overload{on("BYTES -> STRING", strict(safeConvert))}},
	{name: "normalize", doc: "NORMALIZE(text, mode): in Unicode's normal form NFC (if not said otherwise), NFD, NFKC or NFKD.",
		overloads: []overload{on("STRING, ?PART -> STRING", strict(normalize))}},
	{name: "normalize_and_casefold", doc: "NORMALIZE_AND_CASEFOLD(text, mode): as NORMALIZE, with case folded.",
		overloads: []overload{on("STRING, ?PART -> STRING", strict(normalizeFold))}},
}

func toHex(_ *Context, a []value.Value) (value.Value, error) {
	return ofString(hex.EncodeToString(a[0].AsBytes()))
}

func fromHex(_ *Context, a []value.Value) (value.Value, error) {
	s := a[0].AsString()
	for i := range len(s) {
		if !strings.ContainsRune("0123456789abcdefABCDEF", rune(s[i])) {
			return badArgument(fmt.Sprintf("Failed to decode invalid hexadecimal string due to character at offset %d: %s", i, s))
		}
	}
	if len(s)%2 == 1 {
		s = "0" + s
	}
	b, _ := hex.DecodeString(s) // checked above
	return ofBytes(b)
}

func toBase32(_ *Context, a []value.Value) (value.Value, error) {
	return ofString(base32.StdEncoding.EncodeToString(a[0].AsBytes()))
}

func fromBase32(_ *Context, a []value.Value) (value.Value, error) {
	b, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(strings.TrimRight(a[0].AsString(), "="))
	if err != nil {
		return badArgument("Failed to decode invalid base32 string")
	}
	return ofBytes(b)
}

func toBase64(_ *Context, a []value.Value) (value.Value, error) {
	return ofString(base64.StdEncoding.EncodeToString(a[0].AsBytes()))
}

// fromBase64 ignores white space and does not require padding.
func fromBase64(_ *Context, a []value.Value) (value.Value, error) {
	s := strings.Map(func(r rune) rune {
		if strings.ContainsRune(" \t\n\v\f\r", r) {
			return -1
		}
		return r
	}, a[0].AsString())
	trimmed := strings.TrimRight(s, "=")
	padding := len(s) - len(trimmed)
	b, err := base64.RawStdEncoding.DecodeString(trimmed)
	if err != nil || padding != 0 && (len(s)%4 != 0 || padding > 2) {
		return badArgument("Failed to decode invalid base64 string")
	}
	return ofBytes(b)
}

func toCodePoints(_ *Context, a []value.Value) (value.Value, error) {
	points := []value.Value{}
	for _, r := range a[0].AsString() {
		points = append(points, value.OfInt64(int64(r)))
	}
	return value.OfArray(points), nil
}

func toCodePointsBytes(_ *Context, a []value.Value) (value.Value, error) {
	b := a[0].AsBytes()
	points := make([]value.Value, len(b))
	for i, c := range b {
		points[i] = value.OfInt64(int64(c))
	}
	return value.OfArray(points), nil
}

func codePointsToString(_ *Context, a []value.Value) (value.Value, error) {
	var text []byte
	for _, p := range a[0].AsList() {
		if p.IsNull() {
			return null(value.String)
		}
		if !validCodePoint(p.AsInt64()) {
			return badArgument("Invalid codepoint " + int64Text(p.AsInt64()))
		}
		text = utf8.AppendRune(text, rune(p.AsInt64()))
	}
	return ofString(string(text))
}

func validCodePoint(p int64) bool {
	return p >= 0 && p <= utf8.MaxRune && utf8.ValidRune(rune(p))
}

func codePointsToBytes(_ *Context, a []value.Value) (value.Value, error) {
	b := make([]byte, 0, len(a[0].AsList()))
	for _, p := range a[0].AsList() {
		if p.IsNull() {
			return null(value.Bytes)
		}
		if p.AsInt64() < 0 || p.AsInt64() > 255 {
			return badArgument("Invalid ASCII value " + int64Text(p.AsInt64()))
		}
		b = append(b, byte(p.AsInt64()))
	}
	return ofBytes(b)
}

func safeConvert(_ *Context, a []value.Value) (value.Value, error) {
	b := a[0].AsBytes()
	if utf8.Valid(b) {
		return ofString(string(b))
	}
	var text []byte
	for len(b) > 0 {
		r, size := utf8.DecodeRune(b)
		text = utf8.AppendRune(text, r)
		b = b[size:]
	}
	return ofString(string(text))
}

var normalForms = map[string]norm.Form{"NFC": norm.NFC, "NFD": norm.NFD, "NFKC": norm.NFKC, "NFKD": norm.NFKD}

func normalForm(a []value.Value) norm.Form {
	if len(a) > 1 {
		return normalForms[a[1].AsString()]
	}
	return norm.NFC
}

func normalize(_ *Context, a []value.Value) (value.Value, error) {
	return ofString(normalForm(a).String(a[0].AsString()))
}

func normalizeFold(_ *Context, a []value.Value) (value.Value, error) {
	form := normalForm(a)
	return ofString(cases.Fold().String(form.String(a[0].AsString())))
}
