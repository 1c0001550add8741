package fn

import (
	"math"
	"math/bits"
	"time"

	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

var timestampFunctions = []record{
	{name: "current_timestamp", leakproof: true, doc: "The time at which the statement began.", property: stable,
		overloads: []overload{on("-> TIMESTAMP", strict(currentTimestamp))}},
	{name: "pending_commit_timestamp", doc: "The time at which the transaction will commit; only to be written.", property: volatile,
		overloads: []overload{on("-> TIMESTAMP", strict(pendingCommitTimestamp))}},
	{name: "timestamp", doc: "TIMESTAMP(text or date, zone): the instant that the text stands for, or at which the day begins, in a time zone.", property: stable,
		overloads: []overload{
			on("STRING, ?STRING -> TIMESTAMP", strict(timestampOfText)),
			on("DATE, ?STRING -> TIMESTAMP", strict(timestampOfDate)),
			on("TIMESTAMP -> TIMESTAMP", strict(first)),
		}},
	{name: "timestamp_add", doc: "TIMESTAMP_ADD(timestamp, INTERVAL n part): later by a length of time.",
		overloads: []overload{on("TIMESTAMP, INT64, PART -> TIMESTAMP", strict(timestampAdd))}},
	{name: "timestamp_sub", doc: "TIMESTAMP_SUB(timestamp, INTERVAL n part): earlier by a length of time.",
		overloads: []overload{on("TIMESTAMP, INT64, PART -> TIMESTAMP", strict(timestampSub))}},
	{name: "timestamp_diff", doc: "TIMESTAMP_DIFF(a, b, part): whole parts from b to a.",
		overloads: []overload{on("TIMESTAMP, TIMESTAMP, PART -> INT64", strict(timestampDiff))}},
	{name: "timestamp_trunc", doc: "TIMESTAMP_TRUNC(timestamp, part, zone): the beginning of the part that the timestamp lies in, in a time zone.", property: stable,
		overloads: []overload{on("TIMESTAMP, PART, ?STRING -> TIMESTAMP", strict(timestampTrunc))}},
	{name: "timestamp_seconds", doc: "The instant n seconds after 1970.", overloads: []overload{on("INT64 -> TIMESTAMP", fromUnix(1))}},
	{name: "timestamp_millis", doc: "The instant n milliseconds after 1970.", overloads: []overload{on("INT64 -> TIMESTAMP", fromUnix(1_000))}},
	{name: "timestamp_micros", doc: "The instant n microseconds after 1970.", overloads: []overload{on("INT64 -> TIMESTAMP", fromUnix(1_000_000))}},
	{name: "unix_seconds", leakproof: true, doc: "Whole seconds since 1970, rounded down.", overloads: []overload{on("TIMESTAMP -> INT64", toUnix(1))}},
	{name: "unix_millis", leakproof: true, doc: "Whole milliseconds since 1970, rounded down.", overloads: []overload{on("TIMESTAMP -> INT64", toUnix(1_000))}},
	{name: "unix_micros", leakproof: true, doc: "Whole microseconds since 1970, rounded down.", overloads: []overload{on("TIMESTAMP -> INT64", toUnix(1_000_000))}},
}

func currentTimestamp(ctx *Context, _ []value.Value) (value.Value, error) {
	return value.OfTime(ctx.Now), nil
}

func pendingCommitTimestamp(*Context, []value.Value) (value.Value, error) {
	return value.PendingCommitTimestamp(), nil
}

func timestampOfText(ctx *Context, a []value.Value) (value.Value, error) {
	zone, err := zoneArgument(ctx, a, 1)
	if err != nil {
		return value.Value{}, err
	}
	return timestampIn(a[0].AsString(), zone)
}

func timestampOfDate(ctx *Context, a []value.Value) (value.Value, error) {
	zone, err := zoneArgument(ctx, a, 1)
	if err != nil {
		return value.Value{}, err
	}
	return startOfDay(a[0].AsDate(), zone)
}

func timestampAdd(_ *Context, a []value.Value) (value.Value, error) {
	return moveTimestampBy(a, 1, "Adding", "TIMESTAMP_ADD")
}

func timestampSub(_ *Context, a []value.Value) (value.Value, error) {
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

// moveTimestamp moves a timestamp by sign times n units; unit is in nanoseconds.
func moveTimestamp(t value.Value, n, sign, unit int64) (moved value.Value, ok bool) {
	hi, lo := bits.Mul64(magnitude(n), uint64(unit))
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

func timestampDiff(_ *Context, a []value.Value) (value.Value, error) {
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
		return ofInt64(seconds / (unit / nanosPerSecond))
	}
	perSecond := nanosPerSecond / unit
	if seconds >= math.MaxInt64/perSecond || seconds <= math.MinInt64/perSecond {
		return badArgument("TIMESTAMP_DIFF at " + a[2].AsString() + " precision between values of " + timestampText(a[0]) +
			" and " + timestampText(a[1]) + " causes overflow")
	}
	return ofInt64(seconds*perSecond + nanos/unit)
}

func timestampTrunc(ctx *Context, a []value.Value) (value.Value, error) {
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
		return badArgument("Truncating " + timestampText(a[0]) + " to the nearest " + a[1].AsString() + " causes overflow")
	}
	return value.OfTimestamp(start, 0), nil
}

// fromUnix makes a body that converts a number of units since 1970 to a timestamp. perSecond is the number of units in a second.
func fromUnix(perSecond int64) body {
	return strict(func(_ *Context, a []value.Value) (value.Value, error) {
		n := a[0].AsInt64()
		seconds := floorDiv(n, perSecond)
		nanos := (n - seconds*perSecond) * (nanosPerSecond / perSecond)
		if !value.ValidTimestamp(seconds, nanos) {
			return badArgument("Input value for timestamp is out of range: " + int64Text(n))
		}
		return value.OfTimestamp(seconds, int32(nanos)), nil
	})
}

func toUnix(perSecond int64) body {
	return strict(func(_ *Context, a []value.Value) (value.Value, error) {
		seconds, nanos := a[0].AsTimestamp()
		return ofInt64(seconds*perSecond + int64(nanos)/(nanosPerSecond/perSecond))
	})
}
