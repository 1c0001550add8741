package arrowtype

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/google/uuid"
)

// Formatter is a function that appends the text of one value of a column to a slice. The column is the one for which
// NewFormatter made the Formatter, and row is the index of the value in it. The value must not be NULL.
type Formatter func(to []byte, row int) []byte

// NewFormatter returns a Formatter for a column. It also supports columns of Arrow types that this package never makes:
// integers of all sizes, decimals of other scales, timestamps of other units, and dictionaries.
func NewFormatter(column arrow.Array) (Formatter, error) {
	switch c := column.(type) {
	case *array.Boolean:
		return func(to []byte, row int) []byte { return strconv.AppendBool(to, c.Value(row)) }, nil
	case *array.Float64:
		return func(to []byte, row int) []byte { return AppendFloat(to, c.Value(row), 64) }, nil
	case *array.Float32:
		return func(to []byte, row int) []byte { return AppendFloat(to, float64(c.Value(row)), 32) }, nil
	case *array.Float16:
		return func(to []byte, row int) []byte { return AppendFloat(to, float64(c.Value(row).Float32()), 32) }, nil
	case *array.Date32:
		return func(to []byte, row int) []byte { return AppendDate(to, int32(c.Value(row))) }, nil
	case *array.Date64:
		return func(to []byte, row int) []byte {
			return AppendDate(to, int32(floorDiv(int64(c.Value(row)), 86_400_000)))
		}, nil
	case *array.Timestamp:
		return timestampFormatter(c), nil
	case *array.Null:
		return func(to []byte, _ int) []byte { return to }, nil
	case *array.Dictionary:
		values, err := NewFormatter(c.Dictionary())
		return func(to []byte, row int) []byte { return values(to, c.GetValueIndex(row)) }, err
	case array.ExtensionArray:
		return extensionFormatter(c)
	case array.ListLike:
		return listFormatter(c)
	}
	for _, of := range []func(arrow.Array) Formatter{integerFormatter, decimalFormatter, bytesFormatter, intervalFormatter} {
		if f := of(column); f != nil {
			return f, nil
		}
	}
	return nil, fmt.Errorf("there is no Spanner type for the Arrow type %v", column.DataType())
}

func integerFormatter(column arrow.Array) Formatter {
	switch c := column.(type) {
	case *array.Int64:
		return func(to []byte, row int) []byte { return strconv.AppendInt(to, c.Value(row), 10) }
	case *array.Int32:
		return func(to []byte, row int) []byte { return strconv.AppendInt(to, int64(c.Value(row)), 10) }
	case *array.Int16:
		return func(to []byte, row int) []byte { return strconv.AppendInt(to, int64(c.Value(row)), 10) }
	case *array.Int8:
		return func(to []byte, row int) []byte { return strconv.AppendInt(to, int64(c.Value(row)), 10) }
	case *array.Uint64:
		return func(to []byte, row int) []byte { return strconv.AppendUint(to, c.Value(row), 10) }
	case *array.Uint32:
		return func(to []byte, row int) []byte { return strconv.AppendUint(to, uint64(c.Value(row)), 10) }
	case *array.Uint16:
		return func(to []byte, row int) []byte { return strconv.AppendUint(to, uint64(c.Value(row)), 10) }
	case *array.Uint8:
		return func(to []byte, row int) []byte { return strconv.AppendUint(to, uint64(c.Value(row)), 10) }
	}
	return nil
}

func decimalFormatter(column arrow.Array) Formatter {
	t, ok := column.DataType().(arrow.DecimalType)
	if !ok {
		return nil
	}
	scale := int(t.GetScale())
	switch c := column.(type) {
	case *array.Decimal128:
		return func(to []byte, row int) []byte { return AppendDecimal(to, c.Value(row), scale) }
	case *array.Decimal32:
		return func(to []byte, row int) []byte { return AppendDecimal(to, smallDecimal(c.Value(row)), scale) }
	case *array.Decimal64:
		return func(to []byte, row int) []byte { return AppendDecimal(to, smallDecimal(c.Value(row)), scale) }
	case *array.Decimal256:
		return func(to []byte, row int) []byte { return append(to, c.Value(row).ToString(int32(scale))...) }
	}
	return nil
}

func smallDecimal[T decimal.Decimal32 | decimal.Decimal64](d T) decimal128.Num {
	return decimal128.FromI64(int64(d))
}

// Bytes returns a function that returns the raw bytes of STRING, BYTES, JSON and UUID values. It returns nil for
// columns of other types.
func Bytes(column arrow.Array) func(row int) []byte {
	switch c := column.(type) {
	case *array.String:
		return func(row int) []byte { return bytesOf(c.Value(row)) }
	case *array.LargeString:
		return func(row int) []byte { return bytesOf(c.Value(row)) }
	case *array.StringView:
		return func(row int) []byte { return bytesOf(c.Value(row)) }
	case *array.Binary:
		return c.Value
	case *array.LargeBinary:
		return c.Value
	case *array.BinaryView:
		return c.Value
	case *array.FixedSizeBinary:
		return c.Value
	case *array.Dictionary:
		if values := Bytes(c.Dictionary()); values != nil {
			return func(row int) []byte { return values(c.GetValueIndex(row)) }
		}
	case array.ExtensionArray:
		return Bytes(c.Storage())
	}
	return nil
}

func bytesFormatter(column arrow.Array) Formatter {
	value := Bytes(column)
	switch column.DataType().ID() {
	case arrow.STRING, arrow.LARGE_STRING, arrow.STRING_VIEW:
		return func(to []byte, row int) []byte { return append(to, value(row)...) }
	case arrow.BINARY, arrow.LARGE_BINARY, arrow.BINARY_VIEW, arrow.FIXED_SIZE_BINARY:
		return func(to []byte, row int) []byte { return base64.StdEncoding.AppendEncode(to, value(row)) }
	}
	return nil
}

func extensionFormatter(column array.ExtensionArray) (Formatter, error) {
	value := Bytes(column)
	if column.ExtensionType().ExtensionName() != uuidExtension || value == nil {
		return NewFormatter(column.Storage())
	}
	return func(to []byte, row int) []byte {
		text, err := uuid.UUID(value(row)).MarshalText()
		if err != nil {
			panic(err) // MarshalText never fails
		}
		return append(to, text...)
	}, nil
}

func timestampFormatter(c *array.Timestamp) Formatter {
	perSecond := int64(time.Second / c.DataType().(*arrow.TimestampType).Unit.Multiplier())
	return func(to []byte, row int) []byte {
		v := int64(c.Value(row))
		seconds := floorDiv(v, perSecond)
		return AppendTimestamp(to, seconds, int32((v-seconds*perSecond)*(int64(time.Second)/perSecond)))
	}
}

func intervalFormatter(column arrow.Array) Formatter {
	switch c := column.(type) {
	case *array.MonthDayNanoInterval:
		return func(to []byte, row int) []byte { return AppendInterval(to, c.Value(row)) }
	case *array.MonthInterval:
		return func(to []byte, row int) []byte {
			return AppendInterval(to, arrow.MonthDayNanoInterval{Months: int32(c.Value(row))})
		}
	case *array.DayTimeInterval:
		return func(to []byte, row int) []byte {
			v := c.Value(row)
			return AppendInterval(to, arrow.MonthDayNanoInterval{Days: v.Days, Nanoseconds: int64(v.Milliseconds) * int64(time.Millisecond)})
		}
	case *array.Duration:
		perSecond := int64(time.Second / c.DataType().(*arrow.DurationType).Unit.Multiplier())
		return func(to []byte, row int) []byte {
			v := int64(c.Value(row))
			return appendInterval(to, 0, 0, v/perSecond, v%perSecond*(int64(time.Second)/perSecond))
		}
	}
	return nil
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// listFormatter returns a Formatter that writes a list as a JSON array. In the array, numbers and booleans are written
// as such, and all other values as strings.
func listFormatter(column array.ListLike) (Formatter, error) {
	values := column.ListValues()
	text, err := NewFormatter(values)
	if err != nil {
		return nil, err
	}
	bare := IsBare(values.DataType())
	var scratch []byte
	return func(to []byte, row int) []byte {
		from, end := column.ValueOffsets(row)
		to = append(to, '[')
		for i := int(from); i < int(end); i++ {
			if i > int(from) {
				to = append(to, ',')
			}
			switch {
			case values.IsNull(i):
				to = append(to, "null"...)
			case bare:
				to = AppendBare(to, text, i)
			default:
				scratch = text(scratch[:0], i)
				to = AppendJSONString(to, scratch)
			}
		}
		return append(to, ']')
	}, nil
}

// IsBare reports whether values of an Arrow type are numbers or booleans in JSON. NUMERIC is a string there, since
// programs that read JSON convert numbers to FLOAT64.
func IsBare(dt arrow.DataType) bool {
	return arrow.IsInteger(dt.ID()) || arrow.IsFloating(dt.ID()) || dt.ID() == arrow.BOOL
}

// AppendBare appends a number or a boolean as JSON. NaN and infinities become strings.
func AppendBare(to []byte, text Formatter, row int) []byte {
	start := len(to)
	to = text(to, row)
	if c := to[len(to)-1]; c >= '0' && c <= '9' || c == 'e' { // the end of a number, or of true or false
		return to
	}
	value := string(to[start:])
	return AppendJSONString(to[:start], bytesOf(value))
}
