package text

import (
	"strings"
	"unicode/utf8"
	"unsafe"

	"golang.org/x/text/cases"
	"golang.org/x/text/language"

	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/value"
)

// maxOutput is GoogleSQL's limit, in bytes, for the results of LPAD, RPAD, REPEAT, REPLACE, REGEXP_REPLACE and FORMAT.
const maxOutput = 1 << 20

// Basic has the functions that read or change whole texts.
var Basic = []fn.Record{
	{Name: "concat", Doc: "The arguments one after the other; NULL if one is NULL.", Overloads: []fn.Overload{
		fn.On("STRING... -> STRING", fn.Strict(concat)),
		fn.On("BYTES... -> BYTES", fn.Strict(concat)),
	}},
	{Name: "length", Leakproof: true, Doc: "The number of characters of a STRING, of bytes of a BYTES.", Overloads: []fn.Overload{
		fn.On("STRING -> INT64", fn.Strict(charLength)),
		fn.On("BYTES -> INT64", fn.Strict(byteLength)),
	}},
	{Name: "char_length", Leakproof: true, Doc: "The number of characters.", Overloads: []fn.Overload{fn.On("STRING -> INT64", fn.Strict(charLength))}},
	{Name: "byte_length", Leakproof: true, Doc: "The number of bytes.", Overloads: []fn.Overload{
		fn.On("STRING -> INT64", fn.Strict(byteLength)),
		fn.On("BYTES -> INT64", fn.Strict(byteLength)),
	}},
	{Name: "upper", Leakproof: true, Doc: "In capitals; of BYTES, ASCII letters only.", Overloads: onText(toUpper, asciiUpper)},
	{Name: "lower", Leakproof: true, Doc: "In small letters; of BYTES, ASCII letters only.", Overloads: onText(toLower, asciiLower)},
	{Name: "reverse", Doc: "The characters or bytes in reverse order.", Overloads: onText(reverseChars, reverseBytes)},
	{Name: "replace", Doc: "REPLACE(text, old, new): each old replaced by new; an empty old is nowhere.", Overloads: []fn.Overload{
		fn.On("STRING, STRING, STRING -> STRING", fn.Strict(replace)),
		fn.On("BYTES, BYTES, BYTES -> BYTES", fn.Strict(replace)),
	}},
	{Name: "repeat", Doc: "REPEAT(text, n): the text n times.", Overloads: []fn.Overload{
		fn.On("STRING, INT64 -> STRING", fn.Strict(repeat)),
		fn.On("BYTES, INT64 -> BYTES", fn.Strict(repeat)),
	}},
	{Name: "starts_with", Leakproof: true, Doc: "Whether a text begins with another.", Overloads: []fn.Overload{
		fn.On("STRING, STRING -> BOOL", fn.Strict(startsWith)),
		fn.On("BYTES, BYTES -> BOOL", fn.Strict(startsWith)),
	}},
	{Name: "ends_with", Leakproof: true, Doc: "Whether a text ends with another.", Overloads: []fn.Overload{
		fn.On("STRING, STRING -> BOOL", fn.Strict(endsWith)),
		fn.On("BYTES, BYTES -> BOOL", fn.Strict(endsWith)),
	}},
	{Name: "split", Doc: "SPLIT(text, delimiter): the parts between delimiters (',' for STRING if not given); with an empty one, the characters or bytes.",
		Overloads: []fn.Overload{
			fn.On("STRING, ?STRING -> ARRAY<STRING>", fn.Strict(split)),
			fn.On("BYTES, BYTES -> ARRAY<BYTES>", fn.Strict(split)),
		}},
	{Name: "split_substr", Doc: "SPLIT_SUBSTR(text, delimiter, start, count): count parts from the start-th on (from the end, if negative), with delimiters between.",
		Overloads: []fn.Overload{fn.On("STRING, STRING, INT64, ?INT64 -> STRING", fn.Strict(splitSubstr))}},
	{Name: "soundex", Doc: "The Soundex code of a text: its first letter and three digits.", Overloads: []fn.Overload{fn.On("STRING -> STRING", fn.Strict(soundex))}},
}

func concat(_ *fn.Context, a []value.Value) (value.Value, error) {
	n := 0
	for i := range a {
		n += len(a[i].AsBytes())
	}
	joined := make([]byte, 0, n)
	for i := range a {
		joined = append(joined, a[i].AsBytes()...)
	}
	return fn.TextOf(a[0].Kind(), unsafe.String(unsafe.SliceData(joined), len(joined))), nil
}

func charLength(_ *fn.Context, a []value.Value) (value.Value, error) {
	return fn.OfInt64(int64(utf8.RuneCountInString(a[0].AsString())))
}

func byteLength(_ *fn.Context, a []value.Value) (value.Value, error) {
	return fn.OfInt64(int64(len(a[0].AsBytes())))
}

// toUpper and toLower use Unicode's full case mapping, in which the upper case of ß is SS.

func toUpper(s string) string {
	if fn.IsASCII(s) {
		return strings.ToUpper(s)
	}
	return cases.Upper(language.Und).String(s)
}

func toLower(s string) string {
	if fn.IsASCII(s) {
		return strings.ToLower(s)
	}
	return cases.Lower(language.Und).String(s)
}

func asciiUpper(s string) string { return mapBytes(s, 'a', 'z') }

func asciiLower(s string) string { return mapBytes(s, 'A', 'Z') }

// mapBytes changes the case of the ASCII letters in the range from low to high. It leaves all other bytes as they are.
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

func replace(_ *fn.Context, a []value.Value) (value.Value, error) {
	s, from, to := a[0].AsString(), a[1].AsString(), a[2].AsString()
	n := 0
	if from != "" {
		n = strings.Count(s, from)
	}
	if len(s)+n*(len(to)-len(from)) > maxOutput {
		return fn.BadArgument("Output of REPLACE exceeds max allowed output size of 1MB")
	}
	if n == 0 {
		return a[0], nil
	}
	return fn.TextOf(a[0].Kind(), strings.ReplaceAll(s, from, to)), nil
}

func repeat(_ *fn.Context, a []value.Value) (value.Value, error) {
	s, n := a[0].AsString(), a[1].AsInt64()
	switch {
	case n < 0:
		return fn.BadArgument("Second argument (repeat count) for REPEAT cannot be negative")
	case s == "":
		return a[0], nil
	case n > maxOutput || int64(len(s))*n > maxOutput:
		return fn.BadArgument("Output of REPEAT exceeds max allowed output size of 1MB")
	}
	return fn.TextOf(a[0].Kind(), strings.Repeat(s, int(n))), nil
}

func startsWith(_ *fn.Context, a []value.Value) (value.Value, error) {
	return fn.OfBool(strings.HasPrefix(a[0].AsString(), a[1].AsString()))
}

func endsWith(_ *fn.Context, a []value.Value) (value.Value, error) {
	return fn.OfBool(strings.HasSuffix(a[0].AsString(), a[1].AsString()))
}

func split(_ *fn.Context, a []value.Value) (value.Value, error) {
	s, delimiter := a[0].AsString(), ","
	if len(a) > 1 {
		delimiter = a[1].AsString()
	}
	parts := splitParts(s, delimiter, a[0].Kind())
	list := make([]value.Value, len(parts))
	for i, p := range parts {
		list[i] = fn.TextOf(a[0].Kind(), p)
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

func splitSubstr(_ *fn.Context, a []value.Value) (value.Value, error) {
	s, delimiter, start := a[0].AsString(), a[1].AsString(), a[2].AsInt64()
	if delimiter == "" {
		return fn.BadArgument("Delimiter of SPLIT_SUBSTR function must be non-empty")
	}
	parts := strings.Split(s, delimiter)
	total := int64(len(parts))
	count := total
	if len(a) > 3 {
		if count = a[3].AsInt64(); count < 0 {
			return fn.BadArgument("Count of SPLIT_SUBSTR function must be non-negative")
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
	return fn.OfString(strings.Join(parts[start:end], delimiter))
}

// soundexCodes holds the Soundex codes of the letters a to z; 0 means that the letter has no code.
const soundexCodes = "01230120022455012623010202"

func soundex(_ *fn.Context, a []value.Value) (value.Value, error) {
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
	return fn.OfString(string(code))
}

// onText makes two overloads of a function with one argument: one takes and returns STRING, the other takes and returns
// BYTES.
func onText(onString, onBytes func(string) string) []fn.Overload {
	return []fn.Overload{
		fn.On("STRING -> STRING", fn.Strict(func(_ *fn.Context, a []value.Value) (value.Value, error) {
			return fn.OfString(onString(a[0].AsString()))
		})),
		fn.On("BYTES -> BYTES", fn.Strict(func(_ *fn.Context, a []value.Value) (value.Value, error) {
			return fn.BytesOf(onBytes(a[0].AsString())), nil
		})),
	}
}
