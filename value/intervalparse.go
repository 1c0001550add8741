package value

import (
	"fmt"
	"strings"
)

// ParseInterval parses an interval as CAST does. The text has one of two forms. One is ISO 8601 (P1Y2M3W4DT5H6M7.8S):
// its parts may have any order and sign and may be repeated, and only seconds may have a fraction. The other is
// GoogleSQL's own form [-]Y-M [-]D [-]H:M:S[.F]. Parts of it may be missing if the dashes, spaces and colons show which
// parts are present.
func ParseInterval(s string) (IntervalValue, error) {
	parse := parseCanonicalInterval
	if strings.HasPrefix(s, "P") {
		parse = parseISOInterval
	}
	i, ok := parse(s)
	if !ok {
		return IntervalValue{}, fmt.Errorf("invalid INTERVAL value: %s", quoted(s))
	}
	return i, nil
}

// parts collects the parts of an interval.
type parts struct{ months, days, seconds, nanos int64 }

func (p parts) interval() (IntervalValue, bool) {
	return NewInterval(p.months, p.days, p.seconds, p.nanos)
}

// digits reads a number of any length. ok is false if there is no digit, or if the number is too large for any part of
// an INTERVAL.
func (s *scanner) digits() (n int64, ok bool) {
	i := 0
	for ; i < len(s.rest) && s.rest[i]-'0' <= 9; i++ {
		if n = n*10 + int64(s.rest[i]-'0'); n >= 1e12 {
			return 0, false
		}
	}
	s.rest = s.rest[i:]
	return n, i > 0
}

// fraction reads the digits of a fraction of a second, whose point was already read. It returns the fraction in
// nanoseconds. ok is false unless there are 1 to 9 digits.
func (s *scanner) fraction() (nanos int64, ok bool) {
	before := len(s.rest)
	n := s.number(1, 9)
	if n < 0 || s.rest != "" && s.rest[0]-'0' <= 9 {
		return 0, false
	}
	for range 9 - (before - len(s.rest)) {
		n *= 10
	}
	return int64(n), true
}

func parseISOInterval(text string) (i IntervalValue, ok bool) {
	s := scanner{text[1:]}
	if s.rest == "" {
		return i, false
	}
	var sum parts
	inTime := false
	for s.rest != "" {
		if s.byte("T") {
			if inTime {
				return i, false
			}
			inTime = true
			continue
		}
		if !s.designated(&sum, inTime) {
			return i, false
		}
		// One call of designated adds less than 10^16. So a sum of at most 10^18 does not overflow in the next call.
		if max(sum.months, sum.days, sum.seconds) > 1e18 || min(sum.months, sum.days, sum.seconds) < -1e18 {
			return i, false
		}
	}
	return sum.interval()
}

// designated reads a number and the letter of its unit, and adds the number to sum. inTime says that a T was read
// before. After a T, the letter M stands for minutes; before it, for months.
func (s *scanner) designated(sum *parts, inTime bool) bool {
	sign := int64(1)
	if s.byte("-") {
		sign = -1
	}
	n, ok := s.digits()
	if !ok {
		return false
	}
	n *= sign
	if s.byte(".,") {
		nanos, ok := s.fraction()
		if !ok || !inTime || !s.byte("S") {
			return false
		}
		sum.seconds += n
		sum.nanos += sign * nanos
		sum.seconds, sum.nanos = sum.seconds+sum.nanos/nanosPerSecond, sum.nanos%nanosPerSecond
		return true
	}
	switch {
	case !inTime && s.byte("Y"):
		sum.months += n * 12
	case !inTime && s.byte("M"):
		sum.months += n
	case !inTime && s.byte("W"):
		sum.days += n * 7
	case !inTime && s.byte("D"):
		sum.days += n
	case inTime && s.byte("H"):
		sum.seconds += n * 3600
	case inTime && s.byte("M"):
		sum.seconds += n * 60
	case inTime && s.byte("S"):
		sum.seconds += n
	default:
		return false
	}
	return true
}

// parseCanonicalInterval parses GoogleSQL's own form. The separators in the text show which parts it has. Each line
// below lists texts that begin with the same part, then the separators that identify this part, then the part:
//
//	Y-M D H:M:S  Y-M D H:M  Y-M D H  Y-M D  Y-M     a dash after a digit: years and months
//	M D H:M:S    M D H:M    M D H                   two spaces: months
//	D H:M:S      D H:M                              one space, colons: days
//	H:M:S                                           two colons
func parseCanonicalInterval(text string) (i IntervalValue, ok bool) {
	s := scanner{text}
	var sum parts
	spaces, colons := strings.Count(text, " "), strings.Count(text, ":")
	yearMonth := strings.Contains(strings.TrimPrefix(strings.SplitN(text, " ", 2)[0], "-"), "-")
	switch {
	case yearMonth:
		if sum.months, ok = s.signed(func() (int64, bool) { return s.pair("-", 12) }); !ok {
			return i, false
		}
		if spaces == 0 {
			break
		}
		ok = s.daysAndTime(&sum, spaces == 2)
	case spaces == 2:
		if sum.months, ok = s.signed(s.digits); ok {
			ok = s.daysAndTime(&sum, true)
		}
	case spaces == 1 && colons > 0:
		if sum.days, ok = s.signed(s.digits); ok && s.byte(" ") {
			ok = s.time(&sum)
		} else {
			ok = false
		}
	case spaces == 0 && colons == 2:
		ok = s.time(&sum)
	}
	if !ok || s.rest != "" {
		return i, false
	}
	return sum.interval()
}

func (s *scanner) signed(number func() (int64, bool)) (n int64, ok bool) {
	neg := strings.HasPrefix(s.rest, "-")
	s.byte("+-")
	n, ok = number()
	if neg {
		n = -n
	}
	return n, ok
}

// pair reads two numbers with a separator between them. It returns first*scale + second.
func (s *scanner) pair(separator string, scale int64) (n int64, ok bool) {
	first, ok := s.digits()
	if !ok || !s.byte(separator) {
		return 0, false
	}
	second, ok := s.digits()
	return first*scale + second, ok
}

func (s *scanner) daysAndTime(sum *parts, withTime bool) (ok bool) {
	if !s.byte(" ") {
		return false
	}
	if sum.days, ok = s.signed(s.digits); !ok || !withTime {
		return ok
	}
	return s.byte(" ") && s.time(sum)
}

// time reads [+|-]H[:M[:S[.F]]] and adds it to sum.
func (s *scanner) time(sum *parts) bool {
	neg := strings.HasPrefix(s.rest, "-")
	s.byte("+-")
	for _, unit := range []int64{3600, 60, 1} {
		n, ok := s.digits()
		if !ok {
			return false
		}
		sum.seconds += n * unit
		if unit == 1 && s.byte(".") {
			if sum.nanos, ok = s.fraction(); !ok {
				return false
			}
		}
		if !s.byte(":") {
			break
		}
		if unit == 1 {
			return false
		}
	}
	if neg {
		sum.seconds, sum.nanos = -sum.seconds, -sum.nanos
	}
	return true
}
