package arrowtype

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf16"
	"unicode/utf8"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
)

var errJSON = errors.New("the text is not JSON")

// AppendJSON appends a value given as JSON. A JSON string or number holds the text of the value, true and false are
// booleans, null is NULL, and a JSON array is an ARRAY. For a JSON column, the given JSON is the value itself, even if
// it is null. In an ARRAY<JSON>, an element is the JSON itself, or a string that holds JSON.
func (a *Appender) AppendJSON(value []byte) error {
	value = bytes.TrimSpace(value)
	switch {
	case len(value) == 0:
		return errJSON
	case a.code == spannerpb.TypeCode_JSON:
		return a.AppendText(value)
	case string(value) == "null":
		a.AppendNull()
		return nil
	case a.code == spannerpb.TypeCode_ARRAY:
		return a.appendJSONArray(value)
	case value[0] == '"':
		text, err := UnquoteJSON(nil, value)
		if err != nil {
			return err
		}
		return a.AppendText(text)
	case value[0] == '[' || value[0] == '{':
		return notA("a "+a.code.String(), value)
	case a.code == spannerpb.TypeCode_STRING || a.code == spannerpb.TypeCode_BYTES:
		return notA("a string of JSON", value)
	}
	return a.AppendText(value)
}

func (a *Appender) appendJSONArray(value []byte) error {
	if value[0] != '[' {
		return notA("an array of JSON", value)
	}
	a.list.Append(true)
	rest := bytes.TrimSpace(value[1:])
	for first := true; ; first = false {
		if len(rest) > 0 && rest[0] == ']' && (first || len(rest) == 1) {
			if len(rest) > 1 {
				return errJSON
			}
			return nil
		}
		elem, after, err := CutJSON(rest)
		if err == nil {
			err = a.inner[0].appendJSONElement(elem)
		}
		if err != nil {
			return err
		}
		after = bytes.TrimSpace(after)
		switch {
		case len(after) == 1 && after[0] == ']':
			rest = after
		case len(after) > 1 && after[0] == ',':
			if rest = bytes.TrimSpace(after[1:]); len(rest) > 0 && rest[0] == ']' {
				return errJSON
			}
		default:
			return errJSON
		}
	}
}

// appendJSONElement appends an element of an array. In an ARRAY<JSON>, the element null is NULL, and a string holds the
// text of a JSON value. So the caller must write an element that is the JSON value null as the string "null". All other
// elements have the form that AppendJSON takes.
func (a *Appender) appendJSONElement(value []byte) error {
	if a.code != spannerpb.TypeCode_JSON || value[0] != '"' && string(value) != "null" {
		return a.AppendJSON(value)
	}
	if value[0] != '"' {
		a.AppendNull()
		return nil
	}
	text, err := UnquoteJSON(nil, value)
	if err != nil {
		return err
	}
	return a.AppendText(text)
}

// CutJSON splits a text after its first JSON value. It checks that the value is valid, unless it is a string: of a
// string it only finds the end.
func CutJSON(text []byte) (value, rest []byte, err error) {
	text = bytes.TrimLeft(text, " \t\r\n")
	if len(text) == 0 {
		return nil, nil, errJSON
	}
	switch text[0] {
	case '"':
		end := endOfString(text)
		if end < 0 {
			return nil, nil, errors.New("a string of JSON has no end")
		}
		return text[:end], text[end:], nil
	case '{', '[':
		return cutNested(text)
	}
	end := bytes.IndexAny(text, ",]}: \t\r\n")
	if end < 0 {
		end = len(text)
	}
	if value = text[:end]; !json.Valid(value) {
		return nil, nil, notA("JSON", value)
	}
	return value, text[end:], nil
}

// endOfString returns the position after the closing quote of the string at the start of a text, or -1 if there is no
// closing quote.
func endOfString(text []byte) int {
	for at := 1; at < len(text); {
		n := bytes.IndexByte(text[at:], '"')
		if n < 0 {
			return -1
		}
		at += n
		slashes := 0
		for text[at-1-slashes] == '\\' {
			slashes++
		}
		at++
		if slashes%2 == 0 {
			return at
		}
	}
	return -1
}

// cutNested splits a text after the object or array with which the text starts.
func cutNested(text []byte) (value, rest []byte, err error) {
	depth := 0
	for at := 0; at < len(text); at++ {
		switch text[at] {
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				if value = text[:at+1]; !json.Valid(value) {
					return nil, nil, notA("JSON", value)
				}
				return value, text[at+1:], nil
			}
		case '"':
			end := endOfString(text[at:])
			if end < 0 {
				return nil, nil, errors.New("a string of JSON has no end")
			}
			at += end - 1
		}
	}
	return nil, nil, errors.New("an object or array of JSON has no end")
}

// UnquoteJSON decodes a JSON string, which is given with its quotes, and appends the decoded text to the slice to.
func UnquoteJSON(to, quoted []byte) ([]byte, error) {
	if len(quoted) < 2 || quoted[0] != '"' || quoted[len(quoted)-1] != '"' {
		return nil, notA("a string of JSON", quoted)
	}
	text := quoted[1 : len(quoted)-1]
	for len(text) > 0 {
		n := bytes.IndexByte(text, '\\')
		if n < 0 {
			n = len(text)
		}
		for _, c := range text[:n] {
			if c < ' ' {
				return nil, fmt.Errorf("a string of JSON has a control character, \\u%04x", c)
			}
		}
		to, text = append(to, text[:n]...), text[n:]
		if len(text) == 0 {
			break
		}
		var err error
		if to, text, err = unescape(to, text); err != nil {
			return nil, err
		}
	}
	return to, nil
}

const escapes = "\"\\/bfnrt"
const escaped = "\"\\/\b\f\n\r\t"

// unescape decodes the escape sequence at the start of a text. It returns the slice to with the decoded character
// appended, and the rest of the text.
func unescape(to, text []byte) (_, rest []byte, err error) {
	if len(text) < 2 {
		return nil, nil, errJSON
	}
	if i := bytes.IndexByte([]byte(escapes), text[1]); i >= 0 {
		return append(to, escaped[i]), text[2:], nil
	}
	r, ok := hexRune(text)
	if !ok {
		return nil, nil, notA("an escape sequence of JSON", text[:2])
	}
	rest = text[6:]
	if utf16.IsSurrogate(r) {
		low, _ := hexRune(rest)
		if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
			return nil, nil, errors.New("a string of JSON has half a surrogate pair")
		}
		rest = rest[6:]
	}
	return utf8.AppendRune(to, r), rest, nil
}

// hexRune reads the escape sequence at the start of a text if it has four hexadecimal digits, such as \u0041.
func hexRune(text []byte) (r rune, ok bool) {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	for _, c := range text[2:6] {
		switch {
		case c >= '0' && c <= '9':
			r = r<<4 + rune(c-'0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			r = r<<4 + rune(c|0x20-'a') + 10
		default:
			return 0, false
		}
	}
	return r, true
}

const hexDigits = "0123456789abcdef"

// AppendJSONString appends a text as a JSON string.
func AppendJSONString(to []byte, text []byte) []byte {
	to = append(to, '"')
	from := 0
	for i, c := range text {
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		to = append(to, text[from:i]...)
		from = i + 1
		if k := bytes.IndexByte([]byte(escaped), c); k >= 0 {
			to = append(to, '\\', escapes[k])
		} else {
			to = append(to, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	return append(append(to, text[from:]...), '"')
}
