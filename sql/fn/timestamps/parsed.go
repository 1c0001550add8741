package timestamps

import (
	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/value"
)

// The methods in this file compute a date or a timestamp from the fields that a dateParser has read.

// days returns the date that was read, in days since 1970-01-01.
func (p *dateParser) days() (int64, error) {
	y := p.year
	if p.twoDigits {
		y += p.century * 100
	}
	if p.isoYear >= 0 && !p.calendar {
		return p.isoDays()
	}
	switch {
	case p.dayOfYear > 0:
		start := int64(value.DaysOf(y, 1, 1))
		if p.dayOfYear == 366 && value.DaysIn(y, 2) != 29 {
			return 0, p.fail("Year " + fn.Int64Text(int64(y)) + " has 365 days, but the specified day of year was 366")
		}
		return start + int64(p.dayOfYear) - 1, nil
	case p.weekOfYear >= 0:
		return p.weekDays(y)
	case p.day > value.DaysIn(y, p.month):
		return 0, p.fail("Out-of-range datetime field")
	}
	return int64(value.DaysOf(y, p.month, p.day)), nil
}

// weekDays returns the weekday p.weekday of week p.weekOfYear of year y; if no weekday was read, the first day of
// that week.
func (p *dateParser) weekDays(y int) (int64, error) {
	start := int64(value.DaysOf(y, 1, 1))
	firstWeek := startOfWeek(start+6, int64(p.weekStart)) // the first full week is week 1
	days := firstWeek + int64(p.weekOfYear-1)*7
	if p.weekday > 0 {
		days += (int64(p.weekday%7) - int64(p.weekStart) + 7) % 7
	} else if days < start {
		days = start
	}
	if days < start || days >= int64(value.DaysOf(y+1, 1, 1)) {
		return 0, p.fail("Week number " + fn.Int64Text(int64(p.weekOfYear)) + " is invalid for year " + fn.Int64Text(int64(y)))
	}
	return days, nil
}

func (p *dateParser) isoDays() (int64, error) {
	start := startOfISOYear(int64(p.isoYear))
	days := start
	switch {
	case p.isoDayOfYear > 0:
		days += int64(p.isoDayOfYear) - 1
	case p.isoWeek > 0:
		days += int64(p.isoWeek-1) * 7
		if p.weekday > 0 {
			days += int64(p.weekday) - 1
		}
	}
	if days >= startOfISOYear(int64(p.isoYear)+1) {
		return 0, p.fail("Invalid ISO week or day for ISO year " + fn.Int64Text(int64(p.isoYear)))
	}
	return days, nil
}

func (p *dateParser) timestamp() (value.Value, error) {
	if p.unixSeen {
		return checkedTimestamp(p.unix, int64(p.nanos))
	}
	days, err := p.days()
	if err != nil {
		return value.Value{}, err
	}
	h := p.hour
	if p.twelve {
		if h %= 12; p.afternoon {
			h += 12
		}
	}
	nanos := p.nanos
	if p.second == 60 { // a leap second becomes the first second of the next minute, without a fraction
		nanos = 0
	}
	local := days*secondsPerDay + int64(h)*3600 + int64(p.minute)*60 + int64(p.second)
	return checkedTimestamp(value.InstantOf(local, p.zone), int64(nanos))
}
