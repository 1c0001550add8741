package timestamps

import (
	"fmt"
	"strings"
	"time"

	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// The functions in this file cast between text and dates or timestamps with a FORMAT such as 'YYYY-MM-DD HH24:MI:SS'
// (https://cloud.google.com/spanner/docs/reference/standard-sql/conversion_functions#formatting_syntax).

// castElements lists the format elements. An element precedes the shorter elements with which it begins, so that the
// longest is found first.
var castElements = []string{
	"YYYY", "YYY", "YY", "Y", "RRRR", "RR", "MONTH", "MON", "MM", "DDD", "DD", "DAY", "DY", "D", "HH24", "HH12", "HH", "MI", "SSSSS", "SS",
	"FF1", "FF2", "FF3", "FF4", "FF5", "FF6", "FF7", "FF8", "FF9", "A.M.", "AM", "P.M.", "PM", "TZH", "TZM",
}

// castElement is a format element, or literal text.
type castElement struct {
	name    string // name of the element in upper case; empty for literal text
	written string
}

func parseCastFormat(format string) ([]castElement, error) {
	var elements []castElement
	for rest := format; rest != ""; {
		e := castElement{}
		switch {
		case rest[0] == '"':
			text, after, ok := fn.CutQuoted(rest, '"')
			if !ok {
				return nil, usererror.BadArgument("Cannot find matching \" for quoted literal at " + fn.Int64Text(int64(len(format)-len(rest))))
			}
			e.written, rest = text, after
		case strings.IndexByte("-./,';: ", rest[0]) >= 0:
			e.written, rest = rest[:1], rest[1:]
		default:
			for _, name := range castElements {
				if len(rest) >= len(name) && strings.EqualFold(rest[:len(name)], name) {
					e = castElement{name, rest[:len(name)]}
					break
				}
			}
			if e.name == "" {
				return nil, usererror.BadArgument("Cannot find matched format element at " + fn.Int64Text(int64(len(format)-len(rest))))
			}
			rest = rest[len(e.written):]
		}
		elements = append(elements, e)
	}
	return elements, nil
}

// FormatDateElements casts a DATE to STRING with FORMAT.
func FormatDateElements(_ *fn.Context, a []value.Value) (value.Value, error) {
	return formatElements(civil{days: int64(a[0].AsDate()), date: true}, a[1].AsString())
}

// FormatTimestampElements casts a TIMESTAMP to STRING with FORMAT.
func FormatTimestampElements(ctx *fn.Context, a []value.Value) (value.Value, error) {
	zone, err := zoneArgument(ctx, a, 2)
	if err != nil {
		return value.Value{}, err
	}
	return formatElements(civilOf(a[0], zone), a[1].AsString())
}

func formatElements(c civil, format string) (value.Value, error) {
	elements, err := parseCastFormat(format)
	if err != nil {
		return value.Value{}, err
	}
	var out []byte
	for _, e := range elements {
		if e.name == "" {
			out = append(out, e.written...)
			continue
		}
		if c.date && isTimeElement(e.name) {
			return fn.BadArgument("DATE does not support '" + e.written + "'")
		}
		out = append(out, c.castElement(e)...)
	}
	return fn.OfString(string(out))
}

func isTimeElement(name string) bool {
	switch name[0] {
	case 'H', 'S', 'F', 'A', 'P', 'T':
		return true
	}
	return name == "MI"
}

func (c civil) castElement(e castElement) string {
	year, month, _ := value.CivilOf(int32(c.days))
	clock := int(c.clock)
	switch e.name {
	case "YYYY", "RRRR":
		return fmt.Sprintf("%04d", year)
	case "YYY":
		return fmt.Sprintf("%03d", year%1000)
	case "YY", "RR":
		return fmt.Sprintf("%02d", year%100)
	case "Y":
		return fmt.Sprintf("%d", year%10)
	case "MONTH":
		return cased(time.Month(month).String(), e.written)
	case "MON":
		return cased(time.Month(month).String()[:3], e.written)
	case "DAY":
		return cased(time.Weekday(weekday(c.days)).String(), e.written)
	case "DY":
		return cased(time.Weekday(weekday(c.days)).String()[:3], e.written)
	case "D":
		return fmt.Sprintf("%d", weekday(c.days)+1)
	case "SSSSS":
		return fmt.Sprintf("%05d", clock)
	case "AM", "PM":
		return cased([2]string{"AM", "PM"}[clock/43200], e.written)
	case "A.M.", "P.M.":
		return cased([2]string{"A.M.", "P.M."}[clock/43200], e.written)
	case "TZH":
		return string(c.appendOffset(nil, ""))[:3]
	case "TZM":
		return string(c.appendOffset(nil, ""))[3:]
	}
	if digits, ok := strings.CutPrefix(e.name, "FF"); ok {
		return fmt.Sprintf("%09d", c.nanos)[:digits[0]-'0']
	}
	strftime := map[string]string{"MM": "%m", "DD": "%d", "DDD": "%j", "HH": "%I", "HH12": "%I", "HH24": "%H", "MI": "%M", "SS": "%S"}
	return string(c.format(nil, strftime[e.name]))
}

// cased changes the letter case of its first parameter to that of its second parameter, a format element as the user
// wrote it: all upper case (AB), only the first letter in upper case (Ab), or all lower case (ab).
func cased(text, written string) string {
	switch {
	case written == strings.ToUpper(written):
		return strings.ToUpper(text)
	case written[:1] == strings.ToUpper(written[:1]):
		return text[:1] + strings.ToLower(text[1:])
	}
	return strings.ToLower(text)
}

// castParse maps an element of CAST to the element of PARSE_TIMESTAMP that parses the same text. The method castElement
// of dateParser parses the elements of CAST that are not in the map.
var castParse = map[string]string{
	"YYYY": "Y", "RRRR": "Y", "MM": "m", "DD": "d", "DDD": "j", "MONTH": "B", "MON": "b", "HH": "I", "HH12": "I", "HH24": "H", "MI": "M", "SS": "S",
	"AM": "p", "PM": "p",
}

// ParseDateElements casts a STRING to DATE with FORMAT.
func ParseDateElements(ctx *fn.Context, a []value.Value) (value.Value, error) {
	p := newDateParser(a[0].AsString(), time.UTC)
	p.startOfMonth(ctx)
	if err := p.runElements(a[1].AsString(), true); err != nil {
		return value.Value{}, err
	}
	days, err := p.days()
	if err != nil || value.ValidDate(days) {
		return value.OfDate(int32(days)), err
	}
	return value.Value{}, usererror.DateRange()
}

// ParseTimestampElements casts a STRING to TIMESTAMP with FORMAT.
func ParseTimestampElements(ctx *fn.Context, a []value.Value) (value.Value, error) {
	zone, err := zoneArgument(ctx, a, 2)
	if err != nil {
		return value.Value{}, err
	}
	p := newDateParser(a[0].AsString(), zone)
	p.startOfMonth(ctx)
	if err := p.runElements(a[1].AsString(), false); err != nil {
		return value.Value{}, err
	}
	return p.timestamp()
}

// startOfMonth sets the date to the first day of the current month. CAST takes the parts of a date that its format does
// not name, such as the year, from this day.
func (p *dateParser) startOfMonth(ctx *fn.Context) {
	c := civilOf(value.OfTime(ctx.Now), p.zone)
	p.year, p.month, _ = value.CivilOf(int32(c.days))
}

func (p *dateParser) runElements(format string, date bool) error {
	elements, err := parseCastFormat(format)
	if err != nil {
		return err
	}
	p.rest = strings.TrimLeft(p.rest, fn.ASCIISpace)
	for _, e := range elements {
		switch {
		case e.name == "" && e.written == " ":
			p.rest = strings.TrimLeft(p.rest, fn.ASCIISpace)
			continue
		case e.name == "":
			if !p.accept(e.written) {
				return p.mismatch()
			}
			continue
		case date && isTimeElement(e.name):
			return usererror.BadArgument("DATE does not support '" + e.written + "'")
		}
		if ok, err := p.castElement(e.name); err != nil || !ok {
			if err == nil {
				err = p.mismatch()
			}
			return err
		}
	}
	if p.rest = strings.TrimLeft(p.rest, fn.ASCIISpace); p.rest != "" {
		return usererror.BadArgument("Illegal non-space trailing data '" + p.rest + "' in string \"" + p.text + "\"")
	}
	return nil
}

func (p *dateParser) castElement(name string) (ok bool, err error) {
	if spec, found := castParse[name]; found {
		if spec == "Y" {
			return p.fullYear(4), nil
		}
		_, ok, err = p.element(spec)
		return ok, err
	}
	switch name {
	case "YYY", "YY", "Y":
		return p.yearEnd(len(name)), nil
	case "RR":
		_, ok, err = p.element("y")
		return ok, err
	case "SSSSS":
		n, ok := p.number(5, 0, secondsPerDay-1)
		p.hour, p.minute, p.second, p.twelve = n/3600, n/60%60, n%60, false
		return ok, nil
	case "A.M.", "P.M.":
		if len(p.rest) < 4 || !strings.EqualFold(p.rest[1:4], ".m.") {
			return false, nil
		}
		p.afternoon = p.rest[0]|' ' == 'p'
		p.rest = p.rest[4:]
		return true, nil
	case "TZH", "TZM":
		return p.zonePart(name == "TZH"), nil
	}
	if digits, isFraction := strings.CutPrefix(name, "FF"); isFraction {
		p.rest = "." + p.rest
		return p.fraction(int(digits[0] - '0')), nil
	}
	return false, usererror.BadArgument("Format element '" + name + "' is not supported for parsing")
}

// yearEnd reads the last digits of a year. The digits before them are those of p.year, the current year.
func (p *dateParser) yearEnd(digits int) bool {
	unit := [...]int{1, 10, 100, 1000}[digits]
	n, ok := p.number(digits, 0, unit-1)
	p.year = p.year/unit*unit + n
	return ok
}

// zonePart reads a part of a zone offset: the hours with their sign, or the minutes.
func (p *dateParser) zonePart(hours bool) bool {
	if hours {
		p.west = strings.HasPrefix(p.rest, "-")
		if !p.west && !strings.HasPrefix(p.rest, "+") {
			return false
		}
		p.rest = p.rest[1:]
		n, ok := p.number(2, 0, 14)
		if p.west {
			n = -n
		}
		return ok && p.setOffset(n*3600)
	}
	n, ok := p.number(2, 0, 59)
	_, offset := time.Unix(0, 0).In(p.zone).Zone()
	if p.west || offset < 0 {
		n = -n
	}
	return ok && p.setOffset(offset+n*60)
}
