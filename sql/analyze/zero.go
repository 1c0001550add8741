package analyze

import (
	"math"
	"strconv"
	"strings"

	"github.com/goccy/go-googlesql"

	"github.com/crowfoot-db/crowfoot/value"
)

// The library loses the sign of a zero that it reads from text: -0.0 becomes 0.0. If a statement contains a negative
// zero, resign reads those literals again whose value is zero. It does not read literals within an array or a struct
// literal again.

// hasNegativeZero reports whether a text contains -0.0 in any spelling, as a number or as a string that may be cast to
// a number.
func hasNegativeZero(sql string) bool {
	if !strings.Contains(sql, "-") {
		return false
	}
	s := scanner{sql: sql}
	for minus := false; s.next(); minus = s.token == "-" {
		if minus && isZero(leadingNumber(sql[s.start:])) {
			return true
		}
		if at := quoteAt(s.token); at >= 0 && s.token[at] != '`' {
			if f, err := strconv.ParseFloat(strings.TrimSpace(strings.Trim(s.token[at:], s.token[at:at+1])), 64); err == nil && f == 0 && math.Signbit(f) {
				return true
			}
		}
	}
	return false
}

// leadingNumber returns the number at the beginning of text if it has a point or an exponent; otherwise "".
func leadingNumber(text string) string {
	n := 0
	for n < len(text) && (isDigit(text[n]) || text[n] == '.' || text[n] == 'e' || text[n] == 'E') {
		n++
	}
	if !strings.ContainsAny(text[:n], ".eE") {
		return ""
	}
	return text[:n]
}

// isZero reports whether a number is zero: all digits before its exponent are 0.
func isZero(number string) bool {
	digits, _, _ := strings.Cut(strings.ToLower(number), "e")
	return strings.Contains(digits, "0") && strings.Trim(digits, "0.") == ""
}

// resign returns v, the library's value of the literal n, with the sign that a zero has in the statement's text. t is
// the literal's type.
func (w *walker) resign(n *googlesql.ResolvedLiteral, v value.Value, t *value.Type) value.Value {
	if !w.zeros || v.IsNull() || t.Kind != value.Float64 && t.Kind != value.Float32 || v.AsFloat64() != 0 || !hasNegativeZero(w.textOf(n)) {
		return v
	}
	zero := math.Copysign(0, -1)
	if t.Kind == value.Float32 {
		return value.OfFloat32(float32(zero))
	}
	return value.OfFloat64(zero)
}
