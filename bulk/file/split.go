package file

import (
	"bytes"
	"cmp"
	"errors"
)

// splitter splits a row of text into fields. It is used only for headers, for rows with quotes or escapes, and for the
// rows from which types are inferred.
type splitter struct {
	fields  []field
	scratch []byte // memory for fields with quotes or escapes
}

type field struct {
	text   []byte
	quoted bool // whether the field had quotes or escapes; then it is a value and never NULL
}

var (
	errOpenQuote  = errors.New("a quote is opened and not closed")
	errQuote      = errors.New(`a quote stands within a field that does not begin with one (write "" within quotes, or read the file without quotes)`)
	errAfterQuote = errors.New("a character other than the delimiter follows a closing quote")
)

// split splits a row, given without its line end. It returns errOpenQuote if a quote is still open at the end, so the
// row continues on the next line.
func (r *splitter) split(s syntax, row []byte) error {
	r.fields, r.scratch = r.fields[:0], r.scratch[:0]
	if cap(r.scratch) < len(row) {
		r.scratch = make([]byte, 0, 2*len(row)) // fields refer to this memory, so it must not move
	}
	for at := 0; ; at++ {
		f, used, err := r.field(s, row[at:])
		if err != nil {
			return err
		}
		r.fields = append(r.fields, f)
		if at += used; at == len(row) {
			return nil
		}
		if row[at] != s.delimiter {
			return errAfterQuote
		}
	}
}

// splitRow splits a row that may continue on further lines. The parameter lines is the reader of the file. The
// parameter line is the line that this reader has read last, and the first line of the row. If a quote is open at the
// end of this line, splitRow reads further lines. Even a malformed row ends where its quotes are closed.
func (r *splitter) splitRow(s syntax, lines *lineReader, line []byte) error {
	err := r.split(s, line)
	if err == nil || !s.quotes {
		return err
	}
	row, open := lines.extend(s.delimiter)
	if open != nil || len(row) == len(line) {
		return cmp.Or(open, err)
	}
	return r.split(s, row)
}

// field parses the field at the start of text, up to the delimiter or the end of the row. used is the number of bytes
// parsed.
func (r *splitter) field(s syntax, text []byte) (f field, used int, err error) {
	if s.quotes && len(text) > 0 && text[0] == '"' {
		return r.quoted(text)
	}
	escaped := false
	for used < len(text) && text[used] != s.delimiter {
		switch {
		case text[used] == '"' && s.quotes:
			return f, 0, errQuote
		case text[used] == '\\' && s.escapes:
			escaped = true
			used++
		}
		used++
	}
	used = min(used, len(text))
	value := text[:used]
	if escaped && string(value) != s.null {
		return field{r.unescape(value), true}, used, nil
	}
	return field{text: value}, used, nil
}

// quoted parses a field in quotes.
func (r *splitter) quoted(text []byte) (f field, used int, err error) {
	start := len(r.scratch)
	for at := 1; ; {
		n := bytes.IndexByte(text[at:], '"')
		if n < 0 {
			return f, 0, errOpenQuote
		}
		r.scratch = append(r.scratch, text[at:at+n]...)
		at += n + 1
		if at == len(text) || text[at] != '"' {
			return field{r.scratch[start:], true}, at, nil
		}
		r.scratch = append(r.scratch, '"')
		at++
	}
}

// unescape replaces \n, \t and \r by the characters that they stand for. Before any other character, it removes the \.
func (r *splitter) unescape(value []byte) []byte {
	start := len(r.scratch)
	for i := 0; i < len(value); i++ {
		c := value[i]
		if c == '\\' && i+1 < len(value) {
			i++
			switch c = value[i]; c {
			case 'n':
				c = '\n'
			case 'r':
				c = '\r'
			case 't':
				c = '\t'
			}
		}
		r.scratch = append(r.scratch, c)
	}
	return r.scratch[start:]
}
