package timestamps

import (
	"strings"
	"time"

	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

func parseFormattedDate(_ *fn.Context, a []value.Value) (value.Value, error) {
	p := newDateParser(a[1].AsString(), time.UTC)
	if err := p.run(a[0].AsString(), true); err != nil {
		return value.Value{}, err
	}
	if p.unixSeen {
		return fn.BadArgument("Invalid result from parsing function")
	}
	days, err := p.days()
	if err != nil || value.ValidDate(days) {
		return value.OfDate(int32(days)), err
	}
	return value.Value{}, usererror.DateRange()
}

func parseFormattedTimestamp(ctx *fn.Context, a []value.Value) (value.Value, error) {
	zone, err := zoneArgument(ctx, a, 2)
	if err != nil {
		return value.Value{}, err
	}
	p := newDateParser(a[1].AsString(), zone)
	if err := p.run(a[0].AsString(), false); err != nil {
		return value.Value{}, err
	}
	return p.timestamp()
}

// dateParser parses a text by a format. The parts of the date and time that the format does not name are those of
// 1970-01-01 00:00:00; CAST uses the current year and month instead.
type dateParser struct {
	text, rest string
	zone       *time.Location
	west       bool // the hours of the zone offset (TZH) were read with a minus sign, perhaps as -00

	year, month, day     int
	century              int
	twoDigits            bool // year holds only the last two digits of the year
	centurySeen          bool
	hour, minute, second int
	nanos                int
	twelve, afternoon    bool
	unix                 int64
	unixSeen             bool

	// These fields hold a date that the text gives in another way than by month and day. If the text does not give
	// them, isoYear and weekOfYear are -1, and the other fields are 0 or false.
	dayOfYear, isoYear, isoWeek, isoDayOfYear int
	weekOfYear, weekStart                     int
	weekday                                   int  // from 1, Monday, to 7, Sunday
	calendar                                  bool // a calendar element such as %m was read; isoYear is then ignored
}

func newDateParser(text string, zone *time.Location) *dateParser {
	return &dateParser{text: text, rest: text, zone: zone, year: 1970, month: 1, day: 1, isoYear: -1, weekOfYear: -1}
}

func (p *dateParser) fail(why string) error {
	return usererror.BadArgument(why + "; error in parsing string \"" + p.text + "\"")
}

func (p *dateParser) mismatch() error {
	return usererror.BadArgument("Failed to parse input string \"" + p.text + "\"")
}

// run parses the whole text. If date is set, the result is a DATE, and run refuses elements of a time.
func (p *dateParser) run(format string, date bool) error {
	p.rest = strings.TrimLeft(p.rest, fn.ASCIISpace)
	for i := 0; i < len(format); i++ {
		c := format[i]
		switch {
		case strings.IndexByte(fn.ASCIISpace, c) >= 0:
			p.rest = strings.TrimLeft(p.rest, fn.ASCIISpace)
			continue
		case c != '%':
			if p.rest == "" || p.rest[0] != c {
				return p.fail("Mismatch between format character '" + string(c) + "' and string character")
			}
			p.rest = p.rest[1:]
			continue
		case i+1 == len(format):
			return p.fail("Format string cannot end with a single '%'")
		}
		i++
		if date && (strings.IndexByte(ofTime, format[i]) >= 0 || strings.HasPrefix(format[i:], "Ez") || isFraction(format[i:])) {
			return usererror.BadArgument("Invalid format: %" + format[i:i+1] + " is not allowed for the DATE type.")
		}
		size, ok, err := p.element(format[i:])
		if err != nil {
			return err
		}
		if !ok {
			return p.mismatch()
		}
		i += size - 1
	}
	if p.rest = strings.TrimLeft(p.rest, fn.ASCIISpace); p.rest != "" {
		return usererror.BadArgument("Illegal non-space trailing data '" + p.rest + "' in string \"" + p.text + "\"")
	}
	return nil
}

// isFraction reports whether spec begins with E*S, or with an E, a digit and an S, such as E3S.
func isFraction(spec string) bool {
	return len(spec) >= 3 && spec[0] == 'E' && spec[2] == 'S' && (spec[1] == '*' || spec[1] >= '0' && spec[1] <= '9')
}

// number reads a decimal number that has at most the given number of digits. ok is false if there is no digit, or if
// the number is not in the range from the parameter least to the parameter most.
func (p *dateParser) number(digits, least, most int) (n int, ok bool) {
	i := 0
	for ; i < digits && i < len(p.rest) && p.rest[i] >= '0' && p.rest[i] <= '9'; i++ {
		n = n*10 + int(p.rest[i]-'0')
	}
	if i == 0 || n < least || n > most {
		return 0, false
	}
	p.rest = p.rest[i:]
	return n, true
}

func (p *dateParser) into(field *int, digits, least, most int) (ok bool) {
	*field, ok = p.number(digits, least, most)
	return ok
}

// element parses the text by one element. spec is the format after the %. size is the length of the element in spec.
// ok is false if the text does not match.
func (p *dateParser) element(spec string) (size int, ok bool, err error) {
	switch c := spec[0]; {
	case c == 'E' || c == 'O':
		return p.extendedElement(spec)
	case composed[c] != "" && strings.IndexByte("nt%", c) < 0:
		return 1, p.sub(composed[c]), nil
	case c == '%':
		return 1, p.accept("%"), nil
	case c == 'n' || c == 't':
		p.rest = strings.TrimLeft(p.rest, fn.ASCIISpace)
		return 1, true, nil
	case c == 'Z':
		ok, err = p.zoneName()
		return 1, ok, err
	case c == 'z':
		return 1, p.offset(), nil
	case c == 'Y' && len(spec) > 1 && spec[1] == '%':
		return 1, p.fullYear(4), nil
	case c == 'Y':
		return 1, p.fullYear(5), nil
	}
	if ok, known := p.clockElement(spec[0]); known {
		return 1, ok, nil
	}
	if ok, known := p.dayElement(spec[0]); known {
		return 1, ok, nil
	}
	return 0, false, p.fail("Invalid format: unknown format element %" + spec[:1])
}

// sub parses the text by the elements that a composed element stands for. If the text does not match, sub returns
// false and reads nothing.
func (p *dateParser) sub(format string) bool {
	text := p.text
	rest := p.rest
	inner := *p
	inner.text, inner.rest = rest, rest
	for i := 0; i < len(format); i++ {
		switch {
		case format[i] == ' ':
			inner.rest = strings.TrimLeft(inner.rest, fn.ASCIISpace)
		case format[i] != '%':
			if !inner.accept(format[i : i+1]) {
				return false
			}
		default:
			i++
			if _, ok, err := inner.element(format[i:]); err != nil || !ok {
				return false
			}
		}
	}
	*p = inner
	p.text = text
	return true
}

func (p *dateParser) accept(s string) bool {
	rest, ok := strings.CutPrefix(p.rest, s)
	if ok {
		p.rest = rest
	}
	return ok
}

func (p *dateParser) extendedElement(spec string) (size int, ok bool, err error) {
	switch {
	case strings.HasPrefix(spec, "E4Y"):
		before := len(p.rest)
		ok := p.fullYear(4)
		return 3, ok && before-len(p.rest) == 4, nil
	case isFraction(spec):
		digits := 9
		if spec[1] != '*' {
			digits = int(spec[1] - '0')
		}
		return 3, p.into(&p.second, 2, 0, 60) && p.fraction(digits), nil
	case strings.HasPrefix(spec, "Ez"):
		return 2, p.accept("Z") && p.setOffset(0) || p.offset(), nil
	case len(spec) > 1 && strings.IndexByte("cCxXyYdeHImMSuUVwWg", spec[1]) >= 0:
		_, ok, err = p.element(spec[1:])
		return 2, ok, err
	}
	return 0, false, p.fail("Invalid format: unknown format element %" + spec[:1])
}

// fraction reads a point and at most the given number of digits into p.nanos. It does not read further digits. The
// whole fraction may be missing.
func (p *dateParser) fraction(digits int) bool {
	if digits == 0 || !strings.HasPrefix(p.rest, ".") {
		return true
	}
	p.rest = p.rest[1:]
	p.nanos = 0
	n := 0
	for ; n < digits && n < len(p.rest) && p.rest[n] >= '0' && p.rest[n] <= '9'; n++ {
		p.nanos = p.nanos*10 + int(p.rest[n]-'0')
	}
	p.rest = p.rest[n:]
	for range 9 - n {
		p.nanos *= 10
	}
	return n > 0
}

func (p *dateParser) fullYear(digits int) bool {
	p.twoDigits, p.centurySeen, p.calendar = false, false, true
	return p.into(&p.year, digits, 0, 10_000)
}

func (p *dateParser) clockElement(element byte) (ok, known bool) {
	switch element {
	case 'H', 'k':
		p.twelve = false
		p.rest = strings.TrimLeft(p.rest, " ")
		return p.into(&p.hour, 2, 0, 23), true
	case 'I', 'l':
		p.twelve = true
		p.rest = strings.TrimLeft(p.rest, " ")
		return p.into(&p.hour, 2, 1, 12), true
	case 'M':
		return p.into(&p.minute, 2, 0, 59), true
	case 'S':
		return p.into(&p.second, 2, 0, 60), true
	case 'p', 'P':
		return p.meridian(), true
	case 's':
		p.unixSeen, p.calendar = true, true
		neg := p.accept("-")
		n, ok := p.number(12, 0, 999_999_999_999)
		if p.unix = int64(n); neg {
			p.unix = -p.unix
		}
		return ok, true
	}
	return false, false
}

func (p *dateParser) meridian() bool {
	if len(p.rest) < 2 || !strings.EqualFold(p.rest[1:2], "m") {
		return false
	}
	c := p.rest[0] | ' '
	p.afternoon = c == 'p'
	p.rest = p.rest[2:]
	return c == 'a' || c == 'p'
}

func (p *dateParser) dayElement(element byte) (ok, known bool) {
	switch element {
	case 'm', 'd', 'e', 'Q', 'B', 'b', 'h', 'y', 'C', 'j', 'U', 'W':
		p.calendar = true
	}
	switch element {
	case 'm':
		return p.into(&p.month, 2, 1, 12), true
	case 'd', 'e':
		p.rest = strings.TrimLeft(p.rest, " ")
		return p.into(&p.day, 2, 1, 31), true
	case 'Q':
		q, ok := p.number(1, 1, 4)
		p.month, p.day = q*3-2, 1
		return ok, true
	case 'B', 'b', 'h':
		return p.name(&p.month, 12, func(i int) string { return time.Month(i).String() }), true
	case 'y':
		ok := p.into(&p.year, 2, 0, 99)
		if p.twoDigits = true; !p.centurySeen {
			p.century = 19
			if p.year < 69 {
				p.century = 20
			}
		}
		return ok, true
	case 'C':
		if !p.twoDigits {
			p.year = 0
		}
		p.twoDigits, p.centurySeen = true, true
		return p.into(&p.century, 2, 0, 99), true
	case 'j':
		return p.into(&p.dayOfYear, 3, 1, 366), true
	case 'U', 'W':
		p.weekStart = strings.IndexByte("UW", element)
		return p.into(&p.weekOfYear, 2, 0, 53), true
	case 'G':
		return p.into(&p.isoYear, 5, 0, 9999), true
	case 'g':
		ok := p.into(&p.isoYear, 2, 0, 99)
		if p.isoYear += 1900; p.isoYear < 1969 {
			p.isoYear += 100
		}
		return ok, true
	case 'V':
		return p.into(&p.isoWeek, 2, 1, 53), true
	case 'J':
		return p.into(&p.isoDayOfYear, 3, 1, 371), true
	case 'u':
		return p.into(&p.weekday, 1, 1, 7), true
	case 'w':
		ok := p.into(&p.weekday, 1, 0, 6)
		if p.weekday == 0 {
			p.weekday = 7
		}
		return ok, true
	case 'A', 'a':
		return p.name(&p.weekday, 7, func(i int) string { return time.Weekday(i % 7).String() }), true
	}
	return false, false
}

// name reads one of n names, in full or only its first three letters. It stores the name's number, from 1 to n, in
// *field.
func (p *dateParser) name(field *int, n int, nameOf func(int) string) bool {
	for i := 1; i <= n; i++ {
		name := nameOf(i)
		for _, form := range []string{name, name[:3]} {
			if len(p.rest) >= len(form) && strings.EqualFold(p.rest[:len(form)], form) {
				*field, p.rest = i, p.rest[len(form):]
				return true
			}
		}
	}
	return false
}

// offset reads a zone offset of the form (+|-)HH[[:]MM].
func (p *dateParser) offset() bool {
	if p.rest == "" || p.rest[0] != '+' && p.rest[0] != '-' {
		return false
	}
	neg := p.rest[0] == '-'
	p.rest = p.rest[1:]
	hours, ok := p.number(2, 0, 14)
	if !ok {
		return false
	}
	p.accept(":")
	minutes, _ := p.number(2, 0, 59)
	seconds := hours*3600 + minutes*60
	if neg {
		seconds = -seconds
	}
	return seconds <= 14*3600 && seconds >= -14*3600 && p.setOffset(seconds)
}

func (p *dateParser) setOffset(seconds int) bool {
	p.zone = time.FixedZone("", seconds)
	return true
}

func (p *dateParser) zoneName() (ok bool, err error) {
	end := strings.IndexAny(p.rest, fn.ASCIISpace)
	if end < 0 {
		end = len(p.rest)
	}
	name := p.rest[:end]
	p.rest = p.rest[end:]
	zone, err := value.LoadZone(name)
	if err != nil {
		return false, usererror.BadArgument("Invalid time zone: " + name)
	}
	p.zone = zone
	return true, nil
}
