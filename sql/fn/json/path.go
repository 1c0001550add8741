package json

import (
	"strconv"
	"strings"

	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// jsonStep is one step of a path: to a member of an object (name), or to an element of an array (index).
type jsonStep struct {
	name    string
	index   int64
	isIndex bool
}

// parseJSONPath parses a path like $.name."quoted name"[0]['name'].
func parseJSONPath(path string) ([]jsonStep, error) {
	rest, ok := strings.CutPrefix(path, "$")
	if !ok {
		return nil, usererror.BadArgument("JSONPath must start with '$'")
	}
	var steps []jsonStep
	for rest != "" {
		var step jsonStep
		switch {
		case strings.HasPrefix(rest, ".\""):
			step.name, rest, ok = fn.CutQuoted(rest[1:], '"')
		case rest[0] == '.':
			rest = rest[1:]
			end := strings.IndexAny(rest, ".[")
			if end < 0 {
				end = len(rest)
			}
			step.name, rest, ok = rest[:end], rest[end:], end > 0 && !strings.ContainsAny(rest[:end], "\"'*")
		case rest[0] == '[':
			step, rest, ok = bracketStep(rest[1:])
		default:
			ok = false
		}
		if !ok {
			return nil, invalidJSONPath(path, len(path)-len(rest))
		}
		steps = append(steps, step)
	}
	return steps, nil
}

func invalidJSONPath(path string, at int) error {
	return usererror.BadArgument("Invalid token in JSONPath at: " + path[min(at, len(path)):])
}

// bracketStep reads the step that follows an opening bracket, and the closing bracket. The result rest is the remaining
// path.
func bracketStep(s string) (step jsonStep, rest string, ok bool) {
	s = strings.TrimLeft(s, " ")
	if s != "" && (s[0] == '\'' || s[0] == '"') {
		step.name, rest, ok = fn.CutQuoted(s, s[0])
	} else {
		digits := len(s) - len(strings.TrimLeft(s, "0123456789"))
		var err error
		step.index, err = strconv.ParseInt(s[:digits], 10, 64)
		step.isIndex, rest, ok = true, s[digits:], err == nil
	}
	rest, closed := strings.CutPrefix(strings.TrimLeft(rest, " "), "]")
	return step, rest, ok && closed
}

// jsonFind returns the text of the value at a path in a valid JSON text. ok is false if the path matches nothing.
func jsonFind(text string, path []jsonStep) (found string, ok bool) {
	s := jsonScanner{text: text}
	for _, step := range path {
		if !s.enter(step) {
			return "", false
		}
	}
	s.space()
	start := s.pos
	s.skip()
	return text[start:s.pos], true
}

// jsonScanner moves through a valid JSON text.
type jsonScanner struct {
	text string
	pos  int
}

func (s *jsonScanner) space() {
	for s.pos < len(s.text) && strings.IndexByte(" \t\r\n", s.text[s.pos]) >= 0 {
		s.pos++
	}
}

func (s *jsonScanner) peek() byte {
	s.space()
	return s.text[s.pos]
}

// enter moves the scanner into the array or object at its position, to the element or member that the step names. It
// returns false if there is no such element or member.
func (s *jsonScanner) enter(step jsonStep) bool {
	found := false
	s.each(func(name string, i int64, array bool) bool {
		found = array == step.isIndex && (array && i == step.index || !array && name == step.name)
		return !found
	})
	return found
}

// each moves the scanner to the value of each element or member of the array or object at its position, and calls f
// there. When f returns false, the loop ends and the scanner stays where it is. If the scanner is at a scalar, it moves
// past the scalar, and f is not called.
func (s *jsonScanner) each(f func(name string, i int64, array bool) (more bool)) {
	open := s.peek()
	if open != '{' && open != '[' {
		s.skip()
		return
	}
	s.pos++
	for i := int64(0); ; i++ {
		switch s.peek() {
		case '}', ']':
			s.pos++
			return
		case ',':
			s.pos++
		}
		name := ""
		if open == '{' {
			s.space()
			name = s.string()
			s.space()
			s.pos++ // skips the colon after the name
		}
		s.space()
		start := s.pos
		if !f(name, i, open == '[') {
			return
		}
		if s.pos == start {
			s.skip()
		}
	}
}

// string reads a JSON string and returns its decoded text.
func (s *jsonScanner) string() string {
	start := s.pos
	s.skipString()
	return jsonUnquote(s.text[start:s.pos])
}

func (s *jsonScanner) skipString() {
	for s.pos++; s.text[s.pos] != '"'; s.pos++ {
		if s.text[s.pos] == '\\' {
			s.pos++
		}
	}
	s.pos++
}

// skip moves past the value that begins at the scanner's position.
func (s *jsonScanner) skip() {
	depth := 0
	for s.space(); s.pos < len(s.text); {
		switch c := s.text[s.pos]; c {
		case '"':
			s.skipString()
		case '{', '[':
			depth++
			s.pos++
		case '}', ']':
			depth--
			s.pos++
		case ',', ':', ' ', '\t', '\r', '\n':
			s.pos++
		default:
			end := strings.IndexAny(s.text[s.pos:], ",]}: \t\r\n")
			if end < 0 {
				end = len(s.text) - s.pos
			}
			s.pos += end
		}
		if depth == 0 {
			return
		}
	}
}

// jsonUnquote decodes a JSON string in quotes.
func jsonUnquote(quoted string) string {
	s := quoted[1 : len(quoted)-1]
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var out []byte
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			out = append(out, s[i])
			continue
		}
		i++
		if s[i] != 'u' {
			out = append(out, map[byte]byte{'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}[s[i]])
			if out[len(out)-1] == 0 {
				out[len(out)-1] = s[i]
			}
			continue
		}
		r, size := jsonRune(s[i-1:])
		out = append(out, string(r)...)
		i += size - 2
	}
	return string(out)
}

// jsonRune decodes the escape \uXXXX at the beginning of s. A character beyond 16 bits takes two such escapes. size is
// the number of bytes of s that jsonRune decoded.
func jsonRune(s string) (r rune, size int) {
	high, _ := strconv.ParseUint(s[2:6], 16, 32)
	if high < 0xD800 || high > 0xDBFF || len(s) < 12 {
		return rune(high), 6
	}
	low, _ := strconv.ParseUint(s[8:12], 16, 32)
	return rune(high-0xD800)<<10 | rune(low-0xDC00) + 0x10000, 12
}

// jsonCompact removes white space outside strings from a valid JSON text.
func jsonCompact(text string) string {
	var out strings.Builder
	s := jsonScanner{text: text}
	for s.pos < len(text) {
		switch c := text[s.pos]; {
		case c == '"':
			start := s.pos
			s.skipString()
			out.WriteString(text[start:s.pos])
		case strings.IndexByte(" \t\r\n", c) >= 0:
			s.pos++
		default:
			out.WriteByte(c)
			s.pos++
		}
	}
	return out.String()
}

// jsonElements returns the texts of an array's elements; ok is false if the text is not an array.
func jsonElements(text string) (elements []string, ok bool) {
	s := jsonScanner{text: text}
	if s.peek() != '[' {
		return nil, false
	}
	s.each(func(string, int64, bool) bool {
		start := s.pos
		s.skip()
		elements = append(elements, text[start:s.pos])
		return true
	})
	return elements, true
}

// jsonScalar returns the text of a JSON scalar; a string is decoded. ok is false for null, arrays and objects.
func jsonScalar(text string) (scalar string, ok bool) {
	switch text[0] {
	case '{', '[', 'n':
		return "", false
	case '"':
		return jsonUnquote(text), true
	}
	return text, true
}
