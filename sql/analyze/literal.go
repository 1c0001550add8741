package analyze

import (
	"fmt"
	"strings"
	"time"

	"github.com/goccy/go-googlesql"

	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// valueOf translates a value of the library to one of type t.
func (w *walker) valueOf(v *googlesql.Value, t *value.Type) value.Value {
	w.lib.engine.rest()
	if get(v.IsNull()) {
		return value.Null(t.Kind)
	}
	switch t.Kind {
	case value.Bool:
		return value.OfBool(get(v.BoolValue()))
	case value.Int64:
		return value.OfInt64(get(v.Int64Value()))
	case value.Float64:
		return value.OfFloat64(get(v.DoubleValue()))
	case value.Float32:
		return value.OfFloat32(get(v.FloatValue()))
	case value.Date:
		return value.OfDate(get(v.DateValue()))
	case value.String:
		if get(v.TypeKind()) == googlesql.TypeKindTypeEnum {
			return value.OfString(get(v.EnumDisplayName()))
		}
		return value.OfString(get(v.StringValue()))
	case value.Bytes:
		return value.OfBytes([]byte(get(v.BytesValue())))
	case value.Enum:
		return value.OfEnum(get(v.EnumValue()))
	case value.Array:
		elems := listed(w.lib.engine, v.Elements, v.NumElements, v.Element)
		list := make([]value.Value, len(elems))
		for i, e := range elems {
			list[i] = w.valueOf(e, t.Elem)
		}
		return value.OfArray(list)
	case value.Struct:
		fields := get(v.Fields())
		list := make([]value.Value, len(fields))
		for i, f := range fields {
			list[i] = w.valueOf(f, t.Fields[i].Type)
		}
		return value.OfStruct(list)
	}
	return extendedValueOf(v, t)
}

// extendedValueOf does the work of valueOf for TIMESTAMP, NUMERIC, JSON, UUID and INTERVAL.
func extendedValueOf(v *googlesql.Value, t *value.Type) value.Value {
	switch t.Kind {
	case value.Timestamp:
		return timestampOf(v)
	case value.Numeric:
		return value.OfNumeric(get(value.ParseDecimal(get(get(v.NumericValue()).ToString()))))
	case value.JSON:
		normalised, err := value.ParseJSON(get(v.JsonString()))
		if err != nil {
			refuse(usererror.InvalidSQL("Invalid JSON literal: " + strings.TrimPrefix(err.Error(), "invalid JSON value: ")))
		}
		return value.OfJSON(normalised)
	case value.UUID:
		return value.OfUUID(get(value.ParseUUID(get(get(v.UuidValue()).ToString()))))
	case value.Interval:
		return intervalOf(get(v.IntervalValue()))
	}
	panic(failure{fmt.Errorf("literal of type %v", t)})
}

// timestampOf reads a timestamp from its printed form. The library's numeric accessors are no substitute: they give
// only microseconds, or give nanoseconds for only a part of the range of TIMESTAMP.
func timestampOf(v *googlesql.Value) value.Value {
	const layout = "2006-01-02 15:04:05.999999999-07"
	return value.OfTime(get(time.Parse(layout, get(v.DebugString(false)))))
}

const (
	microsPerSecond = 1_000_000
	nanosPerMicro   = 1_000
)

func intervalOf(i *googlesql.IntervalValue) value.Value {
	micros := get(i.GetMicros())
	seconds, rest := micros/microsPerSecond, micros%microsPerSecond
	if rest < 0 {
		seconds, rest = seconds-1, rest+microsPerSecond
	}
	return value.OfInterval(value.IntervalValue{
		Months:  int32(get(i.GetMonths())),
		Days:    int32(get(i.GetDays())),
		Seconds: seconds,
		Nanos:   int32(rest*nanosPerMicro + get(i.GetNanoFractions())),
	})
}
