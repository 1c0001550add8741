package fn

import "github.com/crowfoot-db/crowfoot/value"

var intervals = []record{
	{name: "$interval", doc: "INTERVAL n part.", overloads: []overload{on("INT64, PART -> INTERVAL", strict(interval))}},
	{name: "make_interval", doc: "MAKE_INTERVAL(year, month, day, hour, minute, second).",
		overloads: []overload{on("?INT64, ?INT64, ?INT64, ?INT64, ?INT64, ?INT64 -> INTERVAL", strict(makeInterval))}},
	{name: "justify_days", doc: "Days as months of 30 days, as far as they go.", overloads: []overload{on("INTERVAL -> INTERVAL", strict(justifyDays))}},
	{name: "justify_hours", doc: "Hours as days of 24 hours, as far as they go.", overloads: []overload{on("INTERVAL -> INTERVAL", strict(justifyHours))}},
	{name: "justify_interval", doc: "Hours as days and days as months, as far as they go.", overloads: []overload{on("INTERVAL -> INTERVAL", strict(justifyInterval))}},
}

func interval(_ *Context, a []value.Value) (value.Value, error) {
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

// times multiplies two numbers. It clamps the result to bounds that are far beyond any INTERVAL, so that several results can be added
// without overflow.
func times(n, factor int64) int64 {
	const bound = 1 << 60
	return max(-bound/factor, min(n, bound/factor)) * factor
}

func makeInterval(_ *Context, a []value.Value) (value.Value, error) {
	var n [6]int64
	for i := range a {
		n[i] = a[i].AsInt64()
	}
	return ofInterval(times(n[0], 12)+times(n[1], 1), n[2], times(n[3], 3600)+times(n[4], 60)+times(n[5], 1), 0)
}

func justifyDays(_ *Context, a []value.Value) (value.Value, error) {
	i := a[0].AsInterval()
	months, days := justify(int64(i.Months), int64(i.Days), 30)
	return ofInterval(months, days, i.Seconds, int64(i.Nanos))
}

func justifyHours(_ *Context, a []value.Value) (value.Value, error) {
	i := a[0].AsInterval()
	days, seconds := justify(int64(i.Days), i.Seconds, secondsPerDay)
	// The fraction belongs to the time, which must have the same sign as the days.
	if days < 0 && seconds == 0 && i.Nanos > 0 {
		days, seconds = days+1, seconds-secondsPerDay
	}
	return ofInterval(int64(i.Months), days, seconds, int64(i.Nanos))
}

func justifyInterval(ctx *Context, a []value.Value) (value.Value, error) {
	i := a[0].AsInterval()
	days, seconds := justify(int64(i.Days), i.Seconds, secondsPerDay)
	months, days := justify(int64(i.Months), days, 30)
	// All three parts get the sign of the whole interval.
	const monthDays = 30
	total := (months*monthDays+days)*secondsPerDay + seconds
	fraction := int64(i.Nanos)
	if total < 0 && fraction > 0 {
		total, fraction = total+1, fraction-nanosPerSecond
	}
	wholeDays := total / secondsPerDay
	return ofInterval(wholeDays/monthDays, wholeDays%monthDays, total%secondsPerDay, fraction)
}

// justify carries whole units from the smaller part to the larger one. If their signs differ, it borrows one unit.
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
