package retrieval

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/protobuf/encoding/protowire"
	gproto "google.golang.org/protobuf/proto"
)

// rowDecoder decodes the messages of one stream of google.spanner.v1.PartialResultSet directly into columns, as a
// client in a fast language would. After every 10,000 rows (the constant kept), it empties the columns.
type rowDecoder struct {
	columns []decodedColumn
	next    int // index of the column of the next value
	rows    int64
	chunk   []byte // the beginning of a text that continues in the next message
	chunked bool   // true if chunk holds the beginning of a text
}

// decodedColumn holds the values of one column in the rows since the columns were last emptied.
type decodedColumn struct {
	code   spannerpb.TypeCode
	nulls  []bool
	ints   []int64   // the values of a column of type INT64
	floats []float64 // the values of a column of type FLOAT64
	text   []byte    // the values of a column of another type, all texts joined
	ends   []int     // for each of the joined texts, the index in the field text at which it ends
}

// The numbers of the message fields that the decoder reads. Sources:
// https://github.com/googleapis/googleapis/blob/master/google/spanner/v1/result_set.proto and
// https://github.com/protocolbuffers/protobuf/blob/main/src/google/protobuf/struct.proto.
const (
	setMetadata, setValues, setChunkedValue      = 1, 2, 3
	fieldNull, fieldNumber, fieldText, fieldBool = 1, 2, 3, 4
)

// decode decodes one message.
func (d *rowDecoder) decode(frame []byte) error {
	var last []byte // the last value of the message; it may be a text that continues in the next message
	chunked := false
	for len(frame) > 0 {
		field, kind, n := protowire.ConsumeTag(frame)
		if n < 0 {
			return protowire.ParseError(n)
		}
		frame = frame[n:]
		switch {
		case field == setValues && kind == protowire.BytesType:
			v, n := protowire.ConsumeBytes(frame)
			if n < 0 {
				return protowire.ParseError(n)
			}
			frame = frame[n:]
			if last != nil {
				if err := d.value(last); err != nil {
					return err
				}
			}
			last = v
			continue
		case field == setMetadata && kind == protowire.BytesType:
			v, n := protowire.ConsumeBytes(frame)
			if n < 0 {
				return protowire.ParseError(n)
			}
			if err := d.begin(v); err != nil {
				return err
			}
		case field == setChunkedValue && kind == protowire.VarintType:
			v, _ := protowire.ConsumeVarint(frame)
			chunked = v != 0
		}
		if n = protowire.ConsumeFieldValue(field, kind, frame); n < 0 {
			return protowire.ParseError(n)
		}
		frame = frame[n:]
	}
	if last == nil {
		return nil
	}
	if chunked {
		return d.begun(last)
	}
	return d.value(last)
}

// begin reads the types of the columns from a ResultSetMetadata.
func (d *rowDecoder) begin(message []byte) error {
	m := new(spannerpb.ResultSetMetadata)
	if err := gproto.Unmarshal(message, m); err != nil {
		return err
	}
	for _, f := range m.GetRowType().GetFields() {
		d.columns = append(d.columns, decodedColumn{code: f.GetType().GetCode()})
	}
	return nil
}

// begun stores the beginning of a text, which the next message continues.
func (d *rowDecoder) begun(value []byte) error {
	text, err := textOf(value)
	if err != nil {
		return err
	}
	d.chunk, d.chunked = append(d.chunk, text...), true
	return nil
}

func textOf(value []byte) ([]byte, error) {
	if field, kind, n := protowire.ConsumeTag(value); n > 0 && field == fieldText && kind == protowire.BytesType {
		if text, m := protowire.ConsumeBytes(value[n:]); m >= 0 {
			return text, nil
		}
	}
	return nil, errors.New("a chunk is not a text")
}

// value adds one google.protobuf.Value to its column.
func (d *rowDecoder) value(value []byte) error {
	if d.next >= len(d.columns) {
		return errors.New("a value comes without a column")
	}
	c := &d.columns[d.next]
	field, kind, n := protowire.ConsumeTag(value)
	if n < 0 {
		return protowire.ParseError(n)
	}
	c.nulls = append(c.nulls, field == fieldNull)
	switch {
	case field == fieldText && kind == protowire.BytesType:
		text, m := protowire.ConsumeBytes(value[n:])
		if m < 0 {
			return protowire.ParseError(m)
		}
		if d.chunked {
			d.chunk = append(d.chunk, text...)
			text = d.chunk
		}
		if err := c.add(text); err != nil {
			return err
		}
		d.chunk, d.chunked = d.chunk[:0], false
	case field == fieldNumber && kind == protowire.Fixed64Type:
		bits, m := protowire.ConsumeFixed64(value[n:])
		if m < 0 {
			return protowire.ParseError(m)
		}
		c.floats = append(c.floats, math.Float64frombits(bits))
	case field != fieldNull && field != fieldBool:
		return fmt.Errorf("a value has the field %d", field)
	}
	if d.next++; d.next == len(d.columns) {
		d.next = 0
		if d.rows++; d.rows%kept == 0 {
			d.forget()
		}
	}
	return nil
}

// add adds a text to the column, or the number that the text represents.
func (c *decodedColumn) add(text []byte) (err error) {
	switch c.code {
	case spannerpb.TypeCode_INT64:
		i, err := parseInt(text)
		c.ints = append(c.ints, i)
		return err
	case spannerpb.TypeCode_FLOAT64: // only NaN, Infinity and -Infinity are sent as texts
		f, err := strconv.ParseFloat(string(text), 64)
		c.floats = append(c.floats, f)
		return err
	}
	c.text = append(c.text, text...)
	c.ends = append(c.ends, len(c.text))
	return nil
}

// parseInt parses like strconv.ParseInt, but does not allocate a string for numbers of up to 18 digits.
func parseInt(text []byte) (int64, error) {
	digits := bytes.TrimPrefix(text, []byte{'-'})
	if len(digits) == 0 || len(digits) > 18 {
		return strconv.ParseInt(string(text), 10, 64)
	}
	i := int64(0)
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, fmt.Errorf("%q is no INT64", text)
		}
		i = i*10 + int64(c-'0')
	}
	if len(digits) < len(text) {
		i = -i
	}
	return i, nil
}

// forget removes the rows from the columns but keeps the columns' memory for the next rows.
func (d *rowDecoder) forget() {
	for i := range d.columns {
		c := &d.columns[i]
		c.nulls, c.ints, c.floats, c.text, c.ends = c.nulls[:0], c.ints[:0], c.floats[:0], c.text[:0], c.ends[:0]
	}
}

// end returns an error if the stream ended within a row.
func (d *rowDecoder) end() error {
	if d.next != 0 || d.chunked {
		return errors.New("the stream ended within a row")
	}
	return nil
}
