package columnar

import (
	"encoding/binary"
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/crowfoot-db/crowfoot/value"
)

// A ConversionError is the error for a value of an array that cannot be converted to the type that the caller asked
// for.
type ConversionError struct {
	Row int // the index of the value in the array
	Err error
}

func (e *ConversionError) Error() string { return fmt.Sprintf("row %d: %v", e.Row, e.Err) }
func (e *ConversionError) Unwrap() error { return e.Err }

// NewSource returns a source that gives the values of an array as values of type t. The source refers to the array's
// memory. NewSource accepts the same values as ValueAt. If a value cannot be converted, the error is a
// *ConversionError.
func NewSource(a arrow.Array, t *value.Type) (value.Source, error) {
	n := nulls{a, a.NullN() > 0}
	switch a := a.(type) {
	case *array.Int64:
		if t.Kind == value.Int64 {
			return &int64Source{n, a.Int64Values()}, nil
		}
	case *array.Float64:
		if t.Kind == value.Float64 {
			return &float64Source{n, a.Float64Values()}, nil
		}
	case *array.String:
		if t.Kind == value.String {
			return newTextSource(n, a.ValueOffsets(), a.ValueBytes(), t)
		}
	case *array.Binary:
		if t.Kind == value.Bytes {
			return newTextSource(n, a.ValueOffsets(), a.ValueBytes(), t)
		}
	}
	s := &valueSource{make([]value.Value, a.Len()), t}
	for i := range s.values {
		var err error
		if s.values[i], err = ValueAt(a, i, t); err != nil {
			return nil, &ConversionError{i, err}
		}
	}
	return s, nil
}

// nulls says which values of an array are NULL.
type nulls struct {
	array arrow.Array
	some  bool
}

func (n nulls) IsNull(row int) bool         { return n.some && n.array.IsNull(row) }
func (n nulls) IsShort(_ int, _ int64) bool { return false }

// int64Source is a source of INT64.
type int64Source struct {
	nulls
	values []int64
}

func (s *int64Source) RowSize(row int) int {
	return value.RowSize(value.OfInt64(s.values[row]), value.Int64Type)
}

func (s *int64Source) AppendRow(dst []byte, row int) []byte {
	return binary.AppendVarint(dst, s.values[row])
}

func (s *int64Source) AppendKey(dst []byte, row int, desc bool) []byte {
	return value.AppendKey(dst, s.Value(row), desc)
}

func (s *int64Source) Value(row int) value.Value {
	if s.IsNull(row) {
		return value.Null(value.Int64)
	}
	return value.OfInt64(s.values[row])
}

// float64Source is a source of FLOAT64.
type float64Source struct {
	nulls
	values []float64
}

func (s *float64Source) RowSize(int) int { return 8 }

func (s *float64Source) AppendRow(dst []byte, row int) []byte {
	return binary.LittleEndian.AppendUint64(dst, math.Float64bits(s.values[row]))
}

func (s *float64Source) AppendKey(dst []byte, row int, desc bool) []byte {
	return value.AppendKey(dst, s.Value(row), desc)
}

func (s *float64Source) Value(row int) value.Value {
	if s.IsNull(row) {
		return value.Null(value.Float64)
	}
	return value.OfFloat64(s.values[row])
}

// textSource is a source of STRING or BYTES.
type textSource struct {
	nulls
	offsets []int32 // value i is data[offsets[i]:offsets[i+1]]
	data    []byte
	typ     *value.Type
}

// newTextSource makes a source of texts. offsets are the positions of the values in a buffer of Arrow; data is the part
// of that buffer that begins with the first value, at offsets[0].
func newTextSource(n nulls, offsets []int32, data []byte, t *value.Type) (value.Source, error) {
	s := &textSource{nulls: n, data: data, typ: t}
	s.offsets = offsets
	if len(offsets) == 0 {
		return s, nil
	}
	// A client may have sent wrong offsets, and Arrow's library does not check them. They are checked here, because the
	// method bytes would panic with offsets that lie outside of data.
	last := offsets[0]
	for _, at := range offsets {
		if at < last || int(at-offsets[0]) > len(data) {
			return nil, fmt.Errorf("the offsets of a column of %v do not lie in its data", n.array.DataType())
		}
		last = at
	}
	return s, nil
}

func (s *textSource) bytes(row int) []byte {
	from, to := s.offsets[row]-s.offsets[0], s.offsets[row+1]-s.offsets[0]
	return s.data[from:to:to]
}

func (s *textSource) IsShort(row int, limit int64) bool {
	b := s.bytes(row)
	return (limit <= 0 || int64(len(b)) <= limit) && (s.typ.Kind == value.Bytes || utf8.Valid(b))
}

func (s *textSource) RowSize(row int) int { return int(s.offsets[row+1] - s.offsets[row]) }

func (s *textSource) AppendRow(dst []byte, row int) []byte { return append(dst, s.bytes(row)...) }

func (s *textSource) AppendKey(dst []byte, row int, desc bool) []byte {
	return value.AppendKey(dst, s.Value(row), desc)
}

func (s *textSource) Value(row int) value.Value {
	switch {
	case s.IsNull(row):
		return value.Null(s.typ.Kind)
	case s.typ.Kind == value.Bytes:
		return value.OfBytes(append([]byte(nil), s.bytes(row)...))
	}
	return value.OfString(string(s.bytes(row)))
}

// valueSource is a source of values that were already converted to Values.
type valueSource struct {
	values []value.Value
	typ    *value.Type
}

func (s *valueSource) IsNull(row int) bool       { return s.values[row].IsNull() }
func (s *valueSource) Value(row int) value.Value { return s.values[row] }
func (s *valueSource) RowSize(row int) int       { return value.RowSize(s.values[row], s.typ) }

func (s *valueSource) IsShort(int, int64) bool { return false }

func (s *valueSource) AppendRow(dst []byte, row int) []byte {
	return value.AppendRow(dst, s.values[row], s.typ)
}

func (s *valueSource) AppendKey(dst []byte, row int, desc bool) []byte {
	return value.AppendKey(dst, s.values[row], desc)
}
