package file

import (
	"bytes"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/crowfoot-db/crowfoot/arrowtype"
)

// textWriter writes CSV files, which begin with a header, or TBL files.
type textWriter struct {
	to     io.Writer
	syntax syntax
	buffer []byte
}

func newTextWriter(to io.Writer, s syntax, schema *arrow.Schema) (Writer, error) {
	w := &textWriter{to: to, syntax: s}
	if !s.quotes {
		return w, nil
	}
	for i, f := range schema.Fields() {
		if i > 0 {
			w.buffer = append(w.buffer, s.delimiter)
		}
		w.field([]byte(f.Name))
	}
	w.buffer = append(w.buffer, '\n')
	return w, w.Close()
}

// Close writes the remaining bytes in the buffer. The caller closes the file.
func (w *textWriter) Close() error {
	_, err := w.to.Write(w.buffer)
	w.buffer = w.buffer[:0]
	return err
}

// Write appends rows.
func (w *textWriter) Write(batch arrow.RecordBatch) error {
	formatters := make([]arrowtype.Formatter, batch.NumCols())
	plain := make([]bool, batch.NumCols()) // columns whose texts need neither quotes nor escapes
	for i, c := range batch.Columns() {
		var err error
		if formatters[i], err = arrowtype.NewFormatter(c); err != nil {
			return fmt.Errorf("column %s: %w", batch.ColumnName(i), err)
		}
		plain[i] = isPlain(c.DataType())
	}
	for row := range int(batch.NumRows()) {
		for i, c := range batch.Columns() {
			if i > 0 {
				w.buffer = append(w.buffer, w.syntax.delimiter)
			}
			switch start := len(w.buffer); {
			case c.IsNull(row):
				w.buffer = append(w.buffer, w.syntax.null...)
			case plain[i]:
				w.buffer = formatters[i](w.buffer, row)
			default:
				w.buffer = formatters[i](w.buffer, row)
				w.protect(start)
			}
		}
		if w.syntax.terminal {
			w.buffer = append(w.buffer, w.syntax.delimiter)
		}
		w.buffer = append(w.buffer, '\n')
		if len(w.buffer) > lineBuffer {
			if err := w.Close(); err != nil {
				return err
			}
		}
	}
	return w.Close()
}

// isPlain reports whether texts of a type never contain delimiters, quotes, line ends or backslashes.
func isPlain(t arrow.DataType) bool {
	switch t.ID() {
	case arrow.BOOL, arrow.DATE32, arrow.DATE64, arrow.TIMESTAMP, arrow.DECIMAL128:
		return true
	}
	return arrow.IsInteger(t.ID()) || arrow.IsFloating(t.ID())
}

func (w *textWriter) field(text []byte) {
	start := len(w.buffer)
	w.buffer = append(w.buffer, text...)
	w.protect(start)
}

// protect adds quotes or escapes to the last field in the buffer, if it needs them. start is the index in the buffer
// at which the field starts.
func (w *textWriter) protect(start int) {
	value := w.buffer[start:]
	if w.syntax.escapes {
		if bytes.ContainsAny(value, "\\\n\r") || bytes.IndexByte(value, w.syntax.delimiter) >= 0 {
			w.buffer = w.escape(w.buffer[:start], bytes.Clone(value))
		}
		return
	}
	if len(value) > 0 && string(value) != w.syntax.null && !bytes.ContainsAny(value, "\"\n\r") && bytes.IndexByte(value, w.syntax.delimiter) < 0 {
		return
	}
	quoted := bytes.ReplaceAll(value, []byte{'"'}, []byte(`""`))
	w.buffer = append(append(append(w.buffer[:start], '"'), quoted...), '"')
}

func (w *textWriter) escape(to, value []byte) []byte {
	for _, c := range value {
		switch c {
		case '\n':
			to = append(to, `\n`...)
		case '\r':
			to = append(to, `\r`...)
		case '\\', w.syntax.delimiter:
			to = append(to, '\\', c)
		default:
			to = append(to, c)
		}
	}
	return to
}
