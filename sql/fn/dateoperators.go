package fn

import (
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// dateOperators: operators on dates, timestamps and intervals. Those on numbers are in package operators.
var dateOperators = []record{
	{name: "$add", doc: "x + y of dates, timestamps and intervals.", overloads: []overload{
		on("DATE, INT64 -> DATE", strict(func(_ *Context, a []value.Value) (value.Value, error) { return addDays(a[0].AsDate(), a[1].AsInt64()) })),
		on("INT64, DATE -> DATE", strict(func(_ *Context, a []value.Value) (value.Value, error) { return addDays(a[1].AsDate(), a[0].AsInt64()) })),
		on("INTERVAL, INTERVAL -> INTERVAL", strict(addIntervals)),
		on("TIMESTAMP, INTERVAL -> TIMESTAMP", strict(addTimestampInterval)),
		on("INTERVAL, TIMESTAMP -> TIMESTAMP", strict(func(ctx *Context, a []value.Value) (value.Value, error) {
			return addTimestampInterval(ctx, []value.Value{a[1], a[0]})
		})),
	}},
	{name: "$subtract", doc: "x - y of dates, timestamps and intervals.", overloads: []overload{
		on("DATE, INT64 -> DATE", strict(subtractDays)),
		on("DATE, DATE -> INTERVAL", strict(subtractDates)),
		on("TIMESTAMP, TIMESTAMP -> INTERVAL", strict(subtractTimestamps)),
		on("INTERVAL, INTERVAL -> INTERVAL", strict(subtractIntervals)),
		on("TIMESTAMP, INTERVAL -> TIMESTAMP", strict(subtractTimestampInterval)),
	}},
	{name: "$multiply", doc: "x * y of an interval and a number.", overloads: []overload{
		on("INTERVAL, INT64 -> INTERVAL", strict(multiplyInterval)),
		on("INT64, INTERVAL -> INTERVAL", strict(multiplyInterval)),
	}},
	{name: "$divide", doc: "x / y of an interval and a number.", overloads: []overload{on("INTERVAL, INT64 -> INTERVAL", strict(divideInterval))}},
	{name: "$unary_minus", doc: "-x of an interval.", overloads: []overload{on("INTERVAL -> INTERVAL", strict(negateInterval))}},
}

func addDays(days int32, n int64) (value.Value, error) {
	if n > 2*value.MaxDate || n < -2*value.MaxDate || !value.ValidDate(int64(days)+n) {
		return value.Value{}, usererror.DateOverflow("Adding", n, "DAY", "date", dateText(days))
	}
	return value.OfDate(int32(int64(days) + n)), nil
}

func subtractDays(_ *Context, a []value.Value) (value.Value, error) {
	days, n := a[0].AsDate(), a[1].AsInt64()
	if n > 2*value.MaxDate || n < -2*value.MaxDate || !value.ValidDate(int64(days)-n) {
		return value.Value{}, usererror.DateOverflow("Subtracting", n, "DAY", "date", dateText(days))
	}
	return value.OfDate(int32(int64(days) - n)), nil
}

func subtractDates(_ *Context, a []value.Value) (value.Value, error) {
	return ofInterval(0, int64(a[0].AsDate())-int64(a[1].AsDate()), 0, 0)
}

func subtractTimestamps(_ *Context, a []value.Value) (value.Value, error) {
	x, xNanos := a[0].AsTimestamp()
	y, yNanos := a[1].AsTimestamp()
	return ofInterval(0, 0, x-y, int64(xNanos)-int64(yNanos))
}

func addIntervals(_ *Context, a []value.Value) (value.Value, error) {
	sum, ok := a[0].AsInterval().Add(a[1].AsInterval())
	return checkedInterval(sum, ok)
}

func subtractIntervals(_ *Context, a []value.Value) (value.Value, error) {
	difference, ok := a[0].AsInterval().Add(a[1].AsInterval().Neg())
	return checkedInterval(difference, ok)
}

// multiplyInterval multiplies an interval and a number, in either order.
func multiplyInterval(_ *Context, a []value.Value) (value.Value, error) {
	i, n := a[0], a[1]
	if i.Kind() != value.Interval {
		i, n = n, i
	}
	product, ok := i.AsInterval().Mul(n.AsInt64())
	return checkedInterval(product, ok)
}

func divideInterval(_ *Context, a []value.Value) (value.Value, error) {
	if a[1].AsInt64() == 0 {
		return value.Value{}, usererror.BadArgument("Interval division by zero")
	}
	quotient, ok := a[0].AsInterval().Div(a[1].AsInt64())
	return checkedInterval(quotient, ok)
}

func negateInterval(_ *Context, a []value.Value) (value.Value, error) {
	return value.OfInterval(a[0].AsInterval().Neg()), nil
}

func ofInterval(months, days, seconds, nanos int64) (value.Value, error) {
	i, ok := value.NewInterval(months, days, seconds, nanos)
	return checkedInterval(i, ok)
}

func checkedInterval(i value.IntervalValue, ok bool) (value.Value, error) {
	if !ok {
		return value.Value{}, usererror.IntervalRange()
	}
	return value.OfInterval(i), nil
}

func addTimestampInterval(_ *Context, a []value.Value) (value.Value, error) {
	return shiftTimestamp(a[0], a[1].AsInterval())
}

func subtractTimestampInterval(_ *Context, a []value.Value) (value.Value, error) {
	return shiftTimestamp(a[0], a[1].AsInterval().Neg())
}

// shiftTimestamp adds an interval to a timestamp. A day is 24 hours. It refuses months, which have no fixed length.
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
