package timestamps

import (
	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/value"
)

// Extracts has the functions for EXTRACT.
var Extracts = []fn.Record{
	{Name: "$extract", Doc: "EXTRACT(part FROM x AT TIME ZONE zone): a part of a date, timestamp or interval, as a number.", Property: fn.Stable, Overloads: []fn.Overload{
		fn.On("DATE, PART -> INT64", fn.Strict(extractDate)),
		fn.On("TIMESTAMP, PART, ?STRING -> INT64", fn.Strict(extractTimestamp)),
		fn.On("INTERVAL, PART -> INT64", fn.Strict(extractInterval)),
	}},
	{Name: "$extract_date", Doc: "EXTRACT(DATE FROM timestamp AT TIME ZONE zone).", Property: fn.Stable,
		Overloads: []fn.Overload{fn.On("TIMESTAMP, ?STRING -> DATE", fn.Strict(dateOfTimestamp))}},
}

func extractDate(_ *fn.Context, a []value.Value) (value.Value, error) {
	n, ok := partOfDay(int64(a[0].AsDate()), parts[a[1].AsString()])
	if !ok {
		return value.Value{}, unsupportedPart(a[1], "EXTRACT")
	}
	return fn.OfInt64(n)
}

func partOfDay(days int64, p part) (n int64, ok bool) {
	y, m, d := value.CivilOf(int32(days))
	switch p {
	case year:
		return int64(y), true
	case quarter:
		return int64(m-1)/3 + 1, true
	case month:
		return int64(m), true
	case day:
		return int64(d), true
	case dayOfWeek:
		return weekday(days) + 1, true
	case dayOfYear:
		return dayInYear(days), true
	case isoYear:
		isoYear, _ := isoYearWeek(days)
		return isoYear, true
	case isoWeek:
		_, isoWeek := isoYearWeek(days)
		return isoWeek, true
	}
	if start, isWeek := p.startOf(); isWeek {
		return weekOfYear(days, start), true
	}
	return 0, false
}

func extractTimestamp(ctx *fn.Context, a []value.Value) (value.Value, error) {
	zone, err := zoneArgument(ctx, a, 2)
	if err != nil {
		return value.Value{}, err
	}
	seconds, nanos := a[0].AsTimestamp()
	local := seconds + value.ZoneOffset(seconds, zone)
	days := floorDiv(local, secondsPerDay)
	clock := local - days*secondsPerDay
	p := parts[a[1].AsString()]
	switch p {
	case hour:
		return fn.OfInt64(clock / 3600)
	case minute:
		return fn.OfInt64(clock / 60 % 60)
	case second:
		return fn.OfInt64(clock % 60)
	case millisecond, microsecond, nanosecond:
		return fn.OfInt64(int64(nanos) / units[p])
	}
	n, ok := partOfDay(days, p)
	if !ok {
		return value.Value{}, unsupportedPart(a[1], "EXTRACT")
	}
	return fn.OfInt64(n)
}

func extractInterval(_ *fn.Context, a []value.Value) (value.Value, error) {
	i := a[0].AsInterval()
	seconds, nanos, neg := i.Time()
	var n int64
	p := parts[a[1].AsString()]
	switch p {
	case year:
		return fn.OfInt64(int64(i.Months / 12))
	case month:
		return fn.OfInt64(int64(i.Months % 12))
	case day:
		return fn.OfInt64(int64(i.Days))
	case hour:
		n = seconds / 3600
	case minute:
		n = seconds / 60 % 60
	case second:
		n = seconds % 60
	case millisecond, microsecond, nanosecond:
		n = int64(nanos) / units[p]
	default:
		return value.Value{}, unsupportedPart(a[1], "EXTRACT")
	}
	if neg {
		n = -n
	}
	return fn.OfInt64(n)
}
