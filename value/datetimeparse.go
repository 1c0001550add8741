package value

import (
	"fmt"
	"strings"
	"time"
)

// scanner reads a text from left to right. rest is the part that it has not read yet. The methods byte, number and
// digits leave rest unchanged if they do not find what they look for.
type scanner struct{ rest string }

// byte reads one byte if it is one of the bytes in set, and reports whether it was.
func (s *scanner) byte(set string) bool {
	if s.rest == "" || strings.IndexByte(set, s.rest[0]) < 0 {
		return false
	}
	s.rest = s.rest[1:]
	return true
}

// number reads a decimal number. The parameters least and most limit the number of digits; most must not exceed 9. It
// returns -1 if there are fewer digits than least.
func (s *scanner) number(least, most int) int {
	n, i := 0, 0
	for ; i < most && i < len(s.rest) && s.rest[i]-'0' <= 9; i++ {
		n = n*10 + int(s.rest[i]-'0')
	}
	if i < least {
		return -1
	}
	s.rest = s.rest[i:]
	return n
}

// date reads YYYY-MM-DD. The parameter least is the minimum number of digits of the month and the day.
func (s *scanner) date(least int) (days int32, ok bool) {
	year := s.number(4, 4)
	dash := s.byte("-")
	month := s.number(least, 2)
	dash = dash && s.byte("-")
	day := s.number(least, 2)
	if !dash || year < 1 || month < 1 || month > 12 || day < 1 || day > DaysIn(year, month) {
		return 0, false
	}
	return DaysOf(year, month, day), true
}

// clock reads HH:MM:SS with an optional fraction of 1 to 9 digits. The parameter least is the minimum
// number of digits of HH, MM and SS. The second 60 becomes the first second of the next minute.
func (s *scanner) clock(least int) (seconds, nanos int, ok bool) {
	hour := s.number(least, 2)
	colon := s.byte(":")
	minute := s.number(least, 2)
	colon = colon && s.byte(":")
	second := s.number(least, 2)
	if !colon || hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 60 {
		return 0, 0, false
	}
	if s.byte(".") {
		before := len(s.rest)
		if nanos = s.number(1, 9); nanos < 0 {
			return 0, 0, false
		}
		for range 9 - (before - len(s.rest)) {
			nanos *= 10
		}
	}
	return hour*3600 + minute*60 + second, nanos, true
}

// ParseDate reads YYYY-[M]M-[D]D.
func ParseDate(text string) (days int32, err error) {
	s := scanner{text}
	days, ok := s.date(1)
	if !ok || s.rest != "" {
		return 0, fmt.Errorf("invalid DATE value: %s", quoted(text))
	}
	return days, nil
}

// ParseTimestampZ reads a timestamp in wire form: RFC 3339, in UTC, ending in Z.
func ParseTimestampZ(text string) (Value, error) {
	s := scanner{text}
	days, ok := s.date(2)
	ok = ok && s.byte("T")
	second, nanos, clock := s.clock(2)
	seconds := int64(days)*secondsPerDay + int64(second)
	switch {
	case !ok || !clock || s.rest == "":
		return Value{}, fmt.Errorf("invalid TIMESTAMP value: %s", quoted(text))
	case !strings.HasSuffix(s.rest, "Z"):
		return Value{}, fmt.Errorf("invalid TIMESTAMP value: %s: it must be in UTC and end in Z", quoted(text))
	case s.rest != "Z":
		return Value{}, fmt.Errorf("invalid TIMESTAMP value: %s", quoted(text))
	case !ValidTimestamp(seconds, int64(nanos)):
		return Value{}, fmt.Errorf("invalid TIMESTAMP value: %s: it is out of range", quoted(text))
	}
	return OfTimestamp(seconds, int32(nanos)), nil
}

// ParseTimestamp reads a timestamp as CAST does: YYYY-[M]M-[D]D[( |T)[[H]H:[M]M:[S]S[.F]][zone]]. The zone in the text
// is Z, [ UTC](+|-)H[H][[:]M[M]], or a space and a name from the time zone database. If the text has no zone, the
// timestamp is in the zone that the caller passes.
func ParseTimestamp(text string, zone *time.Location) (Value, error) {
	bad := func() (Value, error) {
		return Value{}, fmt.Errorf("invalid TIMESTAMP value: %s", quoted(text))
	}
	s := scanner{text}
	days, ok := s.date(1)
	if !ok {
		return bad()
	}
	second, nanos := 0, 0
	if s.rest != "" {
		if !s.byte(" Tt") || s.rest == "" {
			return bad()
		}
		if c := s.rest[0]; c != '+' && c != '-' {
			if second, nanos, ok = s.clock(1); !ok {
				return bad()
			}
		}
	}
	if s.rest != "" {
		var err error
		if zone, err = parseZoneSuffix(s.rest); err != nil {
			return bad()
		}
	}
	seconds := InstantOf(int64(days)*secondsPerDay+int64(second), zone)
	if !ValidTimestamp(seconds, int64(nanos)) {
		return bad()
	}
	return OfTimestamp(seconds, int32(nanos)), nil
}

// parseZoneSuffix parses the time zone at the end of a timestamp. ParseTimestamp describes its syntax.
func parseZoneSuffix(s string) (*time.Location, error) {
	if rest, ok := strings.CutPrefix(s, " UTC"); ok && (rest == "" || rest[0] == '+' || rest[0] == '-') {
		s = rest
	}
	switch {
	case s == "", s == "Z", s == "z":
		return time.UTC, nil
	case s[0] == '+' || s[0] == '-':
		return LoadZone(s)
	case s[0] == ' ' && !strings.HasPrefix(s, " +") && !strings.HasPrefix(s, " -"):
		return LoadZone(s[1:])
	}
	return nil, fmt.Errorf("no time zone: %s", quoted(s))
}
