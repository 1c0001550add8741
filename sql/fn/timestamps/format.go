package timestamps

import (
	"fmt"
	"strings"
	"time"

	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/sql/fn/sqltext"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// Formats has the functions that format and parse dates and timestamps. The format elements are those of strftime,
// and also %E4Y, %E*S, %E3S, %Ez, %Q and %J
// (https://cloud.google.com/spanner/docs/reference/standard-sql/format-elements).
var Formats = []fn.Record{
	{Name: "format_date", Doc: "FORMAT_DATE(format, date): a date as a format says; elements of times stay empty.",
		Overloads: []fn.Overload{fn.On("STRING, DATE -> STRING", fn.Strict(formatDate))}},
	{Name: "format_timestamp", Doc: "FORMAT_TIMESTAMP(format, timestamp, zone): a timestamp as a format says, in a time zone.", Property: fn.Stable,
		Overloads: []fn.Overload{fn.On("STRING, TIMESTAMP, ?STRING -> STRING", fn.Strict(formatTimestamp))}},
	{Name: "parse_date", Doc: "PARSE_DATE(format, text): the date that the text stands for.",
		Overloads: []fn.Overload{fn.On("STRING, STRING -> DATE", fn.Strict(parseFormattedDate))}},
	{Name: "parse_timestamp", Doc: "PARSE_TIMESTAMP(format, text, zone): the instant that the text stands for, in a time zone unless it names one.", Property: fn.Stable,
		Overloads: []fn.Overload{fn.On("STRING, STRING, ?STRING -> TIMESTAMP", fn.Strict(parseFormattedTimestamp))}},
	{Name: "string", Doc: "STRING(timestamp, zone): a timestamp or date as CAST prints it.", Property: fn.Stable, Overloads: []fn.Overload{
		fn.On("TIMESTAMP, ?STRING -> STRING", fn.Strict(timestampToString)),
		fn.On("DATE -> STRING", fn.Strict(sqltext.ToText)),
	}},
}

func timestampToString(ctx *fn.Context, a []value.Value) (value.Value, error) {
	zone, err := zoneArgument(ctx, a, 1)
	if err != nil {
		return value.Value{}, err
	}
	seconds, nanos := a[0].AsTimestamp()
	return fn.OfString(string(value.AppendTimestampIn(nil, seconds, nanos, zone)))
}

// civil is an instant as date and time of day in a time zone.
type civil struct {
	days   int64
	clock  int64 // seconds since midnight
	nanos  int32
	offset int64
	unix   int64
	date   bool // the value is a DATE, without time and zone
}

func civilOf(t value.Value, zone *time.Location) civil {
	seconds, nanos := t.AsTimestamp()
	offset := value.ZoneOffset(seconds, zone)
	days := floorDiv(seconds+offset, secondsPerDay)
	return civil{days: days, clock: seconds + offset - days*secondsPerDay, nanos: nanos, offset: offset, unix: seconds}
}

func formatDate(_ *fn.Context, a []value.Value) (value.Value, error) {
	c := civil{days: int64(a[1].AsDate()), unix: int64(a[1].AsDate()) * secondsPerDay, date: true}
	return fn.OfString(string(c.format(nil, a[0].AsString())))
}

func formatTimestamp(ctx *fn.Context, a []value.Value) (value.Value, error) {
	zone, err := zoneArgument(ctx, a, 2)
	if err != nil {
		return value.Value{}, err
	}
	c := civilOf(a[1], zone)
	if days := int64(value.MinDate); c.days < days || c.days > value.MaxDate {
		return value.Value{}, usererror.TimestampRange()
	}
	return fn.OfString(string(c.format(nil, a[0].AsString())))
}

// ofTime lists the elements that print a time or a zone. For a DATE they print nothing.
const ofTime = "cHIklMPpRrSTXsZz"

func (c civil) format(dst []byte, format string) []byte {
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			dst = append(dst, format[i])
			continue
		}
		i++
		element := format[i]
		if element == 'E' || element == 'O' {
			var size int
			if dst, size = c.extended(dst, format[i:]); size > 0 {
				i += size - 1
				continue
			}
			dst = append(dst, '%', element)
			continue
		}
		if c.date && strings.IndexByte(ofTime, element) >= 0 {
			if element == 'c' {
				dst = c.format(dst, "%a %b %e %Y")
			}
			continue
		}
		dst = c.element(dst, element)
	}
	return dst
}

// extended appends the value of an element that begins with %E or %O. spec is the format after the %. size is the
// length of the element in spec; 0 if there is no such element.
func (c civil) extended(dst []byte, spec string) (out []byte, size int) {
	switch {
	case strings.HasPrefix(spec, "E4Y"):
		y, _, _ := value.CivilOf(int32(c.days))
		return fmt.Appendf(dst, "%04d", y), 3
	case strings.HasPrefix(spec, "Ez"):
		return c.timed(dst, func(d []byte) []byte { return c.appendOffset(d, ":") }), 2
	case strings.HasPrefix(spec, "E*S"):
		return c.timed(dst, c.appendSecondsFull), 3
	case len(spec) >= 3 && spec[0] == 'E' && spec[1] >= '0' && spec[1] <= '9' && spec[2] == 'S':
		return c.timed(dst, func(d []byte) []byte { return c.appendSeconds(d, int(spec[1]-'0')) }), 3
	case len(spec) >= 2 && strings.IndexByte("cCxXyYdeHImMSuUVwWg", spec[1]) >= 0:
		return c.format(dst, "%"+spec[1:2]), 2
	}
	return dst, 0
}

// timed returns f(dst); for a DATE it returns dst unchanged.
func (c civil) timed(dst []byte, f func([]byte) []byte) []byte {
	if c.date {
		return dst
	}
	return f(dst)
}

func (c civil) appendSeconds(dst []byte, digits int) []byte {
	dst = fmt.Appendf(dst, "%02d", c.clock%60)
	if digits == 0 {
		return dst
	}
	return append(append(dst, '.'), fmt.Sprintf("%09d", c.nanos)[:digits]...)
}

func (c civil) appendSecondsFull(dst []byte) []byte {
	digits := strings.TrimRight(fmt.Sprintf("%09d", c.nanos), "0")
	return c.appendSeconds(dst, len(digits))
}

func (c civil) appendOffset(dst []byte, colon string) []byte {
	sign, offset := '+', c.offset
	if offset < 0 {
		sign, offset = '-', -offset
	}
	return fmt.Appendf(dst, "%c%02d%s%02d", sign, offset/3600, colon, offset/60%60)
}

// appendZone appends the zone's offset in the form UTC, UTC-8 or UTC+5:30.
func (c civil) appendZone(dst []byte) []byte {
	dst = append(dst, "UTC"...)
	sign, offset := '+', c.offset
	if offset < 0 {
		sign, offset = '-', -offset
	}
	if offset == 0 {
		return dst
	}
	dst = fmt.Appendf(dst, "%c%d", sign, offset/3600)
	if minutes := offset / 60 % 60; minutes != 0 {
		dst = fmt.Appendf(dst, ":%02d", minutes)
	}
	return dst
}

// composed maps each format element that is an abbreviation to the format for which it stands.
var composed = map[byte]string{
	'c': "%a %b %e %H:%M:%S %Y", 'D': "%m/%d/%y", 'F': "%Y-%m-%d", 'R': "%H:%M", 'r': "%I:%M:%S %p", 'T': "%H:%M:%S",
	'X': "%H:%M:%S", 'x': "%m/%d/%y", 'n': "\n", 't': "\t", '%': "%%",
}

func (c civil) element(dst []byte, element byte) []byte {
	switch element {
	case '%':
		return append(dst, '%')
	case 'Z':
		return c.appendZone(dst)
	case 'z':
		return c.appendOffset(dst, "")
	case 's':
		return fmt.Appendf(dst, "%d", c.unix)
	}
	if format, ok := composed[element]; ok {
		return c.format(dst, format)
	}
	if out, ok := c.appendClock(dst, element); ok {
		return out
	}
	if out, ok := c.appendDay(dst, element); ok {
		return out
	}
	return append(dst, '%', element)
}

func (c civil) appendClock(dst []byte, element byte) (out []byte, ok bool) {
	h := c.clock / 3600
	switch element {
	case 'H':
		return fmt.Appendf(dst, "%02d", h), true
	case 'k':
		return fmt.Appendf(dst, "%2d", h), true
	case 'I':
		return fmt.Appendf(dst, "%02d", (h+11)%12+1), true
	case 'l':
		return fmt.Appendf(dst, "%2d", (h+11)%12+1), true
	case 'M':
		return fmt.Appendf(dst, "%02d", c.clock/60%60), true
	case 'S':
		return fmt.Appendf(dst, "%02d", c.clock%60), true
	case 'p':
		return append(dst, [2]string{"AM", "PM"}[h/12]...), true
	case 'P':
		return append(dst, [2]string{"am", "pm"}[h/12]...), true
	}
	return dst, false
}

func (c civil) appendDay(dst []byte, element byte) (out []byte, ok bool) {
	y, m, d := value.CivilOf(int32(c.days))
	wday := weekday(c.days)
	isoY, isoW := isoYearWeek(c.days)
	switch element {
	case 'A':
		return append(dst, time.Weekday(wday).String()...), true
	case 'a':
		return append(dst, time.Weekday(wday).String()[:3]...), true
	case 'B':
		return append(dst, time.Month(m).String()...), true
	case 'b', 'h':
		return append(dst, time.Month(m).String()[:3]...), true
	case 'C':
		return fmt.Appendf(dst, "%02d", y/100), true
	case 'd':
		return fmt.Appendf(dst, "%02d", d), true
	case 'e':
		return fmt.Appendf(dst, "%2d", d), true
	case 'G':
		return fmt.Appendf(dst, "%d", isoY), true
	case 'g':
		return fmt.Appendf(dst, "%02d", isoY%100), true
	case 'J':
		return fmt.Appendf(dst, "%03d", c.days-startOfISOYear(isoY)+1), true
	case 'j':
		return fmt.Appendf(dst, "%03d", dayInYear(c.days)), true
	case 'm':
		return fmt.Appendf(dst, "%02d", m), true
	case 'Q':
		return fmt.Appendf(dst, "%d", (m-1)/3+1), true
	case 'U':
		return fmt.Appendf(dst, "%02d", weekOfYear(c.days, 0)), true
	case 'W':
		return fmt.Appendf(dst, "%02d", weekOfYear(c.days, 1)), true
	case 'V':
		return fmt.Appendf(dst, "%02d", isoW), true
	case 'u':
		return fmt.Appendf(dst, "%d", (wday+6)%7+1), true
	case 'w':
		return fmt.Appendf(dst, "%d", wday), true
	case 'Y':
		return fmt.Appendf(dst, "%d", y), true
	case 'y':
		return fmt.Appendf(dst, "%02d", y%100), true
	}
	return dst, false
}
