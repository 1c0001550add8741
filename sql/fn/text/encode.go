package text

import (
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/value"
)

// Encodings has the functions that convert between text, bytes and code points.
var Encodings = []fn.Record{
	{Name: "to_hex", Doc: "Bytes in hexadecimal, lower case.", Overloads: []fn.Overload{fn.On("BYTES -> STRING", fn.Strict(ToHex))}},
	{Name: "from_hex", Doc: "The bytes that hexadecimal digits stand for; an odd digit is the first.", Overloads: []fn.Overload{fn.On("STRING -> BYTES", fn.Strict(FromHex))}},
	{Name: "to_base32", Doc: "Bytes in base 32 (RFC 4648).", Overloads: []fn.Overload{fn.On("BYTES -> STRING", fn.Strict(toBase32))}},
	{Name: "from_base32", Doc: "The bytes of a base 32 text (RFC 4648).", Overloads: []fn.Overload{fn.On("STRING -> BYTES", fn.Strict(fromBase32))}},
	{Name: "to_base64", Doc: "Bytes in base 64 (RFC 4648).", Overloads: []fn.Overload{fn.On("BYTES -> STRING", fn.Strict(ToBase64))}},
	{Name: "from_base64", Doc: "The bytes of a base 64 text (RFC 4648).", Overloads: []fn.Overload{fn.On("STRING -> BYTES", fn.Strict(FromBase64))}},
	{Name: "to_code_points", Doc: "The code points of a STRING, the values of the bytes of a BYTES.", Overloads: []fn.Overload{
		fn.On("STRING -> ARRAY<INT64>", fn.Strict(toCodePoints)),
		fn.On("BYTES -> ARRAY<INT64>", fn.Strict(toCodePointsBytes)),
	}},
	{Name: "code_points_to_string", Doc: "The text of code points; NULL if one is NULL.", Overloads: []fn.Overload{fn.On("ARRAY<INT64> -> STRING", fn.Strict(codePointsToString))}},
	{Name: "code_points_to_bytes", Doc: "Bytes of values from 0 to 255; NULL if one is NULL.", Overloads: []fn.Overload{fn.On("ARRAY<INT64> -> BYTES", fn.Strict(codePointsToBytes))}},
	{Name: "safe_convert_bytes_to_string", Doc: "Bytes as text; those that are no UTF-8 become U+FFFD, one each.", Overloads: []fn.Overload{fn.On("BYTES -> STRING", fn.Strict(safeConvert))}},
	{Name: "normalize", Doc: "NORMALIZE(text, mode): in Unicode's normal form NFC (if not said otherwise), NFD, NFKC or NFKD.",
		Overloads: []fn.Overload{fn.On("STRING, ?PART -> STRING", fn.Strict(normalize))}},
	{Name: "normalize_and_casefold", Doc: "NORMALIZE_AND_CASEFOLD(text, mode): as NORMALIZE, with case folded.",
		Overloads: []fn.Overload{fn.On("STRING, ?PART -> STRING", fn.Strict(normalizeFold))}},
}

// ToHex encodes BYTES in hexadecimal digits.
func ToHex(_ *fn.Context, a []value.Value) (value.Value, error) {
	return fn.OfString(hex.EncodeToString(a[0].AsBytes()))
}

// FromHex decodes hexadecimal digits.
func FromHex(_ *fn.Context, a []value.Value) (value.Value, error) {
	s := a[0].AsString()
	for i := range len(s) {
		if !strings.ContainsRune("0123456789abcdefABCDEF", rune(s[i])) {
			return fn.BadArgument(fmt.Sprintf("Failed to decode invalid hexadecimal string due to character at offset %d: %s", i, s))
		}
	}
	if len(s)%2 == 1 {
		s = "0" + s
	}
	b, _ := hex.DecodeString(s) // cannot fail: all characters are checked above
	return fn.OfBytes(b)
}

func toBase32(_ *fn.Context, a []value.Value) (value.Value, error) {
	return fn.OfString(base32.StdEncoding.EncodeToString(a[0].AsBytes()))
}

func fromBase32(_ *fn.Context, a []value.Value) (value.Value, error) {
	b, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(strings.TrimRight(a[0].AsString(), "="))
	if err != nil {
		return fn.BadArgument("Failed to decode invalid base32 string")
	}
	return fn.OfBytes(b)
}

// ToBase64 encodes BYTES in base 64.
func ToBase64(_ *fn.Context, a []value.Value) (value.Value, error) {
	return fn.OfString(base64.StdEncoding.EncodeToString(a[0].AsBytes()))
}

// FromBase64 decodes base 64. It ignores white space and does not require padding.
func FromBase64(_ *fn.Context, a []value.Value) (value.Value, error) {
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
		return fn.BadArgument("Failed to decode invalid base64 string")
	}
	return fn.OfBytes(b)
}

func toCodePoints(_ *fn.Context, a []value.Value) (value.Value, error) {
	points := []value.Value{}
	for _, r := range a[0].AsString() {
		points = append(points, value.OfInt64(int64(r)))
	}
	return value.OfArray(points), nil
}

func toCodePointsBytes(_ *fn.Context, a []value.Value) (value.Value, error) {
	b := a[0].AsBytes()
	points := make([]value.Value, len(b))
	for i, c := range b {
		points[i] = value.OfInt64(int64(c))
	}
	return value.OfArray(points), nil
}

func codePointsToString(_ *fn.Context, a []value.Value) (value.Value, error) {
	var text []byte
	for _, p := range a[0].AsList() {
		if p.IsNull() {
			return fn.Null(value.String)
		}
		if !validCodePoint(p.AsInt64()) {
			return fn.BadArgument("Invalid codepoint " + fn.Int64Text(p.AsInt64()))
		}
		text = utf8.AppendRune(text, rune(p.AsInt64()))
	}
	return fn.OfString(string(text))
}

func validCodePoint(p int64) bool {
	return p >= 0 && p <= utf8.MaxRune && utf8.ValidRune(rune(p))
}

func codePointsToBytes(_ *fn.Context, a []value.Value) (value.Value, error) {
	b := make([]byte, 0, len(a[0].AsList()))
	for _, p := range a[0].AsList() {
		if p.IsNull() {
			return fn.Null(value.Bytes)
		}
		if p.AsInt64() < 0 || p.AsInt64() > 255 {
			return fn.BadArgument("Invalid ASCII value " + fn.Int64Text(p.AsInt64()))
		}
		b = append(b, byte(p.AsInt64()))
	}
	return fn.OfBytes(b)
}

func safeConvert(_ *fn.Context, a []value.Value) (value.Value, error) {
	b := a[0].AsBytes()
	if utf8.Valid(b) {
		return fn.OfString(string(b))
	}
	var text []byte
	for len(b) > 0 {
		r, size := utf8.DecodeRune(b)
		text = utf8.AppendRune(text, r)
		b = b[size:]
	}
	return fn.OfString(string(text))
}

var normalForms = map[string]norm.Form{"NFC": norm.NFC, "NFD": norm.NFD, "NFKC": norm.NFKC, "NFKD": norm.NFKD}

func normalForm(a []value.Value) norm.Form {
	if len(a) > 1 {
		return normalForms[a[1].AsString()]
	}
	return norm.NFC
}

func normalize(_ *fn.Context, a []value.Value) (value.Value, error) {
	return fn.OfString(normalForm(a).String(a[0].AsString()))
}

func normalizeFold(_ *fn.Context, a []value.Value) (value.Value, error) {
	form := normalForm(a)
	return fn.OfString(cases.Fold().String(form.String(a[0].AsString())))
}
