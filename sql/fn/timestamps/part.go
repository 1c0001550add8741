package timestamps

import (
	"strings"

	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// part is a date part: YEAR, WEEK(MONDAY), HOUR, ...
type part uint8

const (
	noPart part = iota
	nanosecond
	microsecond
	millisecond
	second
	minute
	hour
	day
	dayOfWeek
	dayOfYear
	week // weeks that begin on Sunday; the next constants are weeks that begin on the other days
	weekMonday
	weekTuesday
	weekWednesday
	weekThursday
	weekFriday
	weekSaturday
	isoWeek
	month
	quarter
	year
	isoYear
)

// parts holds the date parts by the names that arguments have.
var parts = map[string]part{
	"NANOSECOND": nanosecond, "MICROSECOND": microsecond, "MILLISECOND": millisecond, "SECOND": second, "MINUTE": minute, "HOUR": hour,
	"DAY": day, "DAYOFWEEK": dayOfWeek, "DAYOFYEAR": dayOfYear, "WEEK": week, "WEEK_SUNDAY": week, "WEEK_MONDAY": weekMonday,
	"WEEK_TUESDAY": weekTuesday, "WEEK_WEDNESDAY": weekWednesday, "WEEK_THURSDAY": weekThursday, "WEEK_FRIDAY": weekFriday,
	"WEEK_SATURDAY": weekSaturday, "ISOWEEK": isoWeek, "MONTH": month, "QUARTER": quarter, "YEAR": year, "ISOYEAR": isoYear,
}

// units holds the lengths in nanoseconds of those parts that always have the same length.
var units = map[part]int64{
	nanosecond: 1, microsecond: 1_000, millisecond: 1_000_000, second: nanosPerSecond, minute: 60 * nanosPerSecond,
	hour: 3600 * nanosPerSecond, day: secondsPerDay * nanosPerSecond,
}

// unitOf returns the length in nanoseconds of the part that v names. It accepts DAY and shorter parts. The
// parameter function is the function's name, for the error.
func unitOf(v value.Value, function string) (int64, error) {
	if unit, ok := units[parts[v.AsString()]]; ok {
		return unit, nil
	}
	return 0, unsupportedPart(v, function)
}

func unsupportedPart(v value.Value, function string) error {
	name := v.AsString()
	if start, isWeek := strings.CutPrefix(name, "WEEK_"); isWeek {
		name = "WEEK(" + start + ")"
	}
	return usererror.BadArgument("Unsupported date part " + name + " in function " + function)
}

// weekday returns the weekday of a day: 0 for Sunday to 6 for Saturday. days counts from 1970-01-01.
func weekday(days int64) int64 {
	const thursday = 4 // the weekday of 1970-01-01
	w := (days + thursday) % 7
	if w < 0 {
		w += 7
	}
	return w
}

// startOf returns the weekday on which weeks begin if p is a part such as WEEK(MONDAY). ok is false if p is not a week.
func (p part) startOf() (weekday int64, ok bool) {
	switch {
	case p == isoWeek:
		return 1, true
	case p >= week && p <= weekSaturday:
		return int64(p - week), true
	}
	return 0, false
}

// startOfWeek returns the first day of the week that contains the given day, if weeks begin on the weekday with the
// number start. Days count from 1970-01-01; weekdays are 0 for Sunday to 6 for Saturday.
func startOfWeek(days, start int64) int64 {
	return days - (weekday(days)-start+7)%7
}

// weekOfYear returns the number of the week in the year, if weeks begin on the weekday with the number start (0 for
// Sunday). Days before the first such weekday of the year are in week 0.
func weekOfYear(days, start int64) int64 {
	return (dayInYear(days) + 6 - (weekday(days)-start+7)%7) / 7
}

// dayInYear returns the number of the day in its year; January 1 is 1.
func dayInYear(days int64) int64 {
	y, _, _ := value.CivilOf(int32(days))
	return days - int64(value.DaysOf(y, 1, 1)) + 1
}

// isoYearWeek returns the year and the week of ISO 8601. Weeks begin on Monday and belong to the year of their
// Thursday.
func isoYearWeek(days int64) (year, week int64) {
	thursday := startOfWeek(days, 1) + 3
	y, _, _ := value.CivilOf(int32(thursday))
	return int64(y), (dayInYear(thursday)-1)/7 + 1
}

// startOfISOYear returns the first day of the year's first ISO week, a Monday.
func startOfISOYear(year int64) int64 {
	return startOfWeek(int64(value.DaysOf(int(year), 1, 4)), 1)
}

// truncateDays returns the first day of the year, month or other part that contains the day. The first day may be
// before the first valid DATE. ok is false for parts shorter than a day.
func (p part) truncateDays(days int64) (first int64, ok bool) {
	y, m, _ := value.CivilOf(int32(days))
	switch p {
	case day:
		return days, true
	case month:
		return int64(value.DaysOf(y, m, 1)), true
	case quarter:
		return int64(value.DaysOf(y, (m-1)/3*3+1, 1)), true
	case year:
		return int64(value.DaysOf(y, 1, 1)), true
	case isoYear:
		isoYear, _ := isoYearWeek(days)
		return startOfISOYear(isoYear), true
	}
	if start, isWeek := p.startOf(); isWeek {
		return startOfWeek(days, start), true
	}
	return 0, false
}

// addMonths adds months to a day. If the new month is too short, the result is its last day. ok is false if months is
// so large that the result is out of range for any DATE.
func addMonths(days int32, months int64) (moved int64, ok bool) {
	const most = 12 * 20_000
	if months > most || months < -most {
		return 0, false
	}
	y, m, d := value.CivilOf(days)
	total := int64(y)*12 + int64(m-1) + months
	y, m = int(floorDiv(total, 12)), int(total-floorDiv(total, 12)*12)+1
	return int64(value.DaysOf(y, m, min(d, value.DaysIn(y, m)))), true
}

// floorDiv returns a/b rounded down. b must be positive.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
