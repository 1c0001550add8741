package timestamps

import (
	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// Operators has the operators on dates, timestamps and intervals. Package operators has the operators on numbers.
var Operators = []fn.Record{
	{Name: "$add", Doc: "x + y of dates, timestamps and intervals.", Overloads: []fn.Overload{
		fn.On("DATE, INT64 -> DATE", fn.Strict(func(_ *fn.Context, a []value.Value) (value.Value, error) {
			return addDays(a[0].AsDate(), a[1].AsInt64())
		})),
		fn.On("INT64, DATE -> DATE", fn.Strict(func(_ *fn.Context, a []value.Value) (value.Value, error) {
			return addDays(a[1].AsDate(), a[0].AsInt64())
		})),
		fn.On("INTERVAL, INTERVAL -> INTERVAL", fn.Strict(addIntervals)),
		fn.On("TIMESTAMP, INTERVAL -> TIMESTAMP", fn.Strict(addTimestampInterval)),
		fn.On("INTERVAL, TIMESTAMP -> TIMESTAMP", fn.Strict(func(ctx *fn.Context, a []value.Value) (value.Value, error) {
			return addTimestampInterval(ctx, []value.Value{a[1], a[0]})
		})),
	}},
	{Name: "$subtract", Doc: "x - y of dates, timestamps and intervals.", Overloads: []fn.Overload{
		fn.On("DATE, INT64 -> DATE", fn.Strict(subtractDays)),
		fn.On("DATE, DATE -> INTERVAL", fn.Strict(subtractDates)),
		fn.On("TIMESTAMP, TIMESTAMP -> INTERVAL", fn.Strict(subtractTimestamps)),
		fn.On("INTERVAL, INTERVAL -> INTERVAL", fn.Strict(subtractIntervals)),
		fn.On("TIMESTAMP, INTERVAL -> TIMESTAMP", fn.Strict(subtractTimestampInterval)),
	}},
	{Name: "$multiply", Doc: "x * y of an interval and a number.", Overloads: []fn.Overload{
		fn.On("INTERVAL, INT64 -> INTERVAL", fn.Strict(multiplyInterval)),
		fn.On("INT64, INTERVAL -> INTERVAL", fn.Strict(multiplyInterval)),
	}},
	{Name: "$divide", Doc: "x / y of an interval and a number.", Overloads: []fn.Overload{fn.On("INTERVAL, INT64 -> INTERVAL", fn.Strict(divideInterval))}},
	{Name: "$unary_minus", Doc: "-x of an interval.", Overloads: []fn.Overload{fn.On("INTERVAL -> INTERVAL", fn.Strict(negateInterval))}},
}

func addDays(days int32, n int64) (value.Value, error) {
	if n > 2*value.MaxDate || n < -2*value.MaxDate || !value.ValidDate(int64(days)+n) {
		return value.Value{}, usererror.DateOverflow("Adding", n, "DAY", "date", dateText(days))
	}
	return value.OfDate(int32(int64(days) + n)), nil
}

func subtractDays(_ *fn.Context, a []value.Value) (value.Value, error) {
	days, n := a[0].AsDate(), a[1].AsInt64()
	if n > 2*value.MaxDate || n < -2*value.MaxDate || !value.ValidDate(int64(days)-n) {
		return value.Value{}, usererror.DateOverflow("Subtracting", n, "DAY", "date", dateText(days))
	}
	return value.OfDate(int32(int64(days) - n)), nil
}

func subtractDates(_ *fn.Context, a []value.Value) (value.Value, error) {
	return ofInterval(0, int64(a[0].AsDate())-int64(a[1].AsDate()), 0, 0)
}

func subtractTimestamps(_ *fn.Context, a []value.Value) (value.Value, error) {
	x, xNanos := a[0].AsTimestamp()
	y, yNanos := a[1].AsTimestamp()
	return ofInterval(0, 0, x-y, int64(xNanos)-int64(yNanos))
}

func addIntervals(_ *fn.Context, a []value.Value) (value.Value, error) {
	sum, ok := a[0].AsInterval().Add(a[1].AsInterval())
	return CheckedInterval(sum, ok)
}

func subtractIntervals(_ *fn.Context, a []value.Value) (value.Value, error) {
	difference, ok := a[0].AsInterval().Add(a[1].AsInterval().Neg())
	return CheckedInterval(difference, ok)
}

// multiplyInterval multiplies an interval by a number. The arguments may come in either order.
func multiplyInterval(_ *fn.Context, a []value.Value) (value.Value, error) {
	i, n := a[0], a[1]
	if i.Kind() != value.Interval {
		i, n = n, i
	}
	product, ok := i.AsInterval().Mul(n.AsInt64())
	return CheckedInterval(product, ok)
}

func divideInterval(_ *fn.Context, a []value.Value) (value.Value, error) {
	if a[1].AsInt64() == 0 {
		return value.Value{}, usererror.BadArgument("Interval division by zero")
	}
	quotient, ok := a[0].AsInterval().Div(a[1].AsInt64())
	return CheckedInterval(quotient, ok)
}

func negateInterval(_ *fn.Context, a []value.Value) (value.Value, error) {
	return value.OfInterval(a[0].AsInterval().Neg()), nil
}

func ofInterval(months, days, seconds, nanos int64) (value.Value, error) {
	i, ok := value.NewInterval(months, days, seconds, nanos)
	return CheckedInterval(i, ok)
}

// CheckedInterval returns i as a value. If ok is false, it returns the error that an interval is out of range.
func CheckedInterval(i value.IntervalValue, ok bool) (value.Value, error) {
	if !ok {
		return value.Value{}, usererror.IntervalRange()
	}
	return value.OfInterval(i), nil
}

func addTimestampInterval(_ *fn.Context, a []value.Value) (value.Value, error) {
	return shiftTimestamp(a[0], a[1].AsInterval())
}

func subtractTimestampInterval(_ *fn.Context, a []value.Value) (value.Value, error) {
	return shiftTimestamp(a[0], a[1].AsInterval().Neg())
}

// shiftTimestamp adds an interval to a timestamp. A day is 24 hours. It refuses an interval with months, because they
// have no fixed length.
func shiftTimestamp(t value.Value, i value.IntervalValue) (value.Value, error) {
	if i.Months != 0 {
		return value.Value{}, usererror.BadArgument("TIMESTAMP +/- INTERVAL is not supported for intervals with non-zero MONTH or YEAR part.")
	}
	seconds, nanos := t.AsTimestamp()
	seconds += int64(i.Days)*secondsPerDay + i.Seconds
	nanos += i.Nanos
	if nanos >= nanosPerSecond {
		seconds, nanos = seconds+1, nanos-nanosPerSecond
	}
	return checkedTimestamp(seconds, int64(nanos))
}

const (
	secondsPerDay  = 24 * 60 * 60
	nanosPerSecond = 1_000_000_000
)

func checkedTimestamp(seconds, nanos int64) (value.Value, error) {
	if !value.ValidTimestamp(seconds, nanos) {
		return value.Value{}, usererror.TimestampRange()
	}
	return value.OfTimestamp(seconds, int32(nanos)), nil
}

func dateText(days int32) string { return string(value.AppendDate(nil, days)) }
