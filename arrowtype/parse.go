package arrowtype

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"unsafe"

	"github.com/google/uuid"
)

// notA returns the error for a text that is not a value of a type. The parameter kind names the type with its article,
// such as "a BOOL". The caller adds the name of the column.
func notA(kind string, text []byte) error {
	const longest = 60 // the number of bytes of the text that the error repeats
	if len(text) > longest {
		return fmt.Errorf("%q... is not %s", text[:longest], kind)
	}
	return fmt.Errorf("%q is not %s", text, kind)
}

// stringOf returns the text as a string without copying it. The string is valid as long as the bytes do not change.
func stringOf(text []byte) string { return unsafe.String(unsafe.SliceData(text), len(text)) }

// ParseBool parses a BOOL: true and false in any case, t and f, 1 and 0.
func ParseBool(text []byte) (bool, error) {
	b, err := strconv.ParseBool(stringOf(text))
	if err == nil {
		return b, nil
	}
	switch {
	case equalFold(text, "true"):
		return true, nil
	case equalFold(text, "false"):
		return false, nil
	}
	return false, notA("a BOOL", text)
}

// equalFold reports whether a text equals a word in lower case, ignoring the case of the text.
func equalFold(text []byte, word string) bool {
	if len(text) != len(word) {
		return false
	}
	for i, c := range text {
		if c|0x20 != word[i] {
			return false
		}
	}
	return true
}

// ParseInt64 reads decimal digits with an optional sign.
func ParseInt64(text []byte) (int64, error) {
	digits, negative := text, false
	if len(digits) > 0 && (digits[0] == '-' || digits[0] == '+') {
		negative = digits[0] == '-'
		digits = digits[1:]
	}
	if len(digits) == 0 || len(digits) > 18 {
		return parseLongInt64(text)
	}
	n := int64(0)
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, notA("an INT64", text)
		}
		n = n*10 + int64(c-'0')
	}
	if negative {
		n = -n
	}
	return n, nil
}

// parseLongInt64 parses a number of so many digits that it may not fit into 64 bits.
func parseLongInt64(text []byte) (int64, error) {
	n, err := strconv.ParseInt(stringOf(text), 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, notA("an INT64: it is beyond 64 bits", text)
	case err != nil:
		return 0, notA("an INT64", text)
	}
	return n, nil
}

// ParseFloat parses a decimal number, NaN, Infinity, -Infinity or inf, in any case. bits is 32 or 64. A number beyond
// the range of the type is an error.
func ParseFloat(text []byte, bits int) (float64, error) {
	kind := "a FLOAT64"
	if bits == 32 {
		kind = "a FLOAT32"
	}
	for _, c := range text {
		if c == '_' || c|0x20 == 'x' || c|0x20 == 'p' {
			return 0, notA(kind, text) // Go's ParseFloat accepts texts such as 0x1p3, but they are not decimal numbers
		}
	}
	f, err := strconv.ParseFloat(stringOf(text), bits)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, notA(kind+": it is out of range", text)
	case err != nil:
		return 0, notA(kind, text)
	}
	return f, nil
}

// ParseUUID parses a UUID in its usual form. The hyphens may be missing, and the UUID may be in braces.
func ParseUUID(text []byte) ([16]byte, error) {
	u, err := uuid.ParseBytes(text)
	if err != nil {
		return u, notA("a UUID", text)
	}
	return u, nil
}

// digitsOf reads exactly len(text) decimal digits.
func digitsOf(text []byte) (n int, ok bool) {
	for _, c := range text {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return n, true
}

// ParseDate parses a date of the form YYYY-MM-DD, from 0001-01-01 to 9999-12-31. It returns the number of days since
// 1970-01-01.
func ParseDate(text []byte) (days int32, err error) {
	if len(text) == 10 && text[4] == '-' && text[7] == '-' {
		year, okYear := digitsOf(text[:4])
		month, okMonth := digitsOf(text[5:7])
		day, okDay := digitsOf(text[8:])
		if okYear && okMonth && okDay && year > 0 && month >= 1 && month <= 12 && day >= 1 && day <= daysIn(year, month) {
			return daysOf(year, month, day), nil
		}
	}
	return 0, notA("a DATE such as 2026-11-22", text)
}

var monthLengths = [...]int{31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}

func daysIn(year, month int) int {
	if month == 2 && year%4 == 0 && (year%100 != 0 || year%400 == 0) {
		return 29
	}
	return monthLengths[month-1]
}

// daysOf counts the days from 1970-01-01 in the proleptic Gregorian calendar: https://howardhinnant.github.io/date_algorithms.html#days_from_civil
func daysOf(year, month, day int) int32 {
	if month <= 2 {
		year--
	}
	era := year / 400
	yearOfEra := year - era*400
	dayOfYear := (153*((month+9)%12)+2)/5 + day - 1
	dayOfEra := yearOfEra*365 + yearOfEra/4 - yearOfEra/100 + dayOfYear
	return int32(era*146097 + dayOfEra - 719468)
}

const (
	secondsPerDay = 24 * 60 * 60
	// The first and the last second of TIMESTAMP, 0001-01-01T00:00:00Z and 9999-12-31T23:59:59Z, as seconds since
	// 1970-01-01T00:00:00Z.
	minTimestamp = -62135596800
	maxTimestamp = 253402300799
)

// ParseTimestamp parses a time in RFC 3339 with up to nine digits after the point. It returns seconds since
// 1970-01-01T00:00:00Z and nanoseconds. It also accepts two variants that other databases write: a space in place of
// the letter T, and no offset, which means UTC.
func ParseTimestamp(text []byte) (seconds int64, nanos int32, err error) {
	seconds, nanos, ok := parseTimestamp(text)
	if !ok || seconds < minTimestamp || seconds > maxTimestamp {
		return 0, 0, notA("a TIMESTAMP such as 2026-11-22T10:00:00.123456Z", text)
	}
	return seconds, nanos, nil
}

func parseTimestamp(text []byte) (seconds int64, nanos int32, ok bool) {
	const clock = len("2026-11-22T10:00:00")
	if len(text) < clock || text[10]|0x20 != 't' && text[10] != ' ' || text[13] != ':' || text[16] != ':' {
		return 0, 0, false
	}
	days, err := ParseDate(text[:10])
	hour, okHour := digitsOf(text[11:13])
	minute, okMinute := digitsOf(text[14:16])
	second, okSecond := digitsOf(text[17:19])
	if err != nil || !okHour || !okMinute || !okSecond || hour > 23 || minute > 59 || second > 59 {
		return 0, 0, false
	}
	rest := text[clock:]
	if len(rest) > 0 && rest[0] == '.' {
		if nanos, rest, ok = parseFraction(rest[1:]); !ok {
			return 0, 0, false
		}
	}
	offset, ok := parseOffset(rest)
	return int64(days)*secondsPerDay + int64(hour*3600+minute*60+second-offset), nanos, ok
}

// parseFraction parses one to nine digits after a point, and returns them as nanoseconds.
func parseFraction(text []byte) (nanos int32, rest []byte, ok bool) {
	n := 0
	for n < len(text) && text[n] >= '0' && text[n] <= '9' {
		n++
	}
	if n == 0 || n > 9 {
		return 0, nil, false
	}
	value, _ := digitsOf(text[:n])
	for range 9 - n {
		value *= 10
	}
	return int32(value), text[n:], true
}

// parseOffset parses an offset from UTC: Z, +02:00, +0200, +02, or nothing. It returns the offset in seconds.
func parseOffset(text []byte) (seconds int, ok bool) {
	if len(text) == 0 || len(text) == 1 && text[0]|0x20 == 'z' || string(text) == " UTC" {
		return 0, true
	}
	sign := 1
	switch text[0] {
	case '-':
		sign = -1
	case '+':
	default:
		return 0, false
	}
	digits := text[1:]
	if len(digits) == 5 && digits[2] == ':' {
		digits = []byte{digits[0], digits[1], digits[3], digits[4]}
	}
	if len(digits) != 2 && len(digits) != 4 {
		return 0, false
	}
	hours, ok := digitsOf(digits[:2])
	minutes, okMinutes := digitsOf(digits[2:])
	return sign * (hours*3600 + minutes*60), ok && okMinutes && hours < 24 && minutes < 60
}

// UnixNanos returns a time in nanoseconds since 1970. ok is false if this number does not fit into 64 bits, which is
// so before 1677 and after 2262.
func UnixNanos(seconds int64, nanos int32) (n int64, ok bool) {
	const limit = math.MaxInt64 / 1_000_000_000
	switch {
	case seconds > limit || seconds < -limit-1:
		return 0, false
	case seconds < 0:
		// The product of seconds and 10^9 may be too small for 64 bits although the result fits. So one second is added
		// before the multiplication and subtracted after it.
		n = (seconds+1)*1_000_000_000 + int64(nanos) - 1_000_000_000
		return n, n < 0
	}
	n = seconds*1_000_000_000 + int64(nanos)
	return n, n >= 0
}
