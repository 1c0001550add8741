package library

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/sql/fn/conversion"
	"github.com/crowfoot-db/crowfoot/value"
)

// reader parses the lines of the golden tables. Literals:
//
//	1  -1                INT64            1.5  1e3  inf  nan     FLOAT64
//	float32 1.5          FLOAT32          numeric 1.5            NUMERIC
//	'text' "text"        STRING (escapes as in Go)               b'bytes'  BYTES
//	true false           BOOL             date 2024-01-31, timestamp '2024-01-31 12:00:00+00', interval '1-2 3 4:5:6', json '{}', uuid '...'
//	[1, 2]               ARRAY            (1, 'a')  (a 1, b 'x') STRUCT
//	NULL:INT64           NULL of a type   []:ARRAY<INT64>        an empty array
//	raise:INT64          an expression of type INT64 that raises an error
type reader struct {
	text string
}

type syntaxError struct{ text string }

func (e *syntaxError) Error() string { return e.text }

func (r *reader) wrong(wanted string) error {
	return &syntaxError{fmt.Sprintf("expected %s at %q", wanted, r.text)}
}

func (r *reader) accept(token string) bool {
	rest, ok := strings.CutPrefix(strings.TrimLeft(r.text, " "), token)
	if ok {
		r.text = rest
	}
	return ok
}

func (r *reader) expect(token string) {
	if !r.accept(token) {
		panic(r.wrong(token))
	}
}

func (r *reader) until(token string) string {
	before, after, ok := strings.Cut(r.text, token)
	if !ok {
		panic(r.wrong(token))
	}
	r.text = after
	return strings.TrimSpace(before)
}

// word reads the text up to the next space, comma, bracket or colon: a number, a keyword or a name.
func (r *reader) word() string {
	r.text = strings.TrimLeft(r.text, " ")
	i := strings.IndexAny(r.text, " ,()[]<>:")
	if i < 0 {
		i = len(r.text)
	}
	w := r.text[:i]
	r.text = r.text[i:]
	return w
}

// arguments reads literals up to and including the closing parenthesis.
func (r *reader) arguments() (args []value.Value, types []*value.Type, err error) {
	for !r.accept(")") {
		if len(args) > 0 && !r.accept(",") {
			return nil, nil, r.wrong("comma")
		}
		v, t, err := r.literal()
		if err != nil {
			return nil, nil, err
		}
		args, types = append(args, v), append(types, t)
	}
	return args, types, nil
}

func (r *reader) literal() (value.Value, *value.Type, error) {
	r.text = strings.TrimLeft(r.text, " ")
	switch {
	case r.text == "":
		return value.Value{}, nil, r.wrong("literal")
	case r.text[0] == '\'' || r.text[0] == '"':
		s, err := r.quoted()
		return value.OfString(s), value.StringType, err
	case strings.HasPrefix(r.text, "b'") || strings.HasPrefix(r.text, `b"`):
		r.text = r.text[1:]
		s, err := r.quoted()
		return value.OfBytes([]byte(s)), value.BytesType, err
	case r.accept("["):
		return r.array()
	case r.accept("("):
		return r.structure()
	case r.accept("NULL:"):
		t, err := r.typeName()
		if err != nil {
			return value.Value{}, nil, err
		}
		return value.Null(t.Kind), t, nil
	case r.accept("raise:"):
		t, err := r.typeName()
		return value.PendingCommitTimestamp(), t, err // marks raise:TYPE; no other literal has this value
	}
	return r.scalar()
}

func (r *reader) quoted() (string, error) {
	quote := r.text[0]
	for i := 1; i < len(r.text); i++ {
		switch r.text[i] {
		case '\\':
			i++
		case quote:
			s := r.text[1:i]
			r.text = r.text[i+1:]
			return unescape(s, quote)
		}
	}
	return "", r.wrong("closing quote")
}

func unescape(s string, quote byte) (string, error) {
	var out []byte
	for s != "" {
		c, multibyte, tail, err := strconv.UnquoteChar(s, quote)
		if err != nil {
			return "", &syntaxError{err.Error() + ": " + s}
		}
		if s = tail; multibyte {
			out = append(out, string(c)...)
		} else {
			out = append(out, byte(c))
		}
	}
	return string(out), nil
}

func (r *reader) array() (value.Value, *value.Type, error) {
	var elems []value.Value
	var elem *value.Type
	for !r.accept("]") {
		if len(elems) > 0 && !r.accept(",") {
			return value.Value{}, nil, r.wrong("comma")
		}
		v, t, err := r.literal()
		if err != nil {
			return v, nil, err
		}
		elems, elem = append(elems, v), t
	}
	if r.accept(":") && !strings.HasPrefix(r.text, ":") {
		t, err := r.typeName()
		return value.OfArray(elems), t, err
	} else if strings.HasPrefix(r.text, ":") {
		r.text = ":" + r.text
	}
	return value.OfArray(elems), value.ArrayOf(elem), nil
}

func (r *reader) structure() (value.Value, *value.Type, error) {
	var fields []value.Value
	t := value.StructOf()
	for !r.accept(")") {
		if len(fields) > 0 && !r.accept(",") {
			return value.Value{}, nil, r.wrong("comma")
		}
		name := ""
		if i := strings.IndexAny(strings.TrimLeft(r.text, " "), " "); i == 1 { // the field's name: one letter and a space
			name = r.word()
		}
		v, ft, err := r.literal()
		if err != nil {
			return v, nil, err
		}
		fields, t.Fields = append(fields, v), append(t.Fields, value.Field{Name: name, Type: ft})
	}
	return value.OfStruct(fields), t, nil
}

// scalar reads a number, a BOOL, or a value that is written as a type and its text.
func (r *reader) scalar() (value.Value, *value.Type, error) {
	w := r.word()
	switch w {
	case "true", "false":
		return value.OfBool(w == "true"), value.BoolType, nil
	case "float32", "numeric", "date", "timestamp", "interval", "json", "uuid":
		text := ""
		if rest := strings.TrimLeft(r.text, " "); rest != "" && (rest[0] == '\'' || rest[0] == '"') {
			r.text = rest
			var err error
			if text, err = r.quoted(); err != nil {
				return value.Value{}, nil, err
			}
		} else {
			text = r.word()
		}
		return parseTyped(w, text)
	}
	if i, err := strconv.ParseInt(w, 10, 64); err == nil {
		return value.OfInt64(i), value.Int64Type, nil
	}
	f, err := strconv.ParseFloat(w, 64)
	if err != nil {
		return value.Value{}, nil, &syntaxError{"no literal: " + w}
	}
	return value.OfFloat64(f), value.Float64Type, nil
}

func parseTyped(kind, text string) (value.Value, *value.Type, error) {
	switch kind {
	case "json":
		j, err := value.ParseJSON(text)
		if err != nil {
			return value.Value{}, nil, &syntaxError{err.Error()}
		}
		return value.OfJSON(j), value.JSONType, nil
	case "float32":
		f, err := strconv.ParseFloat(text, 32)
		if err != nil {
			return value.Value{}, nil, &syntaxError{err.Error()}
		}
		return value.OfFloat32(float32(f)), value.Float32Type, nil
	}
	t, err := (&reader{text: strings.ToUpper(kind)}).typeName()
	if err != nil {
		return value.Value{}, nil, err
	}
	cast, err := conversion.Cast(value.StringType, t, false)
	if err != nil {
		return value.Value{}, nil, err
	}
	v, err := cast.Call(&fn.Context{Zone: time.UTC}, []value.Value{value.OfString(text)})
	if err != nil {
		return v, nil, &syntaxError{err.Error()}
	}
	return v, t, nil
}

var scalarTypes = []*value.Type{value.BoolType, value.Int64Type, value.Float64Type, value.Float32Type, value.TimestampType, value.DateType,
	value.StringType, value.BytesType, value.NumericType, value.JSONType, value.IntervalType, value.UUIDType}

func (r *reader) typeName() (*value.Type, error) {
	r.text = strings.TrimLeft(r.text, " ")
	if r.accept("ARRAY<") {
		elem, err := r.typeName()
		r.expect(">")
		return value.ArrayOf(elem), err
	}
	if r.accept("STRUCT<") {
		t := value.StructOf()
		for !r.accept(">") {
			r.accept(",")
			name := ""
			if i := strings.IndexAny(strings.TrimLeft(r.text, " "), " "); i == 1 {
				name = r.word()
			}
			ft, err := r.typeName()
			if err != nil {
				return nil, err
			}
			t.Fields = append(t.Fields, value.Field{Name: name, Type: ft})
		}
		return t, nil
	}
	w := r.word()
	for _, t := range scalarTypes {
		if t.Kind.String() == w {
			return t, nil
		}
	}
	return nil, &syntaxError{"no type: " + w}
}
