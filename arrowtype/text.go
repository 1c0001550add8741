package arrowtype

import (
	"math"
	"strconv"
)

// AppendDate appends a date as YYYY-MM-DD.
func AppendDate(to []byte, days int32) []byte {
	// The algorithm is civil_from_days: https://howardhinnant.github.io/date_algorithms.html#civil_from_days
	z := int(days) + 719468
	era := z / 146097
	dayOfEra := z - era*146097
	yearOfEra := (dayOfEra - dayOfEra/1460 + dayOfEra/36524 - dayOfEra/146096) / 365
	dayOfYear := dayOfEra - (365*yearOfEra + yearOfEra/4 - yearOfEra/100)
	month := (5*dayOfYear + 2) / 153
	day := dayOfYear - (153*month+2)/5 + 1
	month = (month+2)%12 + 1
	year := yearOfEra + era*400
	if month <= 2 {
		year++
	}
	to = append(to, byte('0'+year/1000%10), byte('0'+year/100%10))
	to = append(appendTwo(to, year%100), '-')
	to = append(appendTwo(to, month), '-')
	return appendTwo(to, day)
}

func appendTwo(to []byte, n int) []byte { return append(to, byte('0'+n/10), byte('0'+n%10)) }

// AppendTimestamp appends a time in RFC 3339 and UTC. It omits zeros at the end of the fraction of a second.
func AppendTimestamp(to []byte, seconds int64, nanos int32) []byte {
	days := seconds / secondsPerDay
	second := int(seconds % secondsPerDay)
	if second < 0 {
		days, second = days-1, second+secondsPerDay
	}
	to = append(AppendDate(to, int32(days)), 'T')
	to = append(appendTwo(to, second/3600), ':')
	to = append(appendTwo(to, second/60%60), ':')
	to = appendTwo(to, second%60)
	return append(appendFraction(to, nanos), 'Z')
}

// appendFraction appends a point and the digits of a fraction of a second, or nothing for 0.
func appendFraction(to []byte, nanos int32) []byte {
	if nanos == 0 {
		return to
	}
	to = append(to, '.')
	for unit := int32(100_000_000); nanos > 0; unit /= 10 {
		to = append(to, byte('0'+nanos/unit))
		nanos %= unit
	}
	return to
}

// AppendFloat appends the shortest text that is parsed as the same number. For NaN and the infinities, it writes NaN,
// Infinity and -Infinity, as Spanner does.
func AppendFloat(to []byte, f float64, bits int) []byte {
	switch {
	case math.IsNaN(f):
		return append(to, "NaN"...)
	case math.IsInf(f, 1):
		return append(to, "Infinity"...)
	case math.IsInf(f, -1):
		return append(to, "-Infinity"...)
	}
	return strconv.AppendFloat(to, f, 'g', -1, bits)
}
