package timestamps

import (
	"fmt"

	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// Dates has the functions of dates.
var Dates = []fn.Record{
	{Name: "current_date", Doc: "Today, in a time zone (the database's).", Property: fn.Stable,
		Overloads: []fn.Overload{fn.On("?STRING -> DATE", fn.Strict(currentDate))}},
	{Name: "date", Doc: "DATE(year, month, day); DATE(timestamp, zone): the day of a timestamp in a time zone; DATE(text): CAST(text AS DATE).", Property: fn.Stable, Overloads: []fn.Overload{
		fn.On("INT64, INT64, INT64 -> DATE", fn.Strict(dateOfParts)),
		fn.On("TIMESTAMP, ?STRING -> DATE", fn.Strict(dateOfTimestamp)),
		fn.On("DATE -> DATE", fn.Strict(fn.FirstArgument)),
		fn.On("STRING -> DATE", fn.Strict(ParseDate)),
	}},
	{Name: "date_add", Doc: "DATE_ADD(date, INTERVAL n part): days, weeks, months, quarters or years later.",
		Overloads: []fn.Overload{fn.On("DATE, INT64, PART -> DATE", fn.Strict(dateAdd))}},
	{Name: "date_sub", Doc: "DATE_SUB(date, INTERVAL n part): days, weeks, months, quarters or years earlier.",
		Overloads: []fn.Overload{fn.On("DATE, INT64, PART -> DATE", fn.Strict(dateSub))}},
	{Name: "date_diff", Doc: "DATE_DIFF(a, b, part): the number of part boundaries from b to a.",
		Overloads: []fn.Overload{fn.On("DATE, DATE, PART -> INT64", fn.Strict(dateDiff))}},
	{Name: "date_trunc", Doc: "DATE_TRUNC(date, part): the first day of the part that the date lies in.",
		Overloads: []fn.Overload{fn.On("DATE, PART -> DATE", fn.Strict(dateTrunc))}},
	{Name: "date_from_unix_date", Doc: "The date that is n days after 1970-01-01.", Overloads: []fn.Overload{fn.On("INT64 -> DATE", fn.Strict(dateFromUnix))}},
	{Name: "unix_date", Leakproof: true, Doc: "Days since 1970-01-01.", Overloads: []fn.Overload{fn.On("DATE -> INT64", fn.Strict(unixDate))}},
	{Name: "generate_date_array", Doc: "GENERATE_DATE_ARRAY(first, last, INTERVAL n part): dates from the first to the last, n parts (one day) apart.",
		Overloads: []fn.Overload{fn.On("DATE, DATE, ?INT64, ?PART -> ARRAY<DATE>", fn.Strict(generateDates))}},
}

func currentDate(ctx *fn.Context, a []value.Value) (value.Value, error) {
	zone, err := zoneArgument(ctx, a, 0)
	if err != nil {
		return value.Value{}, err
	}
	return dayOf(value.OfTime(ctx.Now), zone)
}

func dateOfParts(_ *fn.Context, a []value.Value) (value.Value, error) {
	y, m, d := a[0].AsInt64(), a[1].AsInt64(), a[2].AsInt64()
	if y < 1 || y > 9999 || m < 1 || m > 12 || d < 1 || d > int64(value.DaysIn(int(y), int(m))) {
		return fn.BadArgument(fmt.Sprintf("Input calculates to invalid date: %04d-%02d-%02d", y, m, d))
	}
	return value.OfDate(value.DaysOf(int(y), int(m), int(d))), nil
}

func dateOfTimestamp(ctx *fn.Context, a []value.Value) (value.Value, error) {
	zone, err := zoneArgument(ctx, a, 1)
	if err != nil {
		return value.Value{}, err
	}
	return dayOf(a[0], zone)
}

func dateAdd(_ *fn.Context, a []value.Value) (value.Value, error) {
	v, err := moveDate(a[0].AsDate(), a[1].AsInt64(), 1, parts[a[2].AsString()])
	if err == errOverflow {
		err = usererror.DateOverflow("Adding", a[1].AsInt64(), a[2].AsString(), "date", dateText(a[0].AsDate()))
	}
	return v, err
}

func dateSub(_ *fn.Context, a []value.Value) (value.Value, error) {
	v, err := moveDate(a[0].AsDate(), a[1].AsInt64(), -1, parts[a[2].AsString()])
	if err == errOverflow {
		err = usererror.DateOverflow("Subtracting", a[1].AsInt64(), a[2].AsString(), "date", dateText(a[0].AsDate()))
	}
	return v, err
}

// errOverflow is an error within this package. Callers replace it by an error that names the failed operation.
var errOverflow = fmt.Errorf("date overflow")

// moveDate moves a date by n units of the part p, forward if sign is 1 and back if sign is -1. It returns errOverflow
// if the result is out of range.
func moveDate(days int32, n, sign int64, p part) (value.Value, error) {
	const most = 4_000_000 // more than the number of days from the first valid DATE to the last
	if n > most || n < -most {
		return value.Value{}, errOverflow
	}
	n *= sign
	moved, ok := int64(days)+n, true
	switch p {
	case day:
	case week, isoWeek:
		moved = int64(days) + 7*n
	case month:
		moved, ok = addMonths(days, n)
	case quarter:
		moved, ok = addMonths(days, 3*n)
	case year:
		moved, ok = addMonths(days, 12*n)
	default:
		return fn.BadArgument("Unsupported date part in date arithmetic")
	}
	if !ok || !value.ValidDate(moved) {
		return value.Value{}, errOverflow
	}
	return value.OfDate(int32(moved)), nil
}

func dateDiff(_ *fn.Context, a []value.Value) (value.Value, error) {
	x, y, p := int64(a[0].AsDate()), int64(a[1].AsDate()), parts[a[2].AsString()]
	if start, isWeek := p.startOf(); isWeek {
		return fn.OfInt64((startOfWeek(x, start) - startOfWeek(y, start)) / 7)
	}
	xYear, xMonth, _ := value.CivilOf(int32(x))
	yYear, yMonth, _ := value.CivilOf(int32(y))
	switch p {
	case day:
		return fn.OfInt64(x - y)
	case month:
		return fn.OfInt64(int64((xYear-yYear)*12 + xMonth - yMonth))
	case quarter:
		return fn.OfInt64(int64((xYear-yYear)*4 + (xMonth-1)/3 - (yMonth-1)/3))
	case year:
		return fn.OfInt64(int64(xYear - yYear))
	case isoYear:
		xISO, _ := isoYearWeek(x)
		yISO, _ := isoYearWeek(y)
		return fn.OfInt64(xISO - yISO)
	}
	return value.Value{}, unsupportedPart(a[2], "DATE_DIFF")
}

func dateTrunc(_ *fn.Context, a []value.Value) (value.Value, error) {
	days, ok := parts[a[1].AsString()].truncateDays(int64(a[0].AsDate()))
	switch {
	case !ok:
		return value.Value{}, unsupportedPart(a[1], "DATE_TRUNC")
	case !value.ValidDate(days):
		return fn.BadArgument(fmt.Sprintf("Truncating date %s to %s resulted in an out of range date value", dateText(a[0].AsDate()), a[1].AsString()))
	}
	return value.OfDate(int32(days)), nil
}

func dateFromUnix(_ *fn.Context, a []value.Value) (value.Value, error) {
	n := a[0].AsInt64()
	if !value.ValidDate(n) {
		return fn.BadArgument("Date value out of range: " + fn.Int64Text(n))
	}
	return value.OfDate(int32(n)), nil
}

func unixDate(_ *fn.Context, a []value.Value) (value.Value, error) {
	return fn.OfInt64(int64(a[0].AsDate()))
}

func generateDates(_ *fn.Context, a []value.Value) (value.Value, error) {
	step, p := int64(1), day
	if len(a) > 2 {
		step = a[2].AsInt64()
	}
	if len(a) > 3 {
		p = parts[a[3].AsString()]
	}
	if step == 0 {
		return fn.BadArgument("Sequence step cannot be 0.")
	}
	first, last := a[0].AsDate(), a[1].AsDate()
	dates := []value.Value{}
	// Each date is computed from the first date, so that steps of a month from 31 January give 28 February and then 31
	// March.
	for n := int64(0); ; n += step {
		v, err := moveDate(first, n, 1, p)
		if err != nil && err != errOverflow {
			return v, err
		}
		if err != nil || step > 0 && v.AsDate() > last || step < 0 && v.AsDate() < last {
			return value.OfArray(dates), nil
		}
		if len(dates) == fn.MaxGenerated {
			return fn.BadArgument(fn.TooManyGenerated)
		}
		dates = append(dates, v)
	}
}
