package watch

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/types/known/structpb"
)

// modDecoder makes rows from the JSON objects of a mod, such as {"Id":"7"} and {"Name":"Ann","Age":null}. It scans all
// objects before it makes the rows, so that it can allocate memory of the right size. Strings without escapes are
// substrings of the text.
type modDecoder struct {
	cells []cell // the cells of all scanned rows, one row after the other
	made  int    // the number of cells from which the method row has made rows
	// memory for the values of the rows; see allocate
	values []*structpb.Value
	texts  []textValue
}

// begin discards the rows that were scanned.
func (d *modDecoder) begin() {
	clear(d.cells)
	d.cells, d.made, d.values, d.texts = d.cells[:0], 0, nil, nil
}

// cell is the value of a column in a row: a string, or any other value.
type cell struct {
	present bool
	text    string
	value   *structpb.Value // nil for a string
}

// textValue is the protobuf message of a string value.
type textValue struct {
	value structpb.Value
	kind  structpb.Value_StringValue
}

// scan scans the object of a row. It skips members that are not columns.
func (d *modDecoder) scan(text string, columns []Column) error {
	first := len(d.cells)
	for range columns {
		d.cells = append(d.cells, cell{})
	}
	if text == "" || text == "{}" || text == "null" {
		return nil
	}
	row := d.cells[first:]
	s, next := jsonText{text: text}, 0
	err := s.object(0, func(name string) error {
		c, err := s.cell(0)
		if err != nil {
			return err
		}
		if next >= len(columns) || columns[next].Name != name { // most objects have the same order as the slice columns
			next = Row{Columns: columns}.Index(name)
		}
		if next >= 0 {
			row[next] = c
		}
		next++
		return nil
	})
	if s.space(); err == nil && s.at < len(text) {
		err = s.malformed()
	}
	return err
}

// row returns the next scanned row. columns must be those with which the row was scanned.
func (d *modDecoder) row(columns []Column) (row Row) {
	cells := d.cells[d.made : d.made+len(columns)]
	if d.made == 0 {
		d.allocate()
	}
	d.made += len(columns)
	first := len(d.values)
	for i := range cells {
		c := &cells[i]
		switch {
		case !c.present:
		case c.value != nil:
			d.values = append(d.values, c.value)
		default:
			m := &d.texts[0]
			d.texts = d.texts[1:]
			m.kind.StringValue = c.text
			m.value.Kind = &m.kind
			d.values = append(d.values, &m.value)
		}
	}
	n := len(d.values) - first
	if n == 0 {
		return Row{}
	}
	return Row{Columns: presentColumns(columns, cells, n), Values: d.values[first:len(d.values):len(d.values)]}
}

// allocate makes space for the values of all rows.
func (d *modDecoder) allocate() {
	present, texts := 0, 0
	for i := range d.cells {
		if d.cells[i].present {
			if present++; d.cells[i].value == nil {
				texts++
			}
		}
	}
	d.values, d.texts = make([]*structpb.Value, 0, present), make([]textValue, texts)
}

// presentColumns returns the n columns that a row has. If these are all columns, it returns the slice columns itself,
// which many rows then share.
func presentColumns(columns []Column, cells []cell, n int) []Column {
	if n == len(columns) {
		return columns
	}
	list := make([]Column, 0, n)
	for i, c := range columns {
		if cells[i].present {
			list = append(list, c)
		}
	}
	return list
}

// jsonText parses the JSON in text from its start to its end (RFC 8259). at is the offset that it has reached.
type jsonText struct {
	text string
	at   int
}

// maxJSONDepth limits how deep arrays and objects may be nested, as in encoding/json.
const maxJSONDepth = 10_000

func (s *jsonText) malformed() error { return fmt.Errorf("malformed JSON at byte %d", s.at) }

// space skips white space.
func (s *jsonText) space() {
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case ' ', '\t', '\n', '\r':
			s.at++
		default:
			return
		}
	}
}

// takes skips white space. If c is the next byte, takes skips it, too, and returns true.
func (s *jsonText) takes(c byte) bool {
	s.space()
	if s.at < len(s.text) && s.text[s.at] == c {
		s.at++
		return true
	}
	return false
}

// object reads an object. It calls the function member with the name of each member. This function must read the value
// after the colon.
func (s *jsonText) object(depth int, member func(name string) error) error {
	return s.list('{', '}', depth, func() error {
		s.space()
		name, err := s.string()
		if err != nil {
			return err
		}
		if !s.takes(':') {
			return s.malformed()
		}
		return member(name)
	})
}

// list reads elements between two brackets, separated by commas. It calls the function element to read each of them.
func (s *jsonText) list(opening, closing byte, depth int, element func() error) error {
	if depth >= maxJSONDepth {
		return errors.New("JSON that is nested too deep")
	}
	if !s.takes(opening) {
		return s.malformed()
	}
	if s.takes(closing) {
		return nil
	}
	for {
		if err := element(); err != nil {
			return err
		}
		if s.takes(closing) {
			return nil
		}
		if !s.takes(',') {
			return s.malformed()
		}
	}
}

// cell reads a value of any type.
func (s *jsonText) cell(depth int) (c cell, err error) {
	c.present = true
	s.space()
	if s.at == len(s.text) {
		return c, s.malformed()
	}
	switch s.text[s.at] {
	case '"':
		c.text, err = s.string()
	case '[':
		c.value, err = s.array(depth)
	case '{':
		c.value, err = s.structure(depth)
	case 'n':
		c.value, err = structpb.NewNullValue(), s.word("null")
	case 't':
		c.value, err = structpb.NewBoolValue(true), s.word("true")
	case 'f':
		c.value, err = structpb.NewBoolValue(false), s.word("false")
	default:
		c.value, err = s.number()
	}
	return c, err
}

// message returns the value of a cell as a protobuf message.
func (c cell) message() *structpb.Value {
	if c.value == nil {
		return structpb.NewStringValue(c.text)
	}
	return c.value
}

func (s *jsonText) array(depth int) (*structpb.Value, error) {
	list := &structpb.ListValue{}
	err := s.list('[', ']', depth, func() error {
		c, err := s.cell(depth + 1)
		list.Values = append(list.Values, c.message())
		return err
	})
	return structpb.NewListValue(list), err
}

func (s *jsonText) structure(depth int) (*structpb.Value, error) {
	fields := map[string]*structpb.Value{}
	err := s.object(depth, func(name string) error {
		c, err := s.cell(depth + 1)
		fields[name] = c.message()
		return err
	})
	return structpb.NewStructValue(&structpb.Struct{Fields: fields}), err
}

func (s *jsonText) word(w string) error {
	if !strings.HasPrefix(s.text[s.at:], w) {
		return s.malformed()
	}
	s.at += len(w)
	return nil
}

func (s *jsonText) number() (*structpb.Value, error) {
	first := s.at
	s.at += numberLen(s.text[first:])
	if s.at == first {
		return nil, s.malformed()
	}
	f, err := strconv.ParseFloat(s.text[first:s.at], 64)
	return structpb.NewNumberValue(f), err
}

// numberLen returns the length of the number at the start of a text. It is 0 if the text does not begin with a number.
func numberLen(text string) (n int) {
	digits := func() bool {
		first := n
		for n < len(text) && '0' <= text[n] && text[n] <= '9' {
			n++
		}
		return n > first
	}
	takes := func(set string) bool {
		if n < len(text) && strings.IndexByte(set, text[n]) >= 0 {
			n++
			return true
		}
		return false
	}
	takes("-")
	if !takes("0") && !digits() {
		return 0
	}
	if takes(".") && !digits() {
		return 0
	}
	if takes("eE") {
		takes("+-")
		if !digits() {
			return 0
		}
	}
	return n
}

// string reads a string. It uses encoding/json for strings with escapes or invalid UTF-8.
func (s *jsonText) string() (string, error) {
	if s.at == len(s.text) || s.text[s.at] != '"' {
		return "", s.malformed()
	}
	first := s.at + 1
	plain := true
	for at := first; at < len(s.text); at++ {
		for at < len(s.text) && !special[s.text[at]] {
			at++
		}
		if at == len(s.text) {
			break
		}
		switch c := s.text[at]; {
		case c == '"':
			s.at = at + 1
			text := s.text[first:at]
			if plain || !strings.Contains(text, `\`) && utf8.ValidString(text) {
				return text, nil
			}
			var decoded string
			err := json.Unmarshal([]byte(s.text[first-1:s.at]), &decoded)
			return decoded, err
		case c == '\\':
			plain = false
			at++
		case c < ' ':
			s.at = at
			return "", s.malformed()
		case c >= utf8.RuneSelf:
			plain = false
		}
	}
	s.at = len(s.text)
	return "", s.malformed()
}

// special holds the bytes that end the fast scan of a string. All other bytes are ASCII characters that stand for
// themselves.
var special = func() (set [256]bool) {
	for c := range set {
		set[c] = c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf
	}
	return set
}()
