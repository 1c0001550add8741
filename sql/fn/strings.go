package fn

import (
	"strings"
	"unicode/utf8"
	"unsafe"

	"golang.org/x/text/cases"
	"golang.org/x/text/language"

	"github.com/crowfoot-db/crowfoot/value"
)

var stringFunctions = []record{
	{name: "concat", doc: "The arguments one after the other; NULL if one is NULL.", overloads: []overload{
		on("STRING... -> STRING", strict(concat)),
		on("BYTES... -> BYTES", strict(concat)),
	}},
	{name: "length", leakproof: true, doc: "The number of characters of a STRING, of bytes of a BYTES.", overloads: []overload{
		on("STRING -> INT64", strict(charLength)),
		on("BYTES -> INT64", strict(byteLength)),
	}},
	{name: "char_length", leakproof: true, doc: "The number of characters.", overloads: []overload{on("STRING -> INT64", strict(charLength))}},
	{name: "byte_length", leakproof: true, doc: "The number of bytes.", overloads: []overload{
		on("STRING -> INT64", strict(byteLength)),
		on("BYTES -> INT64", strict(byteLength)),
	}},
	{name: "upper", leakproof: true, doc: "In capitals; of BYTES, ASCII letters only.", overloads: onText(toUpper, asciiUpper)},
	{name: "lower", leakproof: true, doc: "In small letters; of BYTES, ASCII letters only.", overloads: onText(toLower, asciiLower)},
	{name: "reverse", doc: "The characters or bytes in reverse order.", overloads: onText(reverseChars, reverseBytes)},
	{name: "replace", doc: "REPLACE(text, old, new): each old replaced by new; an empty old is nowhere.", overloads: []overload{
		on("STRING, STRING, STRING -> STRING", strict(replace)),
		on("BYTES, BYTES, BYTES -> BYTES", strict(replace)),
	}},
	{name: "repeat", doc: "REPEAT(text, n): the text n times.", overloads: []overload{
		on("STRING, INT64 -> STRING", strict(repeat)),
		on("BYTES, INT64 -> BYTES", strict(repeat)),
	}},
	{name: "starts_with", leakproof: true, doc: "Whether a text begins with another.", overloads: []overload{
		on("STRING, STRING -> BOOL", strict(startsWith)),
		on("BYTES, BYTES -> BOOL", strict(startsWith)),
	}},
	{name: "ends_with", leakproof: true, doc: "Whether a text ends with another.", overloads: []overload{
		on("STRING, STRING -> BOOL", strict(endsWith)),
		on("BYTES, BYTES -> BOOL", strict(endsWith)),
	}},
	{name: "split", doc: "SPLIT(text, delimiter): the parts between delimiters (',' for STRING if not given); with an empty one, the characters or bytes.",
		overloads: []overload{
			on("STRING, ?STRING -> ARRAY<STRING>", strict(split)),
			on("BYTES, BYTES -> ARRAY<BYTES>", strict(split)),
		}},
	{name: "split_substr", doc: "SPLIT_SUBSTR(text, delimiter, start, count): count parts from the start-th on (from the end, if negative), with delimiters between.",
		overloads: []overload{on("STRING, STRING, INT64, ?INT64 -> STRING", strict(splitSubstr))}},
	{name: "soundex", doc: "The Soundex code of a text: its first letter and three digits.", overloads: []overload{on("STRING -> STRING", strict(soundex))}},
}

func concat(_ *Context, a []value.Value) (value.Value, error) {
	n := 0
	for i := range a {
		n += len(a[i].AsBytes())
	}
	joined := make([]byte, 0, n)
	for i := range a {
		joined = append(joined, a[i].AsBytes()...)
	}
	return textOf(a[0].Kind(), unsafe.String(unsafe.SliceData(joined), len(joined))), nil
}

func charLength(_ *Context, a []value.Value) (value.Value, error) {
	return ofInt64(int64(utf8.RuneCountInString(a[0].AsString())))
}

func byteLength(_ *Context, a []value.Value) (value.Value, error) {
	return ofInt64(int64(len(a[0].AsBytes())))
}

// toUpper and toLower use Unicode's full case mapping: the upper case of ß is SS.

func toUpper(s string) string {
	if ascii(s) {
		return strings.ToUpper(s)
	}
	return cases.Upper(language.Und).String(s)
}

func toLower(s string) string {
	if ascii(s) {
		return strings.ToLower(s)
	}
	return cases.Lower(language.Und).String(s)
}

func asciiUpper(s string) string { return mapBytes(s, 'a', 'z') }

func asciiLower(s string) string { return mapBytes(s, 'A', 'Z') }

// mapBytes swaps the case of the ASCII letters from low to high.
func mapBytes(s string, low, high byte) string {
	b := []byte(s)
	for i, c := range b {
		if c >= low && c <= high {
			b[i] = c ^ ' '
		}
	}
	return string(b)
}

func reverseChars(s string) string {
	b := make([]byte, 0, len(s))
	for len(s) > 0 {
		_, size := utf8.DecodeLastRuneInString(s)
		b = append(b, s[len(s)-size:]...)
		s = s[:len(s)-size]
	}
	return string(b)
}

func reverseBytes(s string) string {
	b := make([]byte, len(s))
	for i := range b {
		b[i] = s[len(s)-1-i]
	}
	return string(b)
}

func replace(_ *Context, a []value.Value) (value.Value, error) {
	s, from, to := a[0].AsString(), a[1].AsString(), a[2].AsString()
	n := 0
	if from != "" {
		n = strings.Count(s, from)
	}
	if len(s)+n*(len(to)-len(from)) > maxOutput {
		return badArgument("Output of REPLACE exceeds max allowed output size of 1MB")
	}
	if n == 0 {
		return a[0], nil
	}
	return textOf(a[0].Kind(), strings.ReplaceAll(s, from, to)), nil
}

func repeat(_ *Context, a []value.Value) (value.Value, error) {
	s, n := a[0].AsString(), a[1].AsInt64()
	switch {
	case n < 0:
		return badArgument("Second argument (repeat count) for REPEAT cannot be negative")
	case s == "":
		return a[0], nil
	case n > maxOutput || int64(len(s))*n > maxOutput:
		return badArgument("Output of REPEAT exceeds max allowed output size of 1MB")
	}
	return textOf(a[0].Kind(), strings.Repeat(s, int(n))), nil
}

func startsWith(_ *Context, a []value.Value) (value.Value, error) {
	return ofBool(strings.HasPrefix(a[0].AsString(), a[1].AsString()))
}

func endsWith(_ *Context, a []value.Value) (value.Value, error) {
	return ofBool(strings.HasSuffix(a[0].AsString(), a[1].AsString()))
}

func split(_ *Context, a []value.Value) (value.Value, error) {
	s, delimiter := a[0].AsString(), ","
	if len(a) > 1 {
		delimiter = a[1].AsString()
	}
	parts := splitParts(s, delimiter, a[0].Kind())
	list := make([]value.Value, len(parts))
	for i, p := range parts {
		list[i] = textOf(a[0].Kind(), p)
	}
	return value.OfArray(list), nil
}

func splitParts(s, delimiter string, kind value.Kind) []string {
	switch {
	case s == "":
		return []string{""}
	case delimiter != "" || kind == value.String:
		return strings.Split(s, delimiter)
	}
	parts := make([]string, len(s))
	for i := range parts {
		parts[i] = s[i : i+1]
	}
	return parts
}

func splitSubstr(_ *Context, a []value.Value) (value.Value, error) {
	s, delimiter, start := a[0].AsString(), a[1].AsString(), a[2].AsInt64()
	if delimiter == "" {
		return badArgument("Delimiter of SPLIT_SUBSTR function must be non-empty")
	}
	parts := strings.Split(s, delimiter)
	total := int64(len(parts))
	count := total
	if len(a) > 3 {
		if count = a[3].AsInt64(); count < 0 {
			return badArgument("Count of SPLIT_SUBSTR function must be non-negative")
		}
	}
	switch {
	case start > 0:
		start--
	case start < 0:
		start = max(0, total+start)
	}
	start = min(start, total)
	end := min(total, start+min(count, total))
	return ofString(strings.Join(parts[start:end], delimiter))
}

// soundexCodes holds the codes of the letters a to z; 0 means that the letter has no code.
const soundexCodes = "01230120022455012623010202"

func soundex(_ *Context, a []value.Value) (value.Value, error) {
	code := make([]byte, 0, 4)
	var previous byte
	for _, c := range a[0].AsBytes() {
		letter := c | ' '
		if letter < 'a' || letter > 'z' {
			continue
		}
		digit := soundexCodes[letter-'a']
		switch {
		case len(code) == 0:
			code = append(code, c)
			previous = digit
		case digit != '0' && digit != previous:
			code = append(code, digit)
			previous = digit
		}
		if len(code) == cap(code) {
			break
		}
	}
	for len(code) > 0 && len(code) < cap(code) {
		code = append(code, '0')
	}
	return ofString(string(code))
}
