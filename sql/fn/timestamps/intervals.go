package timestamps

import (
	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/value"
)

// Intervals has the functions of intervals.
var Intervals = []fn.Record{
	{Name: "$interval", Doc: "INTERVAL n part.", Overloads: []fn.Overload{fn.On("INT64, PART -> INTERVAL", fn.Strict(interval))}},
	{Name: "make_interval", Doc: "MAKE_INTERVAL(year, month, day, hour, minute, second).",
		Overloads: []fn.Overload{fn.On("?INT64, ?INT64, ?INT64, ?INT64, ?INT64, ?INT64 -> INTERVAL", fn.Strict(makeInterval))}},
	{Name: "justify_days", Doc: "Days as months of 30 days, as far as they go.", Overloads: []fn.Overload{fn.On("INTERVAL -> INTERVAL", fn.Strict(justifyDays))}},
	{Name: "justify_hours", Doc: "Hours as days of 24 hours, as far as they go.", Overloads: []fn.Overload{fn.On("INTERVAL -> INTERVAL", fn.Strict(justifyHours))}},
	{Name: "justify_interval", Doc: "Hours as days and days as months, as far as they go.", Overloads: []fn.Overload{fn.On("INTERVAL -> INTERVAL", fn.Strict(justifyInterval))}},
}

func interval(_ *fn.Context, a []value.Value) (value.Value, error) {
	n, p := a[0].AsInt64(), parts[a[1].AsString()]
	switch p {
	case nanosecond, microsecond, millisecond:
		perSecond := nanosPerSecond / units[p]
		seconds := floorDiv(n, perSecond)
		return ofInterval(0, 0, seconds, (n-seconds*perSecond)*units[p])
	case second, minute, hour:
		return ofInterval(0, 0, times(n, units[p]/nanosPerSecond), 0)
	case day:
		return ofInterval(0, n, 0, 0)
	case week:
		return ofInterval(0, times(n, 7), 0, 0)
	case month:
		return ofInterval(n, 0, 0, 0)
	case quarter:
		return ofInterval(times(n, 3), 0, 0, 0)
	case year:
		return ofInterval(times(n, 12), 0, 0, 0)
	}
	return value.Value{}, unsupportedPart(a[1], "INTERVAL")
}

// times multiplies two numbers. If the product is far beyond any INTERVAL, it returns a bound instead, so that the
// caller can add several products without overflow.
func times(n, factor int64) int64 {
	const bound = 1 << 60
	return max(-bound/factor, min(n, bound/factor)) * factor
}

func makeInterval(_ *fn.Context, a []value.Value) (value.Value, error) {
	var n [6]int64
	for i := range a {
		n[i] = a[i].AsInt64()
	}
	return ofInterval(times(n[0], 12)+times(n[1], 1), n[2], times(n[3], 3600)+times(n[4], 60)+times(n[5], 1), 0)
}

func justifyDays(_ *fn.Context, a []value.Value) (value.Value, error) {
	i := a[0].AsInterval()
	months, days := justify(int64(i.Months), int64(i.Days), 30)
	return ofInterval(months, days, i.Seconds, int64(i.Nanos))
}

func justifyHours(_ *fn.Context, a []value.Value) (value.Value, error) {
	i := a[0].AsInterval()
	days, seconds := justify(int64(i.Days), i.Seconds, secondsPerDay)
	// The time of an interval is its seconds plus its nanoseconds, which are never negative. A time of 0 seconds and
	// some nanoseconds is positive, but the function justify gets only the seconds and takes it for 0. If the days are
	// negative, one day moves from the days to the time, so that both are negative.
	if days < 0 && seconds == 0 && i.Nanos > 0 {
		days, seconds = days+1, seconds-secondsPerDay
	}
	return ofInterval(int64(i.Months), days, seconds, int64(i.Nanos))
}

func justifyInterval(ctx *fn.Context, a []value.Value) (value.Value, error) {
	i := a[0].AsInterval()
	days, seconds := justify(int64(i.Days), i.Seconds, secondsPerDay)
	months, days := justify(int64(i.Months), days, 30)
	// Months, days and time all get the sign of the whole interval.
	const monthDays = 30
	total := (months*monthDays+days)*secondsPerDay + seconds
	fraction := int64(i.Nanos)
	if total < 0 && fraction > 0 {
		total, fraction = total+1, fraction-nanosPerSecond
	}
	wholeDays := total / secondsPerDay
	return ofInterval(wholeDays/monthDays, wholeDays%monthDays, total%secondsPerDay, fraction)
}

// justify converts as many small units as possible, such as days, to great units, such as months. The parameters great
// and small are the numbers of both; unit is the number of small units in a great one. If the two results would have
// different signs, justify converts one great unit back to small units, so that the signs agree.
func justify(great, small, unit int64) (justifiedGreat, justifiedSmall int64) {
	great, small = great+small/unit, small%unit
	switch {
	case great > 0 && small < 0:
		return great - 1, small + unit
	case great < 0 && small > 0:
		return great + 1, small - unit
	}
	return great, small
}
