package conversion

import (
	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/sql/fn/operators"
	"github.com/crowfoot-db/crowfoot/sql/fn/protobuf"
	"github.com/crowfoot-db/crowfoot/sql/fn/sqltext"
	"github.com/crowfoot-db/crowfoot/sql/fn/timestamps"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// Cast returns the function that converts values from one type to another. Its arguments are the value, then for CAST
// with FORMAT the format, and last the time zone if one is given. A safe cast returns NULL for a value that cannot be
// converted. The result's Leakproof is valid only for a cast without FORMAT.
func Cast(from, to *value.Type, safe bool) (*fn.Scalar, error) {
	convert := conversion(from, to)
	if convert == nil {
		return nil, usererror.NoCast(from.String(), to.String())
	}
	withFormat := formattedConversions[[2]value.Kind{from.Kind, to.Kind}]
	s := fn.NewScalar(func(ctx *fn.Context, a []value.Value) (value.Value, error) {
		switch {
		case len(a) == 1:
			return convert(ctx, a)
		case withFormat == nil:
			return fn.BadArgument("FORMAT is not supported for a cast from " + from.String() + " to " + to.String())
		}
		return withFormat(ctx, a)
	}, value.Null(to.Kind), safe)
	s.Stable = zoned(from) != zoned(to) || withFormat != nil && calendar(from, to)
	s.Leakproof = safe && !fn.IsLarge(to) || from.Kind == to.Kind && !operators.IsComposite(to) && from.Name == to.Name || lossless[[2]value.Kind{from.Kind, to.Kind}] && from.Name == to.Name
	return s, nil
}

// lossless holds the conversions that never fail.
var lossless = map[[2]value.Kind]bool{
	{value.Bool, value.Int64}: true, {value.Bool, value.String}: true,
	{value.Int64, value.Bool}: true, {value.Int64, value.Float64}: true, {value.Int64, value.Float32}: true, {value.Int64, value.Numeric}: true, {value.Int64, value.String}: true,
	{value.Float32, value.Float64}: true, {value.Float32, value.String}: true, {value.Float64, value.String}: true,
	{value.Numeric, value.Float64}: true, {value.Numeric, value.String}: true,
	{value.Date, value.String}: true, {value.Timestamp, value.String}: true, {value.Interval, value.String}: true,
	{value.UUID, value.String}: true, {value.UUID, value.Bytes}: true, {value.String, value.Bytes}: true,
}

// calendar reports whether a conversion with a format may depend on the Context: on its time zone or its current
// month. Parsing takes the year and the month from the current month if the format does not name them.
func calendar(from, to *value.Type) bool {
	return from.Kind == value.String && to.Kind == value.Date || zoned(from) || zoned(to)
}

// zoned reports whether values of a type contain timestamps, whose text and date depend on the time zone.
func zoned(t *value.Type) bool {
	if t.Kind == value.Array {
		return zoned(t.Elem)
	}
	for _, f := range t.Fields {
		if zoned(f.Type) {
			return true
		}
	}
	return t.Kind == value.Timestamp
}

// conversions holds the conversions between scalar types. They are never called with NULL.
var conversions = map[[2]value.Kind]fn.Eval{
	{value.Bool, value.Int64}:  func(_ *fn.Context, a []value.Value) (value.Value, error) { return fn.BoolToInt64(a[0]), nil },
	{value.Bool, value.String}: sqltext.ToText,

	{value.Int64, value.Bool}: func(_ *fn.Context, a []value.Value) (value.Value, error) { return fn.OfBool(a[0].AsInt64() != 0) },
	{value.Int64, value.Float64}: func(_ *fn.Context, a []value.Value) (value.Value, error) {
		return fn.OfFloat64(float64(a[0].AsInt64()))
	},
	{value.Int64, value.Float32}: func(_ *fn.Context, a []value.Value) (value.Value, error) {
		return value.OfFloat32(float32(a[0].AsInt64())), nil
	},
	{value.Int64, value.Numeric}: func(_ *fn.Context, a []value.Value) (value.Value, error) {
		return value.OfNumeric(value.DecimalFromInt64(a[0].AsInt64())), nil
	},
	{value.Int64, value.String}: sqltext.ToText,

	{value.Float64, value.Int64}:   floatToInt64,
	{value.Float64, value.Float32}: float64ToFloat32,
	{value.Float64, value.Numeric}: floatToNumeric,
	{value.Float64, value.String}:  sqltext.ToText,
	{value.Float32, value.Int64}:   floatToInt64,
	{value.Float32, value.Float64}: func(_ *fn.Context, a []value.Value) (value.Value, error) { return fn.OfFloat64(a[0].AsFloat64()) },
	{value.Float32, value.Numeric}: floatToNumeric,
	{value.Float32, value.String}:  sqltext.ToText,

	{value.Numeric, value.Int64}: numericToInt64,
	{value.Numeric, value.Float64}: func(_ *fn.Context, a []value.Value) (value.Value, error) {
		return fn.OfFloat64(a[0].AsNumeric().Float64())
	},
	{value.Numeric, value.Float32}: numericToFloat32,
	{value.Numeric, value.String}:  sqltext.ToText,

	{value.Date, value.Timestamp}:   timestamps.FromDate,
	{value.Date, value.String}:      sqltext.ToText,
	{value.Timestamp, value.Date}:   timestamps.ToDate,
	{value.Timestamp, value.String}: sqltext.ToText,
	{value.Interval, value.String}:  sqltext.ToText,
	{value.UUID, value.String}:      sqltext.ToText,
	{value.UUID, value.Bytes}:       uuidToBytes,
	{value.Bytes, value.UUID}:       bytesToUUID,
	{value.Bytes, value.String}:     bytesToString,

	{value.String, value.Bool}:      parseBool,
	{value.String, value.Int64}:     parseInt64,
	{value.String, value.Float64}:   parseFloat64,
	{value.String, value.Float32}:   parseFloat32,
	{value.String, value.Numeric}:   parseNumeric,
	{value.String, value.Bytes}:     stringToBytes,
	{value.String, value.Date}:      timestamps.ParseDate,
	{value.String, value.Timestamp}: timestamps.ParseTimestamp,
	{value.String, value.Interval}:  timestamps.ParseInterval,
	{value.String, value.UUID}:      parseUUID,
}

// conversion returns the conversion between two types; nil if there is none.
func conversion(from, to *value.Type) fn.Eval {
	switch {
	case from.Equal(to) || from.Kind == to.Kind && !operators.IsComposite(from) && from.Name == "":
		return fn.FirstArgument
	case from.Kind == value.Array && to.Kind == value.Array:
		return convertList(func(int) fn.Eval { return conversion(from.Elem, to.Elem) }, 1, to)
	case from.Kind == value.Struct && to.Kind == value.Struct && len(from.Fields) == len(to.Fields):
		return convertList(func(i int) fn.Eval { return conversion(from.Fields[i].Type, to.Fields[i].Type) }, len(from.Fields), to)
	}
	if from.Name != "" || to.Name != "" {
		return protobuf.Conversion(from, to)
	}
	return conversions[[2]value.Kind{from.Kind, to.Kind}]
}

// convertList returns the conversion of an array or a struct to another type, which is the parameter to. For a struct,
// n is the number of fields, and of(i) returns the conversion of field i. For an array, n is 1, and of(0) returns the
// conversion of each element.
func convertList(of func(int) fn.Eval, n int, to *value.Type) fn.Eval {
	evals := make([]fn.Eval, n)
	kinds := make([]value.Kind, n)
	for i := range evals {
		if evals[i] = of(i); evals[i] == nil {
			return nil
		}
		if kinds[i] = to.Kind; to.Kind == value.Array {
			kinds[i] = to.Elem.Kind
		} else {
			kinds[i] = to.Fields[i].Type.Kind
		}
	}
	return func(ctx *fn.Context, a []value.Value) (value.Value, error) {
		list := a[0].AsList()
		converted := make([]value.Value, len(list))
		for i, e := range list {
			which := min(i, n-1)
			if e.IsNull() {
				converted[i] = value.Null(kinds[which])
				continue
			}
			v, err := evals[which](ctx, []value.Value{e})
			if err != nil {
				return v, err
			}
			converted[i] = v
		}
		if to.Kind == value.Array {
			return value.OfArray(converted), nil
		}
		return value.OfStruct(converted), nil
	}
}

// formattedConversions holds the conversions of CAST with FORMAT.
var formattedConversions = map[[2]value.Kind]fn.Eval{
	{value.Date, value.String}:      timestamps.FormatDateElements,
	{value.Timestamp, value.String}: timestamps.FormatTimestampElements,
	{value.Bytes, value.String}:     encodeBytes,
	{value.String, value.Bytes}:     decodeBytes,
	{value.String, value.Date}:      timestamps.ParseDateElements,
	{value.String, value.Timestamp}: timestamps.ParseTimestampElements,
}
