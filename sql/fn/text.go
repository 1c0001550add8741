package fn

import (
	"encoding/hex"
	"unicode/utf8"
	"unsafe"

	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// Most functions of text have two forms: the form for STRING counts characters, the form for BYTES counts bytes. The
// bodies of both work on Go strings.

// BytesOf makes BYTES from a Go string without copying it. That is safe because values are never changed.
func BytesOf(s string) value.Value {
	return value.OfBytes(unsafe.Slice(unsafe.StringData(s), len(s)))
}

// TextOf makes a value of kind k, STRING or BYTES.
func TextOf(k value.Kind, s string) value.Value {
	if k == value.Bytes {
		return BytesOf(s)
	}
	return value.OfString(s)
}

// IsASCII reports whether a text has only ASCII characters.
func IsASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// BadArgument returns the error for an argument that a function does not accept. sentence is the message.
func BadArgument(sentence string) (value.Value, error) {
	return value.Value{}, usererror.BadArgument(sentence)
}

// EscapeBytes returns bytes as ASCII text with escapes. It also escapes the character that the parameter quote holds,
// unless quote is 0.
func EscapeBytes(b []byte, quote byte) string {
	var out []byte
	for _, c := range b {
		switch {
		case c == '\\' || c == quote && quote != 0:
			out = append(out, '\\', c)
		case c == '\n':
			out = append(out, `\n`...)
		case c == '\r':
			out = append(out, `\r`...)
		case c == '\t':
			out = append(out, `\t`...)
		case c < ' ' || c > '~':
			out = append(out, `\x`+HexByte(c)...)
		default:
			out = append(out, c)
		}
	}
	return string(out)
}

// ASCIISpace holds the characters that conversions from text treat as white space.
const ASCIISpace = " \t\n\v\f\r"

// CutQuoted cuts off the text in quotes at the beginning of s, and returns that text without its quotes. A backslash
// makes the next character literal. ok is false if the closing quote is missing.
func CutQuoted(s string, quote byte) (text, rest string, ok bool) {
	var out []byte
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\' && i+1 < len(s):
			i++
			out = append(out, s[i])
		case c == quote:
			return string(out), s[i+1:], true
		default:
			out = append(out, c)
		}
	}
	return "", s, false
}

// HexByte returns a byte as two hexadecimal digits.
func HexByte(c byte) string { return hex.EncodeToString([]byte{c}) }
