package columnar

import (
	"fmt"
	"math/big"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/crowfoot-db/crowfoot/value"
)

// ValueAt returns value i of an array as a value of type t. It never truncates: it returns an error if the value does
// not fit t, or if values of the array's type cannot be converted to t. It parses texts as literals of t.
func ValueAt(a arrow.Array, i int, t *value.Type) (value.Value, error) {
	if a.IsNull(i) || a.DataType().ID() == arrow.NULL { // an array of Arrow's null type has no bitmap
		return value.Null(t.Kind), nil
	}
	switch a := a.(type) {
	case *array.Dictionary:
		return ValueAt(a.Dictionary(), a.GetValueIndex(i), t)
	case array.ExtensionArray:
		return ValueAt(a.Storage(), i, t)
	case *array.Struct:
		return structAt(a, i, t)
	case array.ListLike:
		return arrayAt(a, i, t)
	case textArray:
		return textValue(a.Value(i), t)
	}
	v, err := scalarAt(a, i, t)
	if err != nil {
		return v, fmt.Errorf("%w: %s", err, shown(a, i))
	}
	return v, nil
}

// shownBytes is the largest number of bytes of a value that an error message shows.
const shownBytes = 100

// shown formats value i of an array for an error message.
func shown(a arrow.Array, i int) string {
	if b, ok := bytesAt(a, i); ok && len(b) > shownBytes {
		return fmt.Sprintf("%d bytes", len(b))
	}
	return a.ValueStr(i)
}

// A textArray is an array of one of Arrow's text types.
type textArray interface {
	arrow.Array
	Value(int) string
}

func textValue(s string, t *value.Type) (value.Value, error) {
	switch t.Kind {
	case value.Bool, value.Int64, value.Enum, value.Float64, value.Float32, value.Bytes, value.Proto, value.Array, value.Struct:
		return value.Value{}, fmt.Errorf("a text is no value of %s", t)
	}
	return value.FromText(s, t)
}

func mismatch(a arrow.Array, t *value.Type) error {
	return fmt.Errorf("a value of Arrow's %s is none of %s", a.DataType(), t)
}

func scalarAt(a arrow.Array, i int, t *value.Type) (value.Value, error) {
	switch t.Kind {
	case value.Bool:
		if b, ok := a.(*array.Boolean); ok {
			return value.OfBool(b.Value(i)), nil
		}
	case value.Int64:
		if n, ok := wholeAt(a, i); ok && n.IsInt64() {
			return value.OfInt64(n.Int64()), nil
		}
	case value.Enum:
		if n, ok := wholeAt(a, i); ok && n.IsInt64() && n.Int64() == int64(int32(n.Int64())) {
			return value.OfEnum(int32(n.Int64())), nil
		}
	case value.Float64, value.Float32:
		return floatAt(a, i, t)
	case value.Numeric:
		return numericAt(a, i, t)
	case value.Bytes:
		if b, ok := bytesAt(a, i); ok {
			return value.OfBytes(append([]byte(nil), b...)), nil
		}
	case value.Proto:
		if b, ok := bytesAt(a, i); ok {
			return value.OfProto(append([]byte(nil), b...)), nil
		}
	case value.UUID:
		if b, ok := bytesAt(a, i); ok && len(b) == uuidBytes {
			return value.OfUUID([uuidBytes]byte(b)), nil
		}
	case value.Date:
		return dateAt(a, i, t)
	case value.Timestamp:
		return timestampAt(a, i, t)
	case value.Interval:
		return intervalAt(a, i, t)
	}
	return value.Value{}, mismatch(a, t)
}

// wholeAt returns a whole number from an array of any integer width.
func wholeAt(a arrow.Array, i int) (*big.Int, bool) {
	switch a := a.(type) {
	case *array.Int64:
		return big.NewInt(a.Value(i)), true
	case *array.Int32:
		return big.NewInt(int64(a.Value(i))), true
	case *array.Int16:
		return big.NewInt(int64(a.Value(i))), true
	case *array.Int8:
		return big.NewInt(int64(a.Value(i))), true
	case *array.Uint64:
		return new(big.Int).SetUint64(a.Value(i)), true
	case *array.Uint32:
		return big.NewInt(int64(a.Value(i))), true
	case *array.Uint16:
		return big.NewInt(int64(a.Value(i))), true
	case *array.Uint8:
		return big.NewInt(int64(a.Value(i))), true
	}
	return nil, false
}

func floatAt(a arrow.Array, i int, t *value.Type) (value.Value, error) {
	f := 0.0
	switch a := a.(type) {
	case *array.Float64:
		f = a.Value(i)
	case *array.Float32:
		f = float64(a.Value(i))
	case *array.Float16:
		f = float64(a.Value(i).Float32())
	default:
		n, ok := wholeAt(a, i)
		if !ok {
			return value.Value{}, mismatch(a, t)
		}
		f, _ = new(big.Float).SetInt(n).Float64()
	}
	if t.Kind == value.Float64 {
		return value.OfFloat64(f), nil
	}
	if narrow := float64(float32(f)); f-f == 0 && narrow-narrow != 0 {
		return value.Value{}, fmt.Errorf("out of the range of FLOAT32")
	}
	return value.OfFloat32(float32(f)), nil
}

// numericScale is the number of digits of a NUMERIC after the point.
const numericScale = 9

func numericAt(a arrow.Array, i int, t *value.Type) (value.Value, error) {
	var n *big.Int
	scale := 0
	switch a := a.(type) {
	case *array.Decimal128:
		n, scale = a.Value(i).BigInt(), int(a.DataType().(*arrow.Decimal128Type).Scale)
	case *array.Decimal256:
		n, scale = a.Value(i).BigInt(), int(a.DataType().(*arrow.Decimal256Type).Scale)
	case *array.Decimal64:
		n, scale = decimal128.FromI64(int64(a.Value(i))).BigInt(), int(a.DataType().(*arrow.Decimal64Type).Scale)
	case *array.Decimal32:
		n, scale = decimal128.FromI64(int64(a.Value(i))).BigInt(), int(a.DataType().(*arrow.Decimal32Type).Scale)
	default:
		var ok bool
		if n, ok = wholeAt(a, i); !ok {
			return value.Value{}, mismatch(a, t)
		}
	}
	unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(numericScale-scale, scale-numericScale))), nil)
	if scale <= numericScale {
		n = new(big.Int).Mul(n, unit)
	} else {
		rest := new(big.Int)
		if n, rest = new(big.Int).QuoRem(n, unit, rest); rest.Sign() != 0 {
			return value.Value{}, fmt.Errorf("NUMERIC has %d digits after the point", numericScale)
		}
	}
	d, ok := value.DecimalFromBig(n)
	if !ok {
		return value.Value{}, fmt.Errorf("out of the range of NUMERIC")
	}
	return value.OfNumeric(d), nil
}

func bytesAt(a arrow.Array, i int) ([]byte, bool) {
	b, ok := a.(interface{ Value(int) []byte })
	if !ok {
		return nil, false
	}
	return b.Value(i), true
}

func dateAt(a arrow.Array, i int, t *value.Type) (value.Value, error) {
	days := int64(0)
	switch a := a.(type) {
	case *array.Date32:
		days = int64(a.Value(i))
	case *array.Date64:
		days = a.Value(i).ToTime().Unix() / secondsPerDay
	default:
		return value.Value{}, mismatch(a, t)
	}
	if !value.ValidDate(days) {
		return value.Value{}, fmt.Errorf("out of the range of DATE")
	}
	return value.OfDate(int32(days)), nil
}

const secondsPerDay = 24 * 60 * 60

func timestampAt(a arrow.Array, i int, t *value.Type) (value.Value, error) {
	stamps, ok := a.(*array.Timestamp)
	if !ok {
		return value.Value{}, mismatch(a, t)
	}
	at := stamps.Value(i).ToTime(a.DataType().(*arrow.TimestampType).Unit)
	if !value.ValidTimestamp(at.Unix(), int64(at.Nanosecond())) {
		return value.Value{}, fmt.Errorf("out of the range of TIMESTAMP")
	}
	return value.OfTimestamp(at.Unix(), int32(at.Nanosecond())), nil
}

func intervalAt(a arrow.Array, i int, t *value.Type) (value.Value, error) {
	var months, days, nanos int64
	switch a := a.(type) {
	case *array.MonthDayNanoInterval:
		v := a.Value(i)
		months, days, nanos = int64(v.Months), int64(v.Days), v.Nanoseconds
	case *array.MonthInterval:
		months = int64(a.Value(i))
	case *array.DayTimeInterval:
		v := a.Value(i)
		days, nanos = int64(v.Days), int64(v.Milliseconds)*int64(time.Millisecond)
	case *array.Duration:
		unit := a.DataType().(*arrow.DurationType).Unit.Multiplier()
		seconds := int64(a.Value(i)) / int64(time.Second/unit)
		nanos = int64(a.Value(i)) % int64(time.Second/unit) * int64(unit)
		return ofInterval(0, 0, seconds, nanos)
	default:
		return value.Value{}, mismatch(a, t)
	}
	return ofInterval(months, days, 0, nanos)
}

func ofInterval(months, days, seconds, nanos int64) (value.Value, error) {
	v, ok := value.NewInterval(months, days, seconds, nanos)
	if !ok {
		return value.Value{}, fmt.Errorf("out of the range of INTERVAL")
	}
	return value.OfInterval(v), nil
}

func arrayAt(a array.ListLike, i int, t *value.Type) (value.Value, error) {
	if t.Kind != value.Array {
		return value.Value{}, mismatch(a, t)
	}
	from, to := a.ValueOffsets(i)
	elems := make([]value.Value, 0, to-from)
	for n := from; n < to; n++ {
		v, err := ValueAt(a.ListValues(), int(n), t.Elem)
		if err != nil {
			return v, err
		}
		elems = append(elems, v)
	}
	return value.OfArray(elems), nil
}

func structAt(a *array.Struct, i int, t *value.Type) (value.Value, error) {
	if t.Kind != value.Struct || a.NumField() != len(t.Fields) {
		return value.Value{}, mismatch(a, t)
	}
	fields := make([]value.Value, len(t.Fields))
	for n, f := range t.Fields {
		v, err := ValueAt(a.Field(n), i, f.Type)
		if err != nil {
			return v, err
		}
		fields[n] = v
	}
	return value.OfStruct(fields), nil
}
