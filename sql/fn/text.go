package fn

import (
	"encoding/hex"
	"unicode/utf8"
	"unsafe"

	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// MaxOutput is the maximum length in bytes of the results of PAD, REPEAT, REPLACE and TRANSLATE (GoogleSQL's limit).
const MaxOutput = 1 << 20

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

// OnText makes the two overloads, for STRING and for BYTES, of a function that has one argument and returns the same
// type.
func OnText(onString, onBytes func(string) string) []Overload {
	return []Overload{
		On("STRING -> STRING", Strict(func(_ *Context, a []value.Value) (value.Value, error) {
			return OfString(onString(a[0].AsString()))
		})),
		On("BYTES -> BYTES", Strict(func(_ *Context, a []value.Value) (value.Value, error) {
			return BytesOf(onBytes(a[0].AsString())), nil
		})),
	}
}

// CharOffset returns the byte offset of the n-th character of s, counted from 0. If s has fewer characters, it
// returns len(s).
func CharOffset(s string, n int64) int {
	if n <= 0 {
		return 0
	}
	for i := range s {
		if n == 0 {
			return i
		}
		n--
	}
	return len(s)
}

// CharOffsetBack returns the byte offset at which the last n characters of s begin. If s has fewer characters, it
// returns 0.
func CharOffsetBack(s string, n int64) int {
	end := len(s)
	for ; n > 0 && end > 0; n-- {
		_, size := utf8.DecodeLastRuneInString(s[:end])
		end -= size
	}
	return end
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
