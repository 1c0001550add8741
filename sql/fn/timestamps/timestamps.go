package timestamps

import (
	"math"
	"math/bits"
	"time"

	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// Timestamps has the functions of timestamps.
var Timestamps = []fn.Record{
	{Name: "current_timestamp", Leakproof: true, Doc: "The time at which the statement began.", Property: fn.Stable,
		Overloads: []fn.Overload{fn.On("-> TIMESTAMP", fn.Strict(currentTimestamp))}},
	{Name: "pending_commit_timestamp", Doc: "The time at which the transaction will commit; only to be written.", Property: fn.Volatile,
		Overloads: []fn.Overload{fn.On("-> TIMESTAMP", fn.Strict(pendingCommitTimestamp))}},
	{Name: "timestamp", Doc: "TIMESTAMP(text or date, zone): the instant that the text stands for, or at which the day begins, in a time zone.", Property: fn.Stable,
		Overloads: []fn.Overload{
			fn.On("STRING, ?STRING -> TIMESTAMP", fn.Strict(timestampOfText)),
			fn.On("DATE, ?STRING -> TIMESTAMP", fn.Strict(timestampOfDate)),
			fn.On("TIMESTAMP -> TIMESTAMP", fn.Strict(fn.FirstArgument)),
		}},
	{Name: "timestamp_add", Doc: "TIMESTAMP_ADD(timestamp, INTERVAL n part): later by a length of time.",
		Overloads: []fn.Overload{fn.On("TIMESTAMP, INT64, PART -> TIMESTAMP", fn.Strict(timestampAdd))}},
	{Name: "timestamp_sub", Doc: "TIMESTAMP_SUB(timestamp, INTERVAL n part): earlier by a length of time.",
		Overloads: []fn.Overload{fn.On("TIMESTAMP, INT64, PART -> TIMESTAMP", fn.Strict(timestampSub))}},
	{Name: "timestamp_diff", Doc: "TIMESTAMP_DIFF(a, b, part): whole parts from b to a.",
		Overloads: []fn.Overload{fn.On("TIMESTAMP, TIMESTAMP, PART -> INT64", fn.Strict(timestampDiff))}},
	{Name: "timestamp_trunc", Doc: "TIMESTAMP_TRUNC(timestamp, part, zone): the beginning of the part that the timestamp lies in, in a time zone.", Property: fn.Stable,
		Overloads: []fn.Overload{fn.On("TIMESTAMP, PART, ?STRING -> TIMESTAMP", fn.Strict(timestampTrunc))}},
	{Name: "timestamp_seconds", Doc: "The instant n seconds after 1970.", Overloads: []fn.Overload{fn.On("INT64 -> TIMESTAMP", fromUnix(1))}},
	{Name: "timestamp_millis", Doc: "The instant n milliseconds after 1970.", Overloads: []fn.Overload{fn.On("INT64 -> TIMESTAMP", fromUnix(1_000))}},
	{Name: "timestamp_micros", Doc: "The instant n microseconds after 1970.", Overloads: []fn.Overload{fn.On("INT64 -> TIMESTAMP", fromUnix(1_000_000))}},
	{Name: "unix_seconds", Leakproof: true, Doc: "Whole seconds since 1970, rounded down.", Overloads: []fn.Overload{fn.On("TIMESTAMP -> INT64", toUnix(1))}},
	{Name: "unix_millis", Leakproof: true, Doc: "Whole milliseconds since 1970, rounded down.", Overloads: []fn.Overload{fn.On("TIMESTAMP -> INT64", toUnix(1_000))}},
	{Name: "unix_micros", Leakproof: true, Doc: "Whole microseconds since 1970, rounded down.", Overloads: []fn.Overload{fn.On("TIMESTAMP -> INT64", toUnix(1_000_000))}},
}

func currentTimestamp(ctx *fn.Context, _ []value.Value) (value.Value, error) {
	return value.OfTime(ctx.Now), nil
}

func pendingCommitTimestamp(*fn.Context, []value.Value) (value.Value, error) {
	return value.PendingCommitTimestamp(), nil
}

func timestampOfText(ctx *fn.Context, a []value.Value) (value.Value, error) {
	zone, err := zoneArgument(ctx, a, 1)
	if err != nil {
		return value.Value{}, err
	}
	return timestampIn(a[0].AsString(), zone)
}

func timestampOfDate(ctx *fn.Context, a []value.Value) (value.Value, error) {
	zone, err := zoneArgument(ctx, a, 1)
	if err != nil {
		return value.Value{}, err
	}
	return startOfDay(a[0].AsDate(), zone)
}

func timestampAdd(_ *fn.Context, a []value.Value) (value.Value, error) {
	return moveTimestampBy(a, 1, "Adding", "TIMESTAMP_ADD")
}

func timestampSub(_ *fn.Context, a []value.Value) (value.Value, error) {
	return moveTimestampBy(a, -1, "Subtracting", "TIMESTAMP_SUB")
}

func moveTimestampBy(a []value.Value, sign int64, doing, function string) (value.Value, error) {
	unit, err := unitOf(a[2], function)
	if err != nil {
		return value.Value{}, err
	}
	v, ok := moveTimestamp(a[0], a[1].AsInt64(), sign, unit)
	if !ok {
		return value.Value{}, usererror.DateOverflow(doing, a[1].AsInt64(), a[2].AsString(), "timestamp", timestampText(a[0]))
	}
	return v, nil
}

// moveTimestamp adds sign times n units to a timestamp. unit is in nanoseconds. ok is false if the result is out of
// range.
func moveTimestamp(t value.Value, n, sign, unit int64) (moved value.Value, ok bool) {
	hi, lo := bits.Mul64(fn.Magnitude(n), uint64(unit))
	if hi >= nanosPerSecond {
		return value.Value{}, false
	}
	whole, rest := bits.Div64(hi, lo, nanosPerSecond)
	const most = 2 * value.MaxTimestampSeconds
	if whole > most {
		return value.Value{}, false
	}
	if n < 0 {
		sign = -sign
	}
	seconds, nanos := t.AsTimestamp()
	seconds += sign * int64(whole)
	total := int64(nanos) + sign*int64(rest)
	carry := floorDiv(total, nanosPerSecond)
	seconds, total = seconds+carry, total-carry*nanosPerSecond
	if !value.ValidTimestamp(seconds, total) {
		return value.Value{}, false
	}
	return value.OfTimestamp(seconds, int32(total)), true
}

func timestampText(t value.Value) string {
	seconds, nanos := t.AsTimestamp()
	return string(value.AppendTimestampIn(nil, seconds, nanos, time.UTC))
}

func timestampDiff(_ *fn.Context, a []value.Value) (value.Value, error) {
	unit, err := unitOf(a[2], "TIMESTAMP_DIFF")
	if err != nil {
		return value.Value{}, err
	}
	x, xNanos := a[0].AsTimestamp()
	y, yNanos := a[1].AsTimestamp()
	seconds, nanos := x-y, int64(xNanos)-int64(yNanos)
	if seconds > 0 && nanos < 0 {
		seconds, nanos = seconds-1, nanos+nanosPerSecond
	} else if seconds < 0 && nanos > 0 {
		seconds, nanos = seconds+1, nanos-nanosPerSecond
	}
	if unit >= nanosPerSecond {
		return fn.OfInt64(seconds / (unit / nanosPerSecond))
	}
	perSecond := nanosPerSecond / unit
	if seconds >= math.MaxInt64/perSecond || seconds <= math.MinInt64/perSecond {
		return fn.BadArgument("TIMESTAMP_DIFF at " + a[2].AsString() + " precision between values of " + timestampText(a[0]) +
			" and " + timestampText(a[1]) + " causes overflow")
	}
	return fn.OfInt64(seconds*perSecond + nanos/unit)
}

func timestampTrunc(ctx *fn.Context, a []value.Value) (value.Value, error) {
	zone, err := zoneArgument(ctx, a, 2)
	if err != nil {
		return value.Value{}, err
	}
	seconds, nanos := a[0].AsTimestamp()
	p := parts[a[1].AsString()]
	switch p {
	case nanosecond, microsecond, millisecond, second:
		return value.OfTimestamp(seconds, nanos-nanos%int32(units[p])), nil
	case minute, hour:
		local := seconds + value.ZoneOffset(seconds, zone)
		return checkedTimestamp(seconds-(local-floorDiv(local, units[p]/nanosPerSecond)*(units[p]/nanosPerSecond)), 0)
	}
	local := seconds + value.ZoneOffset(seconds, zone)
	days, ok := p.truncateDays(floorDiv(local, secondsPerDay))
	if !ok {
		return value.Value{}, unsupportedPart(a[1], "TIMESTAMP_TRUNC")
	}
	start := value.InstantOf(days*secondsPerDay, zone)
	if !value.ValidTimestamp(start, 0) {
		return fn.BadArgument("Truncating " + timestampText(a[0]) + " to the nearest " + a[1].AsString() + " causes overflow")
	}
	return value.OfTimestamp(start, 0), nil
}

// fromUnix makes a body that converts a number of time units since 1970 to a timestamp. perSecond is the number of
// these units in a second.
func fromUnix(perSecond int64) fn.Body {
	return fn.Strict(func(_ *fn.Context, a []value.Value) (value.Value, error) {
		n := a[0].AsInt64()
		seconds := floorDiv(n, perSecond)
		nanos := (n - seconds*perSecond) * (nanosPerSecond / perSecond)
		if !value.ValidTimestamp(seconds, nanos) {
			return fn.BadArgument("Input value for timestamp is out of range: " + fn.Int64Text(n))
		}
		return value.OfTimestamp(seconds, int32(nanos)), nil
	})
}

func toUnix(perSecond int64) fn.Body {
	return fn.Strict(func(_ *fn.Context, a []value.Value) (value.Value, error) {
		seconds, nanos := a[0].AsTimestamp()
		return fn.OfInt64(seconds*perSecond + int64(nanos)/(nanosPerSecond/perSecond))
	})
}
