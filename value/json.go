package value

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// MaxJSONDepth is the largest nesting depth of arrays and objects in a JSON value
// (https://cloud.google.com/spanner/docs/working-with-json: at most 80 levels).
const MaxJSONDepth = 80

// maxJSONNumber is GoogleSQL's limit on the characters of a number with a point or an exponent. The limit applies only
// to ParseJSON, which may not round numbers.
const maxJSONNumber = 1500

// ParseJSON checks and normalises a JSON text, so that equal values have equal texts. The result has no white space.
// Members are sorted by name; of members with the same name, only the first is kept. Only characters that must be
// escaped are escaped. ParseJSON converts each number to INT64, UINT64 or FLOAT64 and prints it again. If the printed
// number is not equal to the number in the text, ParseJSON returns an error.
func ParseJSON(text string) (normalised string, err error) { return parseJSON(text, false) }

// ParseJSONRounding normalises a JSON text as ParseJSON does, but rounds numbers with too many digits to FLOAT64
// instead of returning an error.
func ParseJSONRounding(text string) (normalised string, err error) { return parseJSON(text, true) }

func parseJSON(text string, round bool) (string, error) {
	if !utf8.ValidString(text) {
		return "", fmt.Errorf("invalid JSON value: %w", ErrUTF8)
	}
	p := jsonParser{text: text, round: round, dst: make([]byte, 0, len(text))}
	err := p.value(0)
	if err == nil && p.skipSpace() {
		err = p.unexpected("end of text")
	}
	if err != nil {
		return "", fmt.Errorf("invalid JSON value: %w", err)
	}
	return string(p.dst), nil
}

// jsonParser reads text from pos on and appends its normalised form to dst.
type jsonParser struct {
	text    string
	pos     int
	round   bool
	dst     []byte
	members []jsonMember // the members of all objects that are still being read, those of the innermost object last
	scratch []byte
}

// jsonMember gives the positions of a member's name and value in dst.
type jsonMember struct{ start, nameEnd, end int }

func (p *jsonParser) name(m jsonMember) []byte   { return p.dst[m.start:m.nameEnd] }
func (p *jsonParser) member(m jsonMember) []byte { return p.dst[m.start:m.end] }

// skipSpace skips white space and reports whether something follows.
func (p *jsonParser) skipSpace() bool {
	for p.pos < len(p.text) && strings.IndexByte(" \t\r\n", p.text[p.pos]) >= 0 {
		p.pos++
	}
	return p.pos < len(p.text)
}

func (p *jsonParser) unexpected(wanted string) error {
	if p.pos >= len(p.text) {
		return fmt.Errorf("expected %s, found end of text", wanted)
	}
	r, _ := utf8.DecodeRuneInString(p.text[p.pos:])
	return fmt.Errorf("expected %s at offset %d, found %q", wanted, p.pos, r)
}

// accept skips white space. If c is the next byte, accept reads it and returns true.
func (p *jsonParser) accept(c byte) bool {
	if p.skipSpace() && p.text[p.pos] == c {
		p.pos++
		return true
	}
	return false
}

// value reads a value. depth is the number of arrays and objects around it.
func (p *jsonParser) value(depth int) error {
	if !p.skipSpace() {
		return p.unexpected("a value")
	}
	switch c := p.text[p.pos]; {
	case c == '{' || c == '[':
		if depth >= MaxJSONDepth {
			return fmt.Errorf("it nests deeper than %d levels", MaxJSONDepth)
		}
		p.pos++
		p.dst = append(p.dst, c)
		if c == '[' {
			return p.array(depth + 1)
		}
		return p.object(depth + 1)
	case c == '"':
		return p.string()
	case c == '-' || c >= '0' && c <= '9':
		return p.number()
	}
	for _, literal := range []string{"null", "true", "false"} {
		if strings.HasPrefix(p.text[p.pos:], literal) {
			p.pos += len(literal)
			p.dst = append(p.dst, literal...)
			return nil
		}
	}
	return p.unexpected("a value")
}

// array reads an array whose opening bracket was already read.
func (p *jsonParser) array(depth int) error {
	for first := true; !p.accept(']'); first = false {
		if !first {
			if !p.accept(',') {
				return p.unexpected("',' or ']'")
			}
			p.dst = append(p.dst, ',')
		}
		if err := p.value(depth); err != nil {
			return err
		}
	}
	p.dst = append(p.dst, ']')
	return nil
}

// object reads an object whose opening brace was already read.
func (p *jsonParser) object(depth int) error {
	base := len(p.members)
	for first := true; !p.accept('}'); first = false {
		if !first {
			if !p.accept(',') {
				return p.unexpected("',' or '}'")
			}
			p.dst = append(p.dst, ',')
		}
		if err := p.readMember(depth); err != nil {
			return err
		}
	}
	p.order(base)
	p.members = p.members[:base]
	p.dst = append(p.dst, '}')
	return nil
}

func (p *jsonParser) readMember(depth int) error {
	if !p.skipSpace() || p.text[p.pos] != '"' {
		return p.unexpected("the name of a member")
	}
	m := jsonMember{start: len(p.dst)}
	if err := p.string(); err != nil {
		return err
	}
	m.nameEnd = len(p.dst)
	if !p.accept(':') {
		return p.unexpected("':'")
	}
	p.dst = append(p.dst, ':')
	if err := p.value(depth); err != nil {
		return err
	}
	m.end = len(p.dst)
	p.members = append(p.members, m)
	return nil
}

// order sorts the members from index base on by name. Of members with the same name, it keeps only the first.
func (p *jsonParser) order(base int) {
	members := p.members[base:]
	if p.isOrdered(members) {
		return
	}
	start := members[0].start
	slices.SortFunc(members, func(a, b jsonMember) int {
		return cmp.Or(bytes.Compare(p.name(a), p.name(b)), cmp.Compare(a.start, b.start))
	})
	p.scratch = p.scratch[:0]
	for i, m := range members {
		if i > 0 && bytes.Equal(p.name(members[i-1]), p.name(m)) {
			continue
		}
		if len(p.scratch) > 0 {
			p.scratch = append(p.scratch, ',')
		}
		p.scratch = append(p.scratch, p.member(m)...)
	}
	p.dst = append(p.dst[:start], p.scratch...)
}

func (p *jsonParser) isOrdered(members []jsonMember) bool {
	for i := 1; i < len(members); i++ {
		if bytes.Compare(p.name(members[i-1]), p.name(members[i])) >= 0 {
			return false
		}
	}
	return true
}

// string reads a string, starting at its opening quote.
func (p *jsonParser) string() error {
	p.pos++
	p.dst = append(p.dst, '"')
	for p.pos < len(p.text) {
		plain := p.pos
		for plain < len(p.text) && p.text[plain] != '"' && p.text[plain] != '\\' && p.text[plain] >= ' ' {
			plain++
		}
		p.dst = append(p.dst, p.text[p.pos:plain]...)
		p.pos = plain
		switch {
		case plain == len(p.text):
			return p.unexpected("'\"'")
		case p.text[plain] == '"':
			p.pos++
			p.dst = append(p.dst, '"')
			return nil
		case p.text[plain] == '\\':
			r, err := p.escape()
			if err != nil {
				return err
			}
			p.dst = appendJSONRune(p.dst, r)
		default:
			return fmt.Errorf("control character %q at offset %d must be escaped", p.text[plain], plain)
		}
	}
	return p.unexpected("'\"'")
}

var errJSONEscape = errors.New("invalid escape sequence in a string")

// escape reads an escape sequence, starting at its backslash.
func (p *jsonParser) escape() (rune, error) {
	if p.pos+1 >= len(p.text) {
		return 0, errJSONEscape
	}
	c := p.text[p.pos+1]
	if c != 'u' {
		i := strings.IndexByte(`"\/bfnrt`, c)
		if i < 0 {
			return 0, errJSONEscape
		}
		p.pos += 2
		return rune("\"\\/\b\f\n\r\t"[i]), nil
	}
	r, ok := p.hexEscape()
	if ok && r >= 0xD800 && r < 0xDC00 { // the first half of a surrogate pair
		low, lowOK := p.hexEscape()
		if !lowOK || low < 0xDC00 || low > 0xDFFF {
			return 0, errJSONEscape
		}
		return (r-0xD800)<<10 | (low - 0xDC00) + 0x10000, nil
	}
	if !ok || r >= 0xDC00 && r <= 0xDFFF {
		return 0, errJSONEscape
	}
	return r, nil
}

// hexEscape reads \uXXXX.
func (p *jsonParser) hexEscape() (r rune, ok bool) {
	if len(p.text)-p.pos < 6 || p.text[p.pos] != '\\' || p.text[p.pos+1] != 'u' {
		return 0, false
	}
	for _, c := range []byte(p.text[p.pos+2 : p.pos+6]) {
		digit := strings.IndexByte("0123456789abcdef", c|0x20) // c|0x20 is c in lower case; it equals c for a digit
		if digit < 0 || c < '0' {
			return 0, false
		}
		r = r<<4 | rune(digit)
	}
	p.pos += 6
	return r, true
}

// AppendJSONString appends s as a JSON string in normalised form.
func AppendJSONString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	plain := 0
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' {
			dst = appendJSONRune(append(dst, s[plain:i]...), rune(c))
			plain = i + 1
		}
	}
	return append(append(dst, s[plain:]...), '"')
}

func appendJSONRune(dst []byte, r rune) []byte {
	if i := strings.IndexRune("\"\\\b\f\n\r\t", r); i >= 0 {
		return append(dst, '\\', `"\bfnrt`[i])
	}
	if r < ' ' {
		return append(dst, '\\', 'u', '0', '0', '0'+byte(r>>4), "0123456789abcdef"[r&15])
	}
	return utf8.AppendRune(dst, r)
}

// number reads a number, starting at its sign or first digit.
func (p *jsonParser) number() error {
	text, whole := jsonNumber(p.text[p.pos:])
	if text == "" {
		return p.unexpected("a number")
	}
	p.pos += len(text)
	if whole {
		if text == "-0" {
			text = "0"
		}
		_, errUnsigned := strconv.ParseUint(text, 10, 64)
		_, errSigned := strconv.ParseInt(text, 10, 64)
		if errUnsigned == nil || errSigned == nil {
			p.dst = append(p.dst, text...)
			return nil
		}
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return fmt.Errorf("number %s is out of range", cut(text))
	}
	start := len(p.dst)
	p.dst = AppendJSONFloat(p.dst, f)
	if p.round && text == strconv.FormatFloat(f, 'g', 17, 64) {
		// The text gives the FLOAT64 with 17 significant digits. AppendJSONFloat would often give fewer digits. The
		// text is stored unchanged, because clients compare the text that they read with the text that they have
		// written.
		p.dst = append(p.dst[:start], text...)
		return nil
	}
	if !p.round && !sameNumber(text, string(p.dst[start:])) {
		return fmt.Errorf("number %s cannot round-trip through string representation", cut(text))
	}
	return nil
}

// jsonNumber returns the number at the start of s, or "". whole says that it has neither point nor exponent.
func jsonNumber(s string) (number string, whole bool) {
	digits := func(i int) int {
		for i < len(s) && s[i] >= '0' && s[i] <= '9' {
			i++
		}
		return i
	}
	start := 0
	if strings.HasPrefix(s, "-") {
		start = 1
	}
	end := digits(start)
	if end > start && s[start] == '0' { // no digit may follow a leading 0
		end = start + 1
	}
	if end == start {
		return "", false
	}
	whole = true
	if end < len(s) && s[end] == '.' {
		i := digits(end + 1)
		if i == end+1 {
			return "", false
		}
		end, whole = i, false
	}
	if end < len(s) && (s[end] == 'e' || s[end] == 'E') {
		i := end + 1
		if i < len(s) && (s[i] == '+' || s[i] == '-') {
			i++
		}
		if digits(i) == i {
			return "", false
		}
		end, whole = digits(i), false
	}
	return s[:end], whole
}

// AppendJSONFloat appends a finite FLOAT64 in the form of normalised JSON: with the fewest digits that identify the
// number, and always with a point or an exponent. A number other than 0 has an exponent if its absolute value is less
// than 10^-4 or at least 10^15.
func AppendJSONFloat(dst []byte, f float64) []byte {
	if a := math.Abs(f); a != 0 && (a < 1e-4 || a >= 1e15) {
		return strconv.AppendFloat(dst, f, 'e', -1, 64)
	}
	start := len(dst)
	dst = strconv.AppendFloat(dst, f, 'f', -1, 64)
	if !strings.Contains(string(dst[start:]), ".") {
		dst = append(dst, ".0"...)
	}
	return dst
}

// sameNumber reports whether two decimal numbers, in the syntax of JSON, are equal.
func sameNumber(a, b string) bool {
	if a == b {
		return true
	}
	if len(a) > maxJSONNumber {
		return false
	}
	aDigits, aExponent := significant(a)
	bDigits, bExponent := significant(b)
	return a[0] == '-' == (b[0] == '-') && aDigits == bDigits && (aDigits == "" || aExponent == bExponent)
}

// significant returns a number's digits without zeros at either end, and an exponent. The absolute value of the number
// is 0.digits times 10^exponent.
func significant(number string) (digits string, exponent int) {
	number = strings.TrimPrefix(number, "-")
	if i := strings.IndexAny(number, "eE"); i >= 0 {
		exponent, _ = parseExponent(number[i+1:])
		number = number[:i]
	}
	whole, fraction, _ := strings.Cut(number, ".")
	digits = whole + fraction
	exponent += len(whole)
	stripped := strings.TrimLeft(digits, "0")
	exponent -= len(digits) - len(stripped)
	return strings.TrimRight(stripped, "0"), exponent
}
