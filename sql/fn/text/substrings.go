package text

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/value"
)

// Substrings has the functions that search, cut and pad texts. Positions count from 1; negative positions count from
// the end.
var Substrings = []fn.Record{
	{Name: "substr", Doc: "SUBSTR(text, position, length): the part from a position on (from the end, if negative), at most length long.", Overloads: []fn.Overload{
		fn.On("STRING, INT64, ?INT64 -> STRING", fn.Strict(substrChars)),
		fn.On("BYTES, INT64, ?INT64 -> BYTES", fn.Strict(substrBytes)),
	}},
	{Name: "strpos", Leakproof: true, Doc: "STRPOS(text, part): where the part first occurs, 0 if nowhere.", Overloads: []fn.Overload{
		fn.On("STRING, STRING -> INT64", fn.Strict(strpos)),
		fn.On("BYTES, BYTES -> INT64", fn.Strict(strpos)),
	}},
	{Name: "trim", Leakproof: true, Doc: "TRIM(text, characters): without white space, or the characters given, at either end.", Overloads: trimOverloads(true, true)},
	{Name: "ltrim", Leakproof: true, Doc: "LTRIM(text, characters): as TRIM, at the beginning.", Overloads: trimOverloads(true, false)},
	{Name: "rtrim", Leakproof: true, Doc: "RTRIM(text, characters): as TRIM, at the end.", Overloads: trimOverloads(false, true)},
	{Name: "lpad", Doc: "LPAD(text, length, pattern): filled up with the pattern (a space) on the left, or cut off, to a length.", Overloads: []fn.Overload{
		fn.On("STRING, INT64, ?STRING -> STRING", pad(true)),
		fn.On("BYTES, INT64, ?BYTES -> BYTES", pad(true)),
	}},
	{Name: "rpad", Doc: "RPAD(text, length, pattern): filled up with the pattern (a space) on the right, or cut off, to a length.", Overloads: []fn.Overload{
		fn.On("STRING, INT64, ?STRING -> STRING", pad(false)),
		fn.On("BYTES, INT64, ?BYTES -> BYTES", pad(false)),
	}},
}

const negativeLength = "Third argument in SUBSTR() cannot be negative"

func substrChars(_ *fn.Context, a []value.Value) (value.Value, error) {
	s, position := a[0].AsString(), a[1].AsInt64()
	if position < 0 {
		s = s[charOffsetBack(s, -max(position, -int64(len(s))-1)):]
	} else {
		s = s[charOffset(s, position-1):]
	}
	if len(a) > 2 {
		n := a[2].AsInt64()
		if n < 0 {
			return fn.BadArgument(negativeLength)
		}
		s = s[:charOffset(s, n)]
	}
	return fn.OfString(s)
}

func substrBytes(_ *fn.Context, a []value.Value) (value.Value, error) {
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
			return fn.BadArgument(negativeLength)
		}
		s = s[:min(n, int64(len(s)))]
	}
	return fn.BytesOf(s), nil
}

func left(_ *fn.Context, a []value.Value) (value.Value, error) {
	s, n := a[0].AsString(), a[1].AsInt64()
	if n < 0 {
		return fn.BadArgument("Second argument in LEFT() cannot be negative")
	}
	if a[0].Kind() == value.Bytes {
		return fn.BytesOf(s[:min(n, int64(len(s)))]), nil
	}
	return fn.OfString(s[:charOffset(s, n)])
}

func strpos(_ *fn.Context, a []value.Value) (value.Value, error) {
	s := a[0].AsString()
	return position(s, strings.Index(s, a[1].AsString()), a[0].Kind())
}

// position returns the SQL position, which counts from 1, of a byte offset in s. The offset -1 means that nothing was
// found; its position is 0.
func position(s string, offset int, kind value.Kind) (value.Value, error) {
	if offset < 0 {
		return fn.OfInt64(0)
	}
	if kind == value.Bytes {
		return fn.OfInt64(int64(offset) + 1)
	}
	return fn.OfInt64(int64(utf8.RuneCountInString(s[:offset])) + 1)
}

func trimOverloads(atStart, atEnd bool) []fn.Overload {
	trim := func(s string, drop func(rune) bool) string {
		if atStart {
			s = strings.TrimLeftFunc(s, drop)
		}
		if atEnd {
			s = strings.TrimRightFunc(s, drop)
		}
		return s
	}
	onString := func(_ *fn.Context, a []value.Value) (value.Value, error) {
		if len(a) == 1 {
			return fn.OfString(trim(a[0].AsString(), unicode.IsSpace))
		}
		return fn.OfString(trim(a[0].AsString(), func(r rune) bool { return strings.ContainsRune(a[1].AsString(), r) }))
	}
	onBytes := func(_ *fn.Context, a []value.Value) (value.Value, error) {
		s, drop := a[0].AsString(), a[1].AsString()
		for atStart && s != "" && strings.IndexByte(drop, s[0]) >= 0 {
			s = s[1:]
		}
		for atEnd && s != "" && strings.IndexByte(drop, s[len(s)-1]) >= 0 {
			s = s[:len(s)-1]
		}
		return fn.BytesOf(s), nil
	}
	return []fn.Overload{
		fn.On("STRING, ?STRING -> STRING", fn.Strict(onString)),
		fn.On("BYTES, BYTES -> BYTES", fn.Strict(onBytes)),
	}
}

func pad(atStart bool) fn.Body {
	return fn.Strict(func(_ *fn.Context, a []value.Value) (value.Value, error) {
		s, length, pattern, kind := a[0].AsString(), a[1].AsInt64(), " ", a[0].Kind()
		if len(a) > 2 {
			pattern = a[2].AsString()
		}
		switch {
		case length < 0:
			return fn.BadArgument("Second argument (output size) for LPAD/RPAD cannot be negative")
		case length > maxOutput:
			return fn.BadArgument(padTooLong)
		case pattern == "":
			return fn.BadArgument("Third argument (pad pattern) for LPAD/RPAD cannot be empty")
		}
		missing := length - textLength(s, kind)
		if missing <= 0 {
			return left(nil, []value.Value{a[0], a[1]})
		}
		filling := fill(pattern, missing, kind)
		if len(s)+len(filling) > maxOutput {
			return fn.BadArgument(padTooLong)
		}
		if atStart {
			return fn.TextOf(kind, filling+s), nil
		}
		return fn.TextOf(kind, s+filling), nil
	})
}

const padTooLong = "Output of LPAD/RPAD exceeds max allowed output size of 1MB"

// fill repeats a pattern until it has n characters, or n bytes if kind is BYTES.
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

// charOffset returns the byte offset of the n-th character of s, counted from 0. If s has fewer characters, it
// returns len(s).
func charOffset(s string, n int64) int {
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

// charOffsetBack returns the byte offset at which the last n characters of s begin. If s has fewer characters, it
// returns 0.
func charOffsetBack(s string, n int64) int {
	end := len(s)
	for ; n > 0 && end > 0; n-- {
		_, size := utf8.DecodeLastRuneInString(s[:end])
		end -= size
	}
	return end
}
