package arrowtype

import (
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
)

// The limits of the parts of an INTERVAL. Each part can be up to 10,000 years long, positive or negative:
// https://cloud.google.com/spanner/docs/reference/standard-sql/data-types#interval_type.
const (
	maxIntervalMonths  = 10_000 * 12
	maxIntervalDays    = 10_000 * 366
	maxIntervalSeconds = maxIntervalDays * 86_400
)

// ParseInterval parses an INTERVAL in ISO 8601, such as P1Y2M3DT4H5M6.789S. Each part may have a sign. A time part
// beyond 292 years is an error, because Arrow's type cannot hold it.
func ParseInterval(text []byte) (arrow.MonthDayNanoInterval, error) {
	months, days, seconds, nanos, ok := parseInterval(text)
	if !ok {
		return arrow.MonthDayNanoInterval{}, notA("an INTERVAL such as P1Y2M3DT4H5M6.789S", text)
	}
	time, ok := UnixNanos(seconds+floorDiv(nanos, 1e9), int32(nanos-floorDiv(nanos, 1e9)*1e9))
	if !ok {
		return arrow.MonthDayNanoInterval{}, notA("an INTERVAL of less than 292 years of hours, which is the most that Arrow has", text)
	}
	return arrow.MonthDayNanoInterval{Months: int32(months), Days: int32(days), Nanoseconds: time}, nil
}

// parseInterval parses the parts of an interval and checks that they are in range. nanos may have another sign than
// seconds.
func parseInterval(text []byte) (months, days, seconds, nanos int64, ok bool) {
	if len(text) < 3 || text[0] != 'P' {
		return 0, 0, 0, 0, false
	}
	rest, inTime := text[1:], false
	for len(rest) > 0 {
		if rest[0] == 'T' && !inTime {
			inTime, rest = true, rest[1:]
			continue
		}
		n := 0
		for n < len(rest) && (rest[n] >= '0' && rest[n] <= '9' || rest[n] == '-' || rest[n] == '+' || rest[n] == '.') {
			n++
		}
		if n == 0 || n == len(rest) {
			return 0, 0, 0, 0, false
		}
		whole, part, err := intervalNumber(rest[:n], rest[n] == 'S')
		if err != nil || whole > maxIntervalSeconds || whole < -maxIntervalSeconds {
			return 0, 0, 0, 0, false
		}
		switch unit := rest[n]; {
		case unit == 'Y' && !inTime:
			months += whole * 12
		case unit == 'M' && !inTime:
			months += whole
		case unit == 'W' && !inTime:
			days += whole * 7
		case unit == 'D' && !inTime:
			days += whole
		case unit == 'H' && inTime:
			seconds += whole * 3600
		case unit == 'M' && inTime:
			seconds += whole * 60
		case unit == 'S' && inTime:
			seconds, nanos = seconds+whole, nanos+part
		default:
			return 0, 0, 0, 0, false
		}
		if max(months, -months) > maxIntervalMonths || max(days, -days) > maxIntervalDays || max(seconds, -seconds) > maxIntervalSeconds {
			return 0, 0, 0, 0, false
		}
		rest = rest[n+1:]
	}
	return months, days, seconds, nanos, true
}

// intervalNumber parses a whole number or, if fraction is set, a number with up to nine digits after the point. It
// returns these digits as nanoseconds, with the sign of the number.
func intervalNumber(text []byte, fraction bool) (whole, nanos int64, err error) {
	for i, c := range text {
		if c != '.' || !fraction {
			continue
		}
		part, rest, ok := parseFraction(text[i+1:])
		if !ok || len(rest) > 0 {
			return 0, 0, strconv.ErrSyntax
		}
		nanos = int64(part)
		if text[0] == '-' {
			nanos = -nanos
		}
		text = text[:i]
		break
	}
	if fraction && (len(text) == 0 || len(text) == 1 && (text[0] == '-' || text[0] == '+')) {
		return 0, nanos, nil // no digit before the point, as in .5S
	}
	whole, err = strconv.ParseInt(stringOf(text), 10, 64)
	return whole, nanos, err
}

// AppendInterval appends an interval in ISO 8601 as Spanner writes it: P1Y2M3DT4H5M6.789S, and P0Y for the empty
// interval.
func AppendInterval(to []byte, v arrow.MonthDayNanoInterval) []byte {
	return appendInterval(to, v.Months, v.Days, v.Nanoseconds/1e9, v.Nanoseconds%1e9)
}

// appendInterval appends an interval whose time part is given as seconds and nanoseconds. Both must have the same
// sign.
func appendInterval(to []byte, months, days int32, seconds, nanos int64) []byte {
	start := len(to)
	to = append(to, 'P')
	part := func(n int64, unit byte) {
		if n != 0 {
			to = append(strconv.AppendInt(to, n, 10), unit)
		}
	}
	part(int64(months/12), 'Y')
	part(int64(months%12), 'M')
	part(int64(days), 'D')
	if seconds != 0 || nanos != 0 {
		to = append(to, 'T')
		part(seconds/3600, 'H')
		part(seconds/60%60, 'M')
		if whole := seconds % 60; whole != 0 || nanos != 0 {
			if whole < 0 || nanos < 0 {
				to = append(to, '-')
			}
			to = strconv.AppendInt(to, max(whole, -whole), 10)
			to = append(appendFraction(to, int32(max(nanos, -nanos))), 'S')
		}
	}
	if len(to) == start+1 {
		to = append(to, "0Y"...)
	}
	return to
}
