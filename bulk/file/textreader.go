package file

import (
	"bytes"
	"errors"
	"fmt"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/crowfoot-db/crowfoot/arrowtype"
	"github.com/crowfoot-db/crowfoot/bulk"
)

// textReader parses a segment of a CSV, TBL or JSON lines file.
type textReader struct {
	of      *text
	lines   *lineReader
	start   int64 // the offset at which the segment starts
	builder *array.RecordBuilder
	columns []textColumn // the columns of the file
	row     splitter
	scratch []byte // buffer for a text that is converted to UTF-8, or for the name of a JSON member
	members []bool // for each column, whether the current JSON row has set it
	sizes   []int  // for each column, the number of bytes of its texts in the last batch

	from   []int64 // offsets in the file of the rows that were parsed last, followed by the offset of the next row
	good   goodRows
	failed error
}

// textColumn is a column of a text file. The zero textColumn is a column that the reader leaves out.
type textColumn struct {
	*arrowtype.Appender
	name     string
	nullable bool
	decode   bool // true if the texts must be converted from the file's encoding to UTF-8
	json     bool // true if the column has the type JSON
}

func newTextReader(s *textSegment) (*textReader, error) {
	lines, err := newLineReader(s.name, s.from, s.end)
	if err != nil {
		return nil, err
	}
	r := &textReader{of: s.of, lines: lines, start: s.from, builder: array.NewRecordBuilder(memory.DefaultAllocator, s.of.schema), sizes: make([]int, s.of.schema.NumFields())}
	for _, target := range s.of.targets {
		var c textColumn
		if target >= 0 {
			f := s.of.schema.Field(target)
			c.name, c.nullable = f.Name, f.Nullable
			if c.Appender, err = arrowtype.NewAppender(r.builder.Field(target), s.of.types[target]); err != nil {
				return nil, errors.Join(err, lines.close())
			}
			code := s.of.types[target].Code
			c.json = code == spannerpb.TypeCode_JSON
			c.decode = s.of.encoding != nil && (code == spannerpb.TypeCode_STRING || code == spannerpb.TypeCode_JSON || code == spannerpb.TypeCode_ARRAY)
		}
		r.columns = append(r.columns, c)
	}
	return r, nil
}

func (r *textReader) Close() error {
	r.builder.Release()
	r.good.release()
	return r.lines.close()
}

// Places returns a function that gives the line in which a row begins. The row is one of the batch that Next returned
// last.
func (r *textReader) Places() func(row int) bulk.Place {
	from, lines := r.from[r.good.first:], r.lines.lines
	return func(row int) bulk.Place { return lines.place(from[row]) }
}

// Positions returns a function that gives the offset in the file at which a row begins. The row is one of the batch
// that Next returned last.
func (r *textReader) Positions() func(row int) int64 {
	from := r.from[r.good.first:]
	return func(row int) int64 { return from[row] }
}

// Progress returns the number of bytes of the segment that were parsed.
func (r *textReader) Progress() int64 { return r.lines.from() - r.start }

func (r *textReader) Next() (arrow.RecordBatch, error) {
	for {
		if batch := r.good.next(); batch != nil {
			return batch, nil
		}
		if r.failed != nil {
			return nil, r.failed
		}
		r.failed = r.fill()
	}
}

// fill parses rows into the next batch. If it meets an error or the end of the segment, it ends the batch before that
// point, and returns the error or io.EOF.
func (r *textReader) fill() error {
	r.reserve(len(r.from))
	r.from = make([]int64, 0, bulk.BatchRows+1) // a new slice, because functions that Places returned use the old one
	var bad []int
	var err error
	for size := 0; len(r.from) < bulk.BatchRows && size < bulk.BatchBytes; {
		var row []byte
		if row, err = r.lines.next(); err != nil {
			break
		}
		size += len(row)
		if len(row) == 0 && (len(r.columns) > 1 || r.of.json) {
			continue // an empty line is not a row
		}
		from := r.lines.from()
		if wrong := r.parse(row); wrong != nil {
			err = r.refuse(from, r.lines.row, wrong)
			bad = append(bad, len(r.from))
			r.evenOut(len(r.from) + 1)
		}
		r.from = append(r.from, from)
		if err != nil {
			break
		}
	}
	for i, b := range r.builder.Fields() {
		if text, ok := storageOf(b).(textBuilder); ok {
			r.sizes[i] = text.DataLen()
		}
	}
	r.good.set(r.builder.NewRecordBatch(), len(r.from), bad)
	r.from = append(r.from, r.lines.behind())
	return err
}

// reserve allocates memory for a batch that is as large as the last one. So the memory of the columns does not have to
// be moved while they grow.
func (r *textReader) reserve(rows int) {
	for i, b := range r.builder.Fields() {
		b.Reserve(rows)
		if text, ok := storageOf(b).(textBuilder); ok {
			text.ReserveData(r.sizes[i] + r.sizes[i]/8)
		}
	}
}

// textBuilder is a builder of a column of strings or bytes.
type textBuilder interface {
	DataLen() int
	ReserveData(n int)
}

func storageOf(b array.Builder) array.Builder {
	if e, ok := b.(interface{ StorageBuilder() array.Builder }); ok {
		return e.StorageBuilder()
	}
	return b
}

// refuse reports a malformed row.
func (r *textReader) refuse(from int64, row []byte, why error) error {
	const longest = 4096 // the largest number of bytes of the row's text in the report
	bad := bulk.BadRow{Place: r.lines.lines.place(from), Reason: why.Error(), Text: string(row[:min(len(row), longest)])}
	if r.of.reject == nil {
		return bad
	}
	return r.of.reject(bad)
}

// evenOut appends NULLs to each column that has fewer than the given number of rows.
func (r *textReader) evenOut(rows int) {
	for _, b := range r.builder.Fields() {
		for b.Len() < rows {
			b.AppendNull()
		}
	}
}

// parse appends the values of a row to the columns.
func (r *textReader) parse(row []byte) error {
	if r.of.json {
		return r.parseJSON(row)
	}
	s := &r.of.syntax
	if s.quotes && bytes.IndexByte(row, '"') >= 0 || s.escapes && bytes.IndexByte(row, '\\') >= 0 {
		return r.parseQuoted(row)
	}
	last := len(r.columns) - 1
	for i := range r.columns {
		value := row
		switch end := bytes.IndexByte(row, s.delimiter); {
		case i < last && end < 0:
			return r.tooFew(i + 1)
		case i < last:
			value, row = row[:end], row[end+1:]
		case end >= 0 && (!s.terminal || end != len(row)-1):
			return fmt.Errorf("the row has more than %d columns", len(r.columns))
		case end >= 0:
			value = row[:end]
		}
		if err := r.append(&r.columns[i], value, string(value) == s.null); err != nil {
			return err
		}
	}
	return nil
}

func (r *textReader) tooFew(n int) error {
	return fmt.Errorf("the row has %d columns in place of %d: %s is missing", n, len(r.columns), r.columns[n].orderName(n))
}

func (c *textColumn) orderName(i int) string {
	if c.name == "" {
		return fmt.Sprintf("column %d", i+1)
	}
	return c.name
}

// parseQuoted appends the values of a row with quotes or escapes to the columns. If a quote is open at the end of the
// line, it reads further lines.
func (r *textReader) parseQuoted(row []byte) error {
	if err := r.row.splitRow(r.of.syntax, r.lines, row); err != nil {
		return err
	}
	fields := r.row.fields
	if n := len(fields) - 1; r.of.syntax.terminal && n == len(r.columns) && len(fields[n].text) == 0 {
		fields = fields[:n]
	}
	if len(fields) < len(r.columns) {
		return r.tooFew(len(fields))
	}
	if len(fields) > len(r.columns) {
		return fmt.Errorf("the row has more than %d columns", len(r.columns))
	}
	for i, f := range fields {
		if err := r.append(&r.columns[i], f.text, !f.quoted && string(f.text) == r.of.syntax.null); err != nil {
			return err
		}
	}
	return nil
}

// append appends a value to a column.
func (r *textReader) append(c *textColumn, value []byte, null bool) error {
	switch {
	case c.Appender == nil:
		return nil
	case null && c.nullable:
		c.AppendNull()
		return nil
	case null && len(value) == 0:
		return fmt.Errorf("column %s is NOT NULL (the empty string is \"\")", c.name)
	case null:
		return fmt.Errorf("column %s is NOT NULL", c.name)
	case c.decode:
		r.scratch = r.scratch[:0]
		for _, b := range value {
			r.scratch = append(r.scratch, string(r.of.encoding.DecodeByte(b))...)
		}
		value = r.scratch
	}
	if err := c.AppendText(value); err != nil {
		return fmt.Errorf("column %s: %w", c.name, err)
	}
	return nil
}
