package columnar

import (
	"encoding/binary"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/crowfoot-db/crowfoot/arrowtype"
	"github.com/crowfoot-db/crowfoot/value"
)

func newColumn(name string, t *value.Type, to arrow.DataType) column {
	b := base{name: name, typ: t, arrow: to}
	switch t.Kind {
	case value.Bool:
		return &boolColumn{base: b}
	case value.Int64, value.Enum:
		return &int64Column{fixed[int64]{base: b, bytes: arrow.Int64Traits.CastToBytes, cast: arrow.Int64Traits.CastFromBytes, width: 8, of: func(_ *base, v value.Value) (int64, error) { return v.AsInt64(), nil }}}
	case value.Float64:
		return &fixed[float64]{base: b, bytes: arrow.Float64Traits.CastToBytes, cast: arrow.Float64Traits.CastFromBytes, width: 8, of: func(_ *base, v value.Value) (float64, error) { return v.AsFloat64(), nil }}
	case value.Float32:
		return &fixed[float32]{base: b, bytes: arrow.Float32Traits.CastToBytes, cast: arrow.Float32Traits.CastFromBytes, width: 4, of: func(_ *base, v value.Value) (float32, error) { return v.AsFloat32(), nil }}
	case value.Date:
		return &fixed[int32]{base: b, bytes: arrow.Int32Traits.CastToBytes, cast: arrow.Int32Traits.CastFromBytes, width: 4, of: func(_ *base, v value.Value) (int32, error) { return v.AsDate(), nil }}
	case value.Timestamp:
		of := nanoseconds
		if to == arrow.FixedWidthTypes.Timestamp_us {
			of = microseconds
		}
		return &fixed[int64]{base: b, bytes: arrow.Int64Traits.CastToBytes, cast: arrow.Int64Traits.CastFromBytes, width: 8, of: of}
	case value.Numeric:
		return &fixed[decimal128.Num]{base: b, bytes: arrow.Decimal128Traits.CastToBytes, cast: arrow.Decimal128Traits.CastFromBytes, width: 16, of: func(_ *base, v value.Value) (decimal128.Num, error) {
			hi, lo := v.AsNumeric().Int128()
			return decimal128.New(hi, lo), nil
		}}
	case value.Interval:
		return &fixed[arrow.MonthDayNanoInterval]{base: b, bytes: arrow.MonthDayNanoIntervalTraits.CastToBytes, cast: arrow.MonthDayNanoIntervalTraits.CastFromBytes, width: 16, of: interval}
	case value.UUID:
		return &uuidColumn{base: b}
	case value.Array:
		list := to.(*arrow.ListType)
		return &listColumn{base: b, offsets: make([]int32, 1), elems: newColumn(name, t.Elem, list.Elem())}
	case value.Struct:
		c := &structColumn{base: b}
		for i, f := range t.Fields {
			c.fields = append(c.fields, newColumn(name+"."+f.Name, f.Type, to.(*arrow.StructType).Field(i).Type))
		}
		return c
	}
	return &textColumn{base: b, offsets: make([]int32, 1)}
}

// nanoseconds returns a TIMESTAMP as nanoseconds since 1970, or a *RangeError.
func nanoseconds(b *base, v value.Value) (int64, error) {
	if v.IsPending() {
		return 0, errPending
	}
	s, n := v.AsTimestamp()
	at, ok := arrowtype.UnixNanos(s, n)
	if !ok {
		return 0, b.outOfRange(value.AppendTimestamp(nil, s, n))
	}
	return at, nil
}

func microseconds(_ *base, v value.Value) (int64, error) {
	if v.IsPending() {
		return 0, errPending
	}
	s, n := v.AsTimestamp()
	return s*1_000_000 + int64(n)/1000, nil
}

// errPending is the error for a pending commit timestamp. It should never occur, because reads of pending commit
// timestamps are refused before a column is filled.
var errPending = fmt.Errorf("pending commit timestamp in a column")

func interval(b *base, v value.Value) (m arrow.MonthDayNanoInterval, err error) {
	i := v.AsInterval()
	nanos, ok := arrowtype.UnixNanos(i.Seconds, i.Nanos)
	if !ok {
		return m, b.outOfRange(i.Append(nil))
	}
	return arrow.MonthDayNanoInterval{Months: i.Months, Days: i.Days, Nanoseconds: nanos}, nil
}

// fixed is a column of a type whose values all have the same width.
type fixed[T any] struct {
	base
	values []T
	width  int
	of     func(*base, value.Value) (T, error)
	bytes  func([]T) []byte
	cast   func([]byte) []T
}

func (c *fixed[T]) AppendNull() {
	var zero T
	c.null()
	c.values = append(c.values, zero)
}

func (c *fixed[T]) append(v T) {
	c.set()
	c.values = append(c.values, v)
}

func (c *fixed[T]) AppendValue(v value.Value) error {
	if v.IsNull() {
		c.AppendNull()
		return nil
	}
	x, err := c.of(&c.base, v)
	if err == nil {
		c.append(x)
	}
	return err
}

func (c *fixed[T]) AppendRow(payload []byte) error {
	v, err := value.DecodeRow(payload, c.typ)
	if err != nil {
		return err
	}
	return c.AppendValue(v)
}

func (c *fixed[T]) AppendKey(key []byte, desc bool) error {
	v, _, err := value.DecodeKey(key, c.typ, desc)
	if err != nil {
		return err
	}
	return c.AppendValue(v)
}

func (c *fixed[T]) appendArray(a arrow.ArrayData, from, to int) error {
	c.validity(a, from, to)
	if from < to {
		c.values = append(c.values, c.cast(a.Buffers()[1].Bytes())[a.Offset()+from:a.Offset()+to]...)
	}
	return nil
}

func (c *fixed[T]) used() int64           { return int64(len(c.values)*c.width + len(c.valid)) }
func (c *fixed[T]) size() int64           { return int64(cap(c.values)*c.width + cap(c.valid)) }
func (c *fixed[T]) truncate()             { c.base.truncate(); c.values = c.values[:0] }
func (c *fixed[T]) data() arrow.ArrayData { return c.arrayData(nil, c.bytes(c.values)) }

// int64Column is a column of INT64 or ENUM. It decodes the stored form directly, without making a Value.
type int64Column struct{ fixed[int64] }

func (c *int64Column) AppendRow(payload []byte) error {
	if i, n := binary.Varint(payload); n > 0 && n == len(payload) {
		c.append(i)
		return nil
	}
	return c.fixed.AppendRow(payload) // finds the payload malformed, too, and returns the error
}

// AppendKey implements value.Column.
func (c *int64Column) AppendKey(key []byte, desc bool) error {
	if i, ok := value.KeyInt64(key, desc); ok {
		c.append(i)
		return nil
	}
	return c.fixed.AppendKey(key, desc)
}

// boolColumn is a column of BOOL, with one bit for each value.
type boolColumn struct {
	base
	bits []byte
}

func (c *boolColumn) append(bit byte) {
	if c.n>>3 == len(c.bits) {
		c.bits = append(c.bits, 0)
	}
	c.bits[c.n>>3] |= bit << (c.n & 7)
}

func (c *boolColumn) AppendNull() {
	c.append(0)
	c.null()
}

func (c *boolColumn) AppendValue(v value.Value) error {
	switch {
	case v.IsNull():
		c.AppendNull()
		return nil
	case v.AsBool():
		c.append(1)
	default:
		c.append(0)
	}
	c.set()
	return nil
}

func (c *boolColumn) AppendRow(payload []byte) error {
	v, err := value.DecodeRow(payload, c.typ)
	if err != nil {
		return err
	}
	return c.AppendValue(v)
}

func (c *boolColumn) AppendKey(key []byte, desc bool) error {
	v, _, err := value.DecodeKey(key, c.typ, desc)
	if err != nil {
		return err
	}
	return c.AppendValue(v)
}

func (c *boolColumn) appendArray(a arrow.ArrayData, from, to int) error {
	for i := from; i < to; i++ {
		at := a.Offset() + i
		c.append(a.Buffers()[1].Bytes()[at>>3] >> (at & 7) & 1)
		c.validity(a, i, i+1)
	}
	return nil
}

func (c *boolColumn) used() int64           { return int64(len(c.bits) + len(c.valid)) }
func (c *boolColumn) size() int64           { return int64(cap(c.bits) + cap(c.valid)) }
func (c *boolColumn) truncate()             { c.base.truncate(); c.bits = c.bits[:0] }
func (c *boolColumn) data() arrow.ArrayData { return c.arrayData(nil, c.bits) }

// uuidColumn is a column of UUID.
type uuidColumn struct {
	base
	bytes []byte
}

func (c *uuidColumn) AppendNull() {
	c.null()
	c.bytes = append(c.bytes, make([]byte, uuidBytes)...)
}

func (c *uuidColumn) AppendValue(v value.Value) error {
	if v.IsNull() {
		c.AppendNull()
		return nil
	}
	u := v.AsUUID()
	c.set()
	c.bytes = append(c.bytes, u[:]...)
	return nil
}

func (c *uuidColumn) AppendRow(payload []byte) error {
	if len(payload) != uuidBytes {
		_, err := value.DecodeRow(payload, c.typ)
		return err
	}
	c.set()
	c.bytes = append(c.bytes, payload...)
	return nil
}

func (c *uuidColumn) AppendKey(key []byte, desc bool) error {
	v, _, err := value.DecodeKey(key, c.typ, desc)
	if err != nil {
		return err
	}
	return c.AppendValue(v)
}

func (c *uuidColumn) appendArray(a arrow.ArrayData, from, to int) error {
	c.validity(a, from, to)
	if from < to {
		c.bytes = append(c.bytes, a.Buffers()[1].Bytes()[(a.Offset()+from)*uuidBytes:(a.Offset()+to)*uuidBytes]...)
	}
	return nil
}

func (c *uuidColumn) used() int64           { return int64(len(c.bytes) + len(c.valid)) }
func (c *uuidColumn) size() int64           { return int64(cap(c.bytes) + cap(c.valid)) }
func (c *uuidColumn) truncate()             { c.base.truncate(); c.bytes = c.bytes[:0] }
func (c *uuidColumn) data() arrow.ArrayData { return c.arrayData(nil, c.bytes) }
