package arrowtype

import (
	"math"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
)

// ParseInterval reads an INTERVAL in ISO 8601, such as P1Y2M3DT4H5M6.789S; each part may have a sign. An interval whose time part is
// beyond 292 years, which Arrow's type cannot hold, is an error.
func ParseInterval(text []byte) (arrow.MonthDayNanoInterval, error) {
	kind := "an INTERVAL such as P1Y2M3DT4H5M6.789S, of less than 292 years of hours"
	if len(text) < 3 || text[0] != 'P' {
		return arrow.MonthDayNanoInterval{}, notA(kind, text)
	}
	var months, days, nanos float64 // whole numbers: the sums are checked, and exact below 2^53
	var exact int64
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
			return arrow.MonthDayNanoInterval{}, notA(kind, text)
		}
		whole, part, err := intervalNumber(rest[:n], rest[n] == 'S')
		if err != nil {
			return arrow.MonthDayNanoInterval{}, notA(kind, text)
		}
		switch unit := rest[n]; {
		case unit == 'Y' && !inTime:
			months += float64(whole) * 12
		case unit == 'M' && !inTime:
			months += float64(whole)
		case unit == 'W' && !inTime:
			days += float64(whole) * 7
		case unit == 'D' && !inTime:
			days += float64(whole)
		case unit == 'H' && inTime:
			nanos += float64(whole) * 3600e9
			exact += whole * 3600e9
		case unit == 'M' && inTime:
			nanos += float64(whole) * 60e9
			exact += whole * 60e9
		case unit == 'S' && inTime:
			nanos += float64(whole) * 1e9
			exact += whole*1e9 + part
		default:
			return arrow.MonthDayNanoInterval{}, notA(kind, text)
		}
		rest = rest[n+1:]
	}
	if math.Abs(months) > math.MaxInt32 || math.Abs(days) > math.MaxInt32 || math.Abs(nanos) > math.MaxInt64-1e9 {
		return arrow.MonthDayNanoInterval{}, notA(kind, text)
	}
	return arrow.MonthDayNanoInterval{Months: int32(months), Days: int32(days), Nanoseconds: exact}, nil
}

// intervalNumber reads a whole number, or one with up to nine digits behind the point, which are given as nanoseconds with the number's sign.
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
		return 0, nanos, nil // .5S
	}
	whole, err = strconv.ParseInt(stringOf(text), 10, 64)
	return whole, nanos, err
}

// AppendInterval appends an interval in ISO 8601 as Spanner writes it: P1Y2M3DT4H5M6.789S, and P0Y for none.
func AppendInterval(to []byte, v arrow.MonthDayNanoInterval) []byte {
	return appendInterval(to, v.Months, v.Days, v.Nanoseconds/1e9, v.Nanoseconds%1e9)
}

// appendInterval appends an interval whose time part is seconds and nanoseconds of the same sign.
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
