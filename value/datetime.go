package value

import (
	"math/bits"
	"strconv"
	"time"
)

// MinDate and MaxDate limit DATE, in days since 1970-01-01. MinTimestampSeconds and MaxTimestampSeconds limit
// TIMESTAMP, in whole seconds since 1970-01-01T00:00:00Z. Both ranges go from 0001-01-01 to the end of 9999-12-31.
const (
	MinDate = -719162
	MaxDate = 2932896

	MinTimestampSeconds = MinDate * secondsPerDay
	MaxTimestampSeconds = (MaxDate+1)*secondsPerDay - 1

	secondsPerDay  = 24 * 60 * 60
	nanosPerSecond = 1_000_000_000
)

// ValidDate reports whether the number of days since 1970-01-01 is in the range of DATE.
func ValidDate(days int64) bool { return days >= MinDate && days <= MaxDate }

// ValidTimestamp reports whether the seconds since 1970 and the nanoseconds are in the range of TIMESTAMP.
func ValidTimestamp(seconds, nanos int64) bool {
	return seconds >= MinTimestampSeconds && seconds <= MaxTimestampSeconds && nanos >= 0 && nanos < nanosPerSecond
}

// AsTime returns a TIMESTAMP as a time in UTC.
func (v Value) AsTime() time.Time { return time.Unix(int64(v.bits), int64(v.nanos)).UTC() }

// OfTime makes a TIMESTAMP. t must be in range.
func OfTime(t time.Time) Value { return OfTimestamp(t.Unix(), int32(t.Nanosecond())) }

// DaysOf converts an existing civil date to days since 1970-01-01. The calendar is proleptic Gregorian. The algorithm
// is Howard Hinnant's days_from_civil (https://howardhinnant.github.io/date_algorithms.html), which counts years from
// March.
func DaysOf(year, month, day int) int32 {
	if month <= 2 {
		year--
		month += 12
	}
	era := floorDiv(year, 400)
	yearOfEra := year - era*400
	dayOfYear := (153*(month-3)+2)/5 + day - 1
	dayOfEra := yearOfEra*365 + yearOfEra/4 - yearOfEra/100 + dayOfYear
	return int32(era*146097 + dayOfEra - 719468)
}

// CivilOf converts days since 1970-01-01 to the civil date. The algorithm is civil_from_days, from the same source as
// that of DaysOf.
func CivilOf(days int32) (year, month, day int) {
	z := int(days) + 719468
	era := floorDiv(z, 146097)
	dayOfEra := z - era*146097
	yearOfEra := (dayOfEra - dayOfEra/1460 + dayOfEra/36524 - dayOfEra/146096) / 365
	dayOfYear := dayOfEra - (365*yearOfEra + yearOfEra/4 - yearOfEra/100)
	fromMarch := (5*dayOfYear + 2) / 153
	year, month, day = yearOfEra+era*400, fromMarch+3, dayOfYear-(153*fromMarch+2)/5+1
	if month > 12 {
		return year + 1, month - 12, day
	}
	return year, month, day
}

func floorDiv(a, b int) int {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// DaysIn returns the number of days of a month.
func DaysIn(year, month int) int {
	if month == 2 {
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	}
	// The mask has bits for the months with 31 days: January, March, May, July, August, October and December.
	return 30 + bits.OnesCount(uint(1<<month)&0b1_0101_1010_1010)
}

// AppendDate appends a date as YYYY-MM-DD.
func AppendDate(dst []byte, days int32) []byte {
	year, month, day := CivilOf(days)
	if year > 9999 { // the local date of a late timestamp can be 10000-01-01
		dst = append(strconv.AppendInt(dst, int64(year), 10), '-')
	} else {
		dst = append(appendTwoDigits(appendTwoDigits(dst, year/100), year%100), '-')
	}
	dst = append(appendTwoDigits(dst, month), '-')
	return appendTwoDigits(dst, day)
}

func appendTwoDigits(dst []byte, n int) []byte {
	return append(dst, '0'+byte(n/10), '0'+byte(n%10))
}

// AppendTimestamp appends a timestamp in the format of RFC 3339, in UTC, without zeros at the end of the fraction. An
// example is 2006-01-02T15:04:05.123Z.
func AppendTimestamp(dst []byte, seconds int64, nanos int32) []byte {
	days := floorDiv(int(seconds), secondsPerDay)
	dst = append(AppendDate(dst, int32(days)), 'T')
	dst = appendClock(dst, int(seconds)-days*secondsPerDay)
	if nanos != 0 {
		dst = appendFraction(dst, uint32(nanos))
	}
	return append(dst, 'Z')
}

// appendClock appends a time of day as HH:MM:SS.
func appendClock(dst []byte, second int) []byte {
	dst = append(appendTwoDigits(dst, second/3600), ':')
	dst = append(appendTwoDigits(dst, second/60%60), ':')
	return appendTwoDigits(dst, second%60)
}
