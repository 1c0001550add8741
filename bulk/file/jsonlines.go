package file

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/crowfoot-db/crowfoot/arrowtype"
	"github.com/crowfoot-db/crowfoot/bulk"
)

// A file of JSON lines has one object per line. A member that is missing or null is NULL. In a JSON column, however,
// null is the JSON value null. INT64 and floats are numbers. NaN, infinities, NUMERIC, and all other scalars except
// BOOL are strings. The reader also accepts numbers in strings. BYTES are base64. The value of a JSON column is written
// unchanged; in ARRAY<JSON> it is a string that holds JSON.

func openJSONLines(names []string, o Options) (bulk.Source, error) {
	if slices.Contains(o.Columns, "-") {
		return nil, errors.New(`the members of JSON lines have no order, so "-" stands for none of them: name only the members to read`)
	}
	t := &text{json: true, done: o.Done, generated: o.Generated, reject: o.Reject, syntax: syntax{delimiter: ','}, others: len(o.Columns) > 0}
	for _, name := range names {
		f, _, err := openTextFile(name, false, t.syntax)
		if err != nil {
			return nil, err
		}
		t.files = append(t.files, f)
	}
	wanted := o.Schema
	if wanted == nil {
		var err error
		if wanted, err = t.inferJSON(); err != nil {
			return nil, err
		}
	}
	t.names = o.Columns
	return t, t.choose(wanted)
}

// parseJSON appends the values of an object to the columns.
func (r *textReader) parseJSON(row []byte) error {
	if r.members == nil {
		r.members = make([]bool, len(r.columns))
	}
	clear(r.members)
	err := eachMember(row, &r.scratch, func(name, value []byte) error {
		i := r.column(name)
		switch {
		case i < 0 && r.of.others:
			return nil
		case i < 0:
			return r.of.notWanted(string(name))
		case r.members[i]:
			return fmt.Errorf("the object has %s twice", name)
		}
		r.members[i] = true
		c := &r.columns[i]
		if string(value) == "null" && !c.nullable && !c.json {
			return fmt.Errorf("column %s is NOT NULL", c.name)
		}
		if err := c.AppendJSON(value); err != nil {
			return fmt.Errorf("column %s: %w", c.name, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i, there := range r.members {
		if c := &r.columns[i]; !there {
			if !c.nullable {
				return fmt.Errorf("column %s is NOT NULL, and the object does not have it", c.name)
			}
			c.AppendNull()
		}
	}
	return nil
}

// column returns the index of the column with this name, or -1. Case matters only if the names of two columns differ
// only in case.
func (r *textReader) column(name []byte) int {
	fold := -1
	for i := range r.columns {
		if r.columns[i].name == string(name) {
			return i
		}
		if strings.EqualFold(r.columns[i].name, string(name)) {
			fold = i
		}
	}
	return fold
}

// eachMember calls visit for each member of a JSON object. The name is valid only until visit returns.
func eachMember(object []byte, scratch *[]byte, visit func(name, value []byte) error) error {
	rest := bytes.TrimSpace(object)
	misplaced := func(at []byte, err error) error {
		return fmt.Errorf("character %d: %w", utf8.RuneCount(object[:len(bytes.TrimRight(object, " \t\r\n"))-len(at)])+1, err)
	}
	if len(rest) < 2 || rest[0] != '{' {
		return errors.New("the line is not a JSON object")
	}
	if rest = bytes.TrimLeft(rest[1:], " \t"); len(rest) == 1 && rest[0] == '}' {
		return nil
	}
	for {
		quoted, after, err := arrowtype.CutJSON(rest)
		if err == nil {
			*scratch, err = arrowtype.UnquoteJSON((*scratch)[:0], quoted)
		}
		if err != nil {
			return misplaced(rest, err)
		}
		after = bytes.TrimLeft(after, " \t")
		if len(after) == 0 || after[0] != ':' {
			return misplaced(after, errors.New("the line is not a JSON object: a name without a value"))
		}
		rest = after[1:]
		value, after, err := arrowtype.CutJSON(rest)
		if err != nil {
			return misplaced(rest, err)
		}
		if err := visit(*scratch, value); err != nil {
			return err
		}
		after = bytes.TrimLeft(after, " \t")
		switch {
		case len(after) == 1 && after[0] == '}':
			return nil
		case len(after) > 1 && after[0] == ',':
			rest = after[1:]
		default:
			return misplaced(after, errors.New("the line is not a JSON object: a comma or its end is missing"))
		}
	}
}

// inferJSON derives the names and types of columns from the first rows.
func (t *text) inferJSON() (*arrow.Schema, error) {
	var columns []jsonGuess
	var scratch []byte
	err := t.eachOfFirst(func(line []byte, _ *lineReader) {
		_ = eachMember(line, &scratch, func(name, value []byte) error { // malformed lines are ignored here; the reader will report them
			at := slices.IndexFunc(columns, func(c jsonGuess) bool { return c.name == string(name) })
			if at < 0 {
				at, columns = len(columns), append(columns, jsonGuess{name: string(name)})
			}
			columns[at].see(value)
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	if len(columns) == 0 {
		return nil, fmt.Errorf("%s has no objects to tell the columns by", t.files[0].name)
	}
	var fields []arrow.Field
	for _, c := range columns {
		f, err := arrowtype.Field(c.name, c.kind(), "", true, arrowtype.Text)
		if err != nil {
			return nil, err
		}
		fields = append(fields, f)
	}
	return arrow.NewSchema(fields, nil), nil
}

// jsonGuess records which types fit the values of a member so far.
type jsonGuess struct {
	name                    string
	texts                   guess // which types fit the texts within JSON strings
	numbers                 guess
	strings, bools, numeric bool
	lists, objects          bool
	elems                   *jsonGuess
}

func (g *jsonGuess) see(value []byte) {
	switch value[0] {
	case 'n':
	case '"':
		g.strings = true
		if text, err := arrowtype.UnquoteJSON(nil, value); err == nil {
			g.texts.see(text)
			g.texts.excluded |= 1<<0 | 1<<1 | 1<<4 // a value in a string is neither a number nor a boolean
		}
	case 't', 'f':
		g.bools = true
	case '{':
		g.objects = true
	case '[':
		g.lists = true
		if g.elems == nil {
			g.elems = &jsonGuess{}
		}
		for rest := bytes.TrimSpace(value[1:]); len(rest) > 0 && rest[0] != ']'; {
			elem, after, err := arrowtype.CutJSON(rest)
			if err != nil {
				return
			}
			g.elems.see(elem)
			rest = bytes.TrimLeft(after, ", \t")
		}
	default:
		g.numeric = true
		g.numbers.see(value)
	}
}

// kind returns the type that fits all values of the member. It is JSON if the values are of several kinds.
func (g *jsonGuess) kind() *spannerpb.Type {
	kinds := 0
	for _, is := range []bool{g.strings, g.bools, g.numeric, g.lists, g.objects} {
		if is {
			kinds++
		}
	}
	switch {
	case kinds == 0:
		return arrowtype.Scalar(spannerpb.TypeCode_STRING)
	case kinds > 1 || g.objects:
		return arrowtype.Scalar(spannerpb.TypeCode_JSON)
	case g.strings:
		return arrowtype.Scalar(g.texts.code())
	case g.bools:
		return arrowtype.Scalar(spannerpb.TypeCode_BOOL)
	case g.numeric:
		return arrowtype.Scalar(g.numbers.code())
	}
	elem := g.elems.kind()
	if elem.Code == spannerpb.TypeCode_ARRAY {
		return arrowtype.Scalar(spannerpb.TypeCode_JSON)
	}
	return &spannerpb.Type{Code: spannerpb.TypeCode_ARRAY, ArrayElementType: elem}
}

// jsonWriter writes JSON lines.
type jsonWriter struct {
	to     io.Writer
	names  [][]byte // the columns' names as JSON strings, each with a colon after it
	isJSON []bool
	buffer []byte
}

func newJSONWriter(to io.Writer, schema *arrow.Schema) (Writer, error) {
	w := &jsonWriter{to: to}
	for _, f := range schema.Fields() {
		w.names = append(w.names, append(arrowtype.AppendJSONString(nil, []byte(f.Name)), ':'))
		_, kind, err := arrowtype.SpannerType(f)
		w.isJSON = append(w.isJSON, err == nil && kind.Code == spannerpb.TypeCode_JSON)
	}
	return w, nil
}

// Close writes the remaining bytes in the buffer. The caller closes the file.
func (w *jsonWriter) Close() error {
	_, err := w.to.Write(w.buffer)
	w.buffer = w.buffer[:0]
	return err
}

func (w *jsonWriter) Write(batch arrow.RecordBatch) error {
	formatters := make([]arrowtype.Formatter, batch.NumCols())
	for i, c := range batch.Columns() {
		var err error
		if formatters[i], err = arrowtype.NewFormatter(c); err != nil {
			return fmt.Errorf("column %s: %w", batch.ColumnName(i), err)
		}
	}
	var text []byte
	for row := range int(batch.NumRows()) {
		w.buffer = append(w.buffer, '{')
		first := true
		for i, c := range batch.Columns() {
			if c.IsNull(row) && w.isJSON[i] {
				continue
			}
			if !first {
				w.buffer = append(w.buffer, ',')
			}
			first = false
			w.buffer = append(w.buffer, w.names[i]...)
			_, list := c.DataType().(arrow.ListLikeType)
			switch {
			case c.IsNull(row):
				w.buffer = append(w.buffer, "null"...)
			case arrowtype.IsBare(c.DataType()):
				w.buffer = arrowtype.AppendBare(w.buffer, formatters[i], row)
			case list:
				w.buffer = formatters[i](w.buffer, row)
			case w.isJSON[i]:
				text = formatters[i](text[:0], row)
				w.buffer = append(w.buffer, bytes.ReplaceAll(text, []byte{'\n'}, []byte{' '})...) // line ends in JSON are white space
			default:
				text = formatters[i](text[:0], row)
				w.buffer = arrowtype.AppendJSONString(w.buffer, text)
			}
		}
		w.buffer = append(w.buffer, "}\n"...)
		if len(w.buffer) > lineBuffer {
			if err := w.Close(); err != nil {
				return err
			}
		}
	}
	return w.Close()
}
