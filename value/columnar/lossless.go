package columnar

import (
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/crowfoot-db/crowfoot/value"
)

// losslessColumn is a column of a type whose Arrow type cannot hold all values: TIMESTAMP, INTERVAL, and types that
// contain these. When a value is appended that the Arrow type cannot hold, all values of the column are converted to
// stored payloads, the form that value.AppendRow makes.
type losslessColumn struct {
	natural column
	stored  textColumn
	typ     *value.Type
	outside bool // true if the field stored holds the values, and not the field natural
	payload []byte
}

// lossless returns a column that can hold all values of type t: c itself, or a losslessColumn around c.
func lossless(c column, t *value.Type) column {
	if !canExceed(t) {
		return c
	}
	return &losslessColumn{natural: c, typ: t,
		stored: textColumn{base: base{typ: value.BytesType, arrow: arrow.BinaryTypes.Binary}, offsets: make([]int32, 1)}}
}

// canExceed reports whether a type has values that its Arrow type cannot hold.
func canExceed(t *value.Type) bool {
	switch t.Kind {
	case value.Timestamp, value.Interval:
		return true
	case value.Array:
		return canExceed(t.Elem)
	case value.Struct:
		for _, f := range t.Fields {
			if canExceed(f.Type) {
				return true
			}
		}
	}
	return false
}

// IsStored reports whether an array of values of type t holds stored payloads (see Options.Lossless).
func IsStored(a arrow.Array, t *value.Type) bool {
	return a.DataType().ID() == arrow.BINARY && t.Kind != value.Bytes && t.Kind != value.Proto
}

// store converts the column to stored payloads.
func (c *losslessColumn) store() error {
	n := c.natural.len()
	a := array.MakeFromData(c.natural.data())
	for i := range n {
		v, err := StoredValueAt(a, i, c.typ)
		if err != nil {
			return err
		}
		if err := c.appendStored(v); err != nil {
			return err
		}
	}
	c.outside = true
	return nil
}

func (c *losslessColumn) appendStored(v value.Value) error {
	if v.IsNull() {
		c.stored.AppendNull()
		return nil
	}
	if v.IsPending() {
		return errPending
	}
	c.payload = value.AppendRow(c.payload[:0], v, c.typ)
	return c.stored.append(c.payload)
}

// exceeds converts the column to stored payloads if err is a *RangeError, and reports whether it did so. It returns any
// other err unchanged.
func (c *losslessColumn) exceeds(err error) (bool, error) {
	if r := (*RangeError)(nil); !errors.As(err, &r) {
		return false, err
	}
	return true, c.store()
}

// AppendNull implements value.Column.
func (c *losslessColumn) AppendNull() {
	if c.outside {
		c.stored.AppendNull()
		return
	}
	c.natural.AppendNull()
}

// AppendRow implements value.Column.
func (c *losslessColumn) AppendRow(payload []byte) error {
	if !c.outside {
		if more, err := c.exceeds(c.natural.AppendRow(payload)); !more || err != nil {
			return err
		}
	}
	return c.stored.append(payload)
}

// AppendKey implements value.Column.
func (c *losslessColumn) AppendKey(key []byte, desc bool) error {
	if !c.outside {
		if more, err := c.exceeds(c.natural.AppendKey(key, desc)); !more || err != nil {
			return err
		}
	}
	v, _, err := value.DecodeKey(key, c.typ, desc)
	if err != nil {
		return err
	}
	return c.appendStored(v)
}

// AppendValue implements value.Column.
func (c *losslessColumn) AppendValue(v value.Value) error {
	if !c.outside {
		if more, err := c.exceeds(c.natural.AppendValue(v)); !more || err != nil {
			return err
		}
	}
	return c.appendStored(v)
}

func (c *losslessColumn) appendArray(a arrow.ArrayData, from, to int) error {
	isStored := a.DataType().ID() == arrow.BINARY
	switch {
	case isStored && !c.outside:
		if err := c.store(); err != nil {
			return err
		}
		fallthrough
	case isStored:
		return c.stored.appendArray(a, from, to)
	case !c.outside:
		return c.natural.appendArray(a, from, to)
	}
	values := array.MakeFromData(a)
	for i := from; i < to; i++ {
		v, err := StoredValueAt(values, i, c.typ)
		if err == nil {
			err = c.appendStored(v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *losslessColumn) held() column {
	if c.outside {
		return &c.stored
	}
	return c.natural
}

func (c *losslessColumn) len() int              { return c.held().len() }
func (c *losslessColumn) used() int64           { return c.held().used() }
func (c *losslessColumn) size() int64           { return c.natural.size() + c.stored.size() }
func (c *losslessColumn) data() arrow.ArrayData { return c.held().data() }
func (c *losslessColumn) truncate() {
	c.natural.truncate()
	c.stored.truncate()
	c.outside = false
}

// StoredValueAt returns value i of an array that a Batch has made from values of type t.
func StoredValueAt(a arrow.Array, i int, t *value.Type) (value.Value, error) {
	if a.IsNull(i) {
		return value.Null(t.Kind), nil
	}
	switch a := a.(type) {
	case *array.Int64:
		if t.Kind == value.Enum {
			return value.OfEnum(int32(a.Value(i))), nil
		}
		return value.OfInt64(a.Value(i)), nil
	case *array.Float64:
		return value.OfFloat64(a.Value(i)), nil
	case *array.Float32:
		return value.OfFloat32(a.Value(i)), nil
	case *array.Boolean:
		return value.OfBool(a.Value(i)), nil
	case *array.Date32:
		return value.OfDate(int32(a.Value(i))), nil
	case *array.Timestamp:
		return timestampAt(a, i, t)
	case *array.Decimal128:
		return decimalOf(a.Value(i))
	case *array.FixedSizeBinary:
		return value.OfUUID([uuidBytes]byte(a.Value(i))), nil
	case *array.String:
		text := string([]byte(a.Value(i))) // a copy, because the array's memory is reused
		if t.Kind == value.JSON {
			return value.OfJSON(text), nil
		}
		return value.OfString(text), nil
	case *array.Binary:
		switch t.Kind {
		case value.Bytes:
			return value.OfBytes(append([]byte(nil), a.Value(i)...)), nil
		case value.Proto:
			return value.OfProto(append([]byte(nil), a.Value(i)...)), nil
		}
		return value.DecodeRow(a.Value(i), t)
	case *array.MonthDayNanoInterval:
		return intervalAt(a, i, t)
	case *array.List:
		return storedArrayAt(a, i, t)
	case *array.Struct:
		return storedStructAt(a, i, t)
	}
	return value.Value{}, mismatch(a, t)
}

func decimalOf(n decimal128.Num) (value.Value, error) {
	d := value.DecimalFromInt128(n.HighBits(), n.LowBits())
	if !d.InRange() {
		return value.Value{}, fmt.Errorf("out of the range of NUMERIC")
	}
	return value.OfNumeric(d), nil
}

func storedArrayAt(a *array.List, i int, t *value.Type) (value.Value, error) {
	from, to := a.ValueOffsets(i)
	elems := make([]value.Value, 0, to-from)
	for n := from; n < to; n++ {
		v, err := StoredValueAt(a.ListValues(), int(n), t.Elem)
		if err != nil {
			return v, err
		}
		elems = append(elems, v)
	}
	return value.OfArray(elems), nil
}

func storedStructAt(a *array.Struct, i int, t *value.Type) (value.Value, error) {
	fields := make([]value.Value, len(t.Fields))
	for n, f := range t.Fields {
		v, err := StoredValueAt(a.Field(n), i, f.Type)
		if err != nil {
			return v, err
		}
		fields[n] = v
	}
	return value.OfStruct(fields), nil
}
