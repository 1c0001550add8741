package fn

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/crowfoot-db/crowfoot/value"
)

// substrings: positions count from 1, or from the end if negative.
var substrings = []record{
	{name: "substr", doc: "SUBSTR(text, position, length): the part from a position on (from the end, if negative), at most length long.", overloads: []overload{
		on("STRING, INT64, ?INT64 -> STRING", strict(substrChars)),
		on("BYTES, INT64, ?INT64 -> BYTES", strict(substrBytes)),
	}},
	{name: "strpos", leakproof: true, doc: "STRPOS(text, part): where the part first occurs, 0 if nowhere.", overloads: []overload{
		on("STRING, STRING -> INT64", strict(strpos)),
		on("BYTES, BYTES -> INT64", strict(strpos)),
	}},
	{name: "trim", leakproof: true, doc: "TRIM(text, characters): without white space, or the characters given, at either end.", overloads: trimOverloads(true, true)},
	{name: "ltrim", leakproof: true, doc: "LTRIM(text, characters): as TRIM, at the beginning.", overloads: trimOverloads(true, false)},
	{name: "rtrim", leakproof: true, doc: "RTRIM(text, characters): as TRIM, at the end.", overloads: trimOverloads(false, true)},
	{name: "lpad", doc: "LPAD(text, length, pattern): filled up with the pattern (a space) on the left, or cut off, to a length.", overloads: []overload{
		on("STRING, INT64, ?STRING -> STRING", pad(true)),
		on("BYTES, INT64, ?BYTES -> BYTES", pad(true)),
	}},
	{name: "rpad", doc: "RPAD(text, length, pattern): filled up with the pattern (a space) on the right, or cut off, to a length.", overloads: []overload{
		on("STRING, INT64, ?STRING -> STRING", pad(false)),
		on("BYTES, INT64, ?BYTES -> BYTES", pad(false)),
	}},
}

const negativeLength = "Third argument in SUBSTR() cannot be negative"

func substrChars(_ *Context, a []value.Value) (value.Value, error) {
	s, position := a[0].AsString(), a[1].AsInt64()
	if position < 0 {
		s = s[charOffsetBack(s, -max(position, -int64(len(s))-1)):]
	} else {
		s = s[charOffset(s, position-1):]
	}
	if len(a) > 2 {
		n := a[2].AsInt64()
		if n < 0 {
			return badArgument(negativeLength)
		}
		s = s[:charOffset(s, n)]
	}
	return ofString(s)
}

func substrBytes(_ *Context, a []value.Value) (value.Value, error) {
	s, position := a[0].AsString(), a[1].AsInt64()
	if position < 0 {
		position = max(0, position+int64(len(s)))
	} else if position > 0 {
		position--
	}
	s = s[min(position, int64(len(s))):]
	if len(a) > 2 {
		n := a[2].AsInt64()
		if n < 0 {
			return badArgument(negativeLength)
		}
		s = s[:min(n, int64(len(s)))]
	}
	return bytesOf(s), nil
}

func left(_ *Context, a []value.Value) (value.Value, error) {
	s, n := a[0].AsString(), a[1].AsInt64()
	if n < 0 {
		return badArgument("Second argument in LEFT() cannot be negative")
	}
	if a[0].Kind() == value.Bytes {
		return bytesOf(s[:min(n, int64(len(s)))]), nil
	}
	return ofString(s[:charOffset(s, n)])
}

func strpos(_ *Context, a []value.Value) (value.Value, error) {
	s := a[0].AsString()
	return position(s, strings.Index(s, a[1].AsString()), a[0].Kind())
}

// position translates a byte offset to SQL's counting from 1. Offset -1 means that nothing was found and gives 0.
func position(s string, offset int, kind value.Kind) (value.Value, error) {
	if offset < 0 {
		return ofInt64(0)
	}
	if kind == value.Bytes {
		return ofInt64(int64(offset) + 1)
	}
	return ofInt64(int64(utf8.RuneCountInString(s[:offset])) + 1)
}

func trimOverloads(atStart, atEnd bool) []overload {
	trim := func(s string, drop func(rune) bool) string {
		if atStart {
			s = strings.TrimLeftFunc(s, drop)
		}
		if atEnd {
			s = strings.TrimRightFunc(s, drop)
		}
		return s
	}
	onString := func(_ *Context, a []value.Value) (value.Value, error) {
		if len(a) == 1 {
			return ofString(trim(a[0].AsString(), unicode.IsSpace))
		}
		return ofString(trim(a[0].AsString(), func(r rune) bool { return strings.ContainsRune(a[1].AsString(), r) }))
	}
	onBytes := func(_ *Context, a []value.Value) (value.Value, error) {
		s, drop := a[0].AsString(), a[1].AsString()
		for atStart && s != "" && strings.IndexByte(drop, s[0]) >= 0 {
			s = s[1:]
		}
		for atEnd && s != "" && strings.IndexByte(drop, s[len(s)-1]) >= 0 {
			s = s[:len(s)-1]
		}
		return bytesOf(s), nil
	}
	return []overload{
		on("STRING, ?STRING -> STRING", strict(onString)),
		on("BYTES, BYTES -> BYTES", strict(onBytes)),
	}
}

func pad(atStart bool) body {
	return strict(func(_ *Context, a []value.Value) (value.Value, error) {
		s, length, pattern, kind := a[0].AsString(), a[1].AsInt64(), " ", a[0].Kind()
		if len(a) > 2 {
			pattern = a[2].AsString()
		}
		switch {
		case length < 0:
			return badArgument("Second argument (output size) for LPAD/RPAD cannot be negative")
		case length > maxOutput:
			return badArgument(padTooLong)
		case pattern == "":
			return badArgument("Third argument (pad pattern) for LPAD/RPAD cannot be empty")
		}
		missing := length - textLength(s, kind)
		if missing <= 0 {
			return left(nil, []value.Value{a[0], a[1]})
		}
		filling := fill(pattern, missing, kind)
		if len(s)+len(filling) > maxOutput {
			return badArgument(padTooLong)
		}
		if atStart {
			return textOf(kind, filling+s), nil
		}
		return textOf(kind, s+filling), nil
	})
}

const padTooLong = "Output of LPAD/RPAD exceeds max allowed output size of 1MB"

// fill repeats a pattern until it has n characters or bytes.
func fill(pattern string, n int64, kind value.Kind) string {
	unit := textLength(pattern, kind)
	rest := pattern[:charOffset(pattern, n%unit)]
	if kind == value.Bytes {
		rest = pattern[:n%unit]
	}
	return strings.Repeat(pattern, int(n/unit)) + rest
}

func textLength(s string, kind value.Kind) int64 {
	if kind == value.Bytes {
		return int64(len(s))
	}
	return int64(utf8.RuneCountInString(s))
}
