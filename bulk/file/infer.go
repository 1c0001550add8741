package file

import (
	"fmt"
	"io"
	"math/bits"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/crowfoot-db/crowfoot/arrowtype"
)

const (
	inferRows  = 10_000  // the maximum number of rows of the first file from which types are inferred
	inferBytes = 4 << 20 // types are inferred only from rows that begin in about the first inferBytes bytes
)

// guesses lists the types that a text column may get. Narrower types come first. Every text fits STRING.
var guesses = []struct {
	code spannerpb.TypeCode
	fits func(text []byte) error
}{
	{spannerpb.TypeCode_INT64, func(text []byte) error { _, err := arrowtype.ParseInt64(text); return err }},
	{spannerpb.TypeCode_FLOAT64, func(text []byte) error { _, err := arrowtype.ParseFloat(text, 64); return err }},
	{spannerpb.TypeCode_DATE, func(text []byte) error { _, err := arrowtype.ParseDate(text); return err }},
	{spannerpb.TypeCode_TIMESTAMP, func(text []byte) error { _, _, err := arrowtype.ParseTimestamp(text); return err }},
	{spannerpb.TypeCode_BOOL, func(text []byte) error { _, err := arrowtype.ParseBool(text); return err }},
	{spannerpb.TypeCode_STRING, func([]byte) error { return nil }},
}

// guess records which types fit the texts of a column so far. Bit i of excluded is set if guesses[i] does not fit.
type guess struct {
	excluded uint
	hasValue bool // whether there was a value other than NULL
}

func (g *guess) see(text []byte) {
	g.hasValue = true
	for i, t := range guesses {
		if g.excluded&(1<<i) == 0 && t.fits(text) != nil {
			g.excluded |= 1 << i
		}
	}
}

// code returns the narrowest type that fits all texts.
func (g *guess) code() spannerpb.TypeCode {
	if !g.hasValue {
		return spannerpb.TypeCode_STRING
	}
	return guesses[bits.TrailingZeros(^g.excluded)].code
}

// eachOfFirst calls visit for the first lines of the first file: for at most inferRows lines, and until they have
// inferBytes bytes.
func (t *text) eachOfFirst(visit func(line []byte, lines *lineReader)) error {
	lines, err := newLineReader(t.files[0].name, t.files[0].from, t.files[0].end)
	if err != nil {
		return err
	}
	defer lines.close()
	for rows, size := 0, 0; rows < inferRows && size < inferBytes; rows++ {
		line, err := lines.next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		size += len(line)
		visit(line, lines)
	}
	return nil
}

// infer derives the names and types of the columns from the first rows.
func (t *text) infer() (*arrow.Schema, error) {
	columns := make([]guess, len(t.names))
	var row splitter
	err := t.eachOfFirst(func(line []byte, lines *lineReader) { // malformed lines are ignored here; the reader will report them
		if err := row.splitRow(t.syntax, lines, line); err != nil {
			return
		}
		fields := row.fields
		if n := len(fields) - 1; t.syntax.terminal && n > 0 && len(fields[n].text) == 0 {
			fields = fields[:n]
		}
		if t.names == nil {
			for i := range fields {
				t.names = append(t.names, fmt.Sprintf("c%d", i+1))
			}
			columns = make([]guess, len(fields))
		}
		for i := range min(len(fields), len(columns)) {
			if f := fields[i]; f.quoted || string(f.text) != t.syntax.null {
				columns[i].see(f.text)
			}
		}
	})
	if err != nil {
		return nil, err
	}
	return t.inferred(columns)
}

func (t *text) inferred(columns []guess) (*arrow.Schema, error) {
	if len(columns) == 0 {
		return nil, fmt.Errorf("%s has neither columns nor rows", t.files[0].name)
	}
	var fields []arrow.Field
	for i, g := range columns {
		if t.names[i] == "-" {
			continue
		}
		f, err := arrowtype.Field(t.names[i], arrowtype.Scalar(g.code()), "", true, arrowtype.Text)
		if err != nil {
			return nil, err
		}
		fields = append(fields, f)
	}
	return arrow.NewSchema(fields, nil), nil
}
