package value

import (
	"cmp"
	"math"
	"math/big"
	"strconv"
)

// IntervalValue is the value of an INTERVAL. It has three parts with signs of their own: months, days and time
// (Seconds + Nanos).
type IntervalValue struct {
	Months  int32
	Days    int32
	Seconds int64
	Nanos   int32 // 0 to 999,999,999; added to Seconds even if Seconds is negative
}

// The limits of the parts of an INTERVAL: each part can be up to 10,000 years long, positive or negative.
const (
	maxIntervalMonths  = 10_000 * 12
	maxIntervalDays    = 10_000 * 366
	maxIntervalSeconds = maxIntervalDays * secondsPerDay

	daysPerMonth = 30 // for comparing months with days, and for converting one to the other
)

// InRange reports whether each part is in range.
func (i IntervalValue) InRange() bool {
	return i.Months >= -maxIntervalMonths && i.Months <= maxIntervalMonths &&
		i.Days >= -maxIntervalDays && i.Days <= maxIntervalDays &&
		i.Seconds >= -maxIntervalSeconds && i.Seconds <= maxIntervalSeconds &&
		i.Nanos >= 0 && i.Nanos < nanosPerSecond && (i.Seconds < maxIntervalSeconds || i.Nanos == 0)
}

// NewInterval makes an interval from its parts. nanos may be any number, even negative or more than a second. ok is
// false if a part of the interval is out of range.
func NewInterval(months, days, seconds, nanos int64) (i IntervalValue, ok bool) {
	seconds += int64(floorDiv(int(nanos), nanosPerSecond))
	i = IntervalValue{
		Months:  int32(months),
		Days:    int32(days),
		Seconds: seconds,
		Nanos:   int32(nanos - int64(floorDiv(int(nanos), nanosPerSecond))*nanosPerSecond),
	}
	return i, int64(i.Months) == months && int64(i.Days) == days && i.InRange()
}

// total returns the length of the interval, counting 30 days for each month. SQL compares INTERVALs by this length.
func (i IntervalValue) total() (seconds int64, nanos int32) {
	return (int64(i.Months)*daysPerMonth+int64(i.Days))*secondsPerDay + i.Seconds, i.Nanos
}

// Cmp orders intervals by length, with 30 days in a month: 1 month equals 30 days.
func (i IntervalValue) Cmp(j IntervalValue) int {
	iSeconds, iNanos := i.total()
	jSeconds, jNanos := j.total()
	if c := cmp.Compare(iSeconds, jSeconds); c != 0 {
		return c
	}
	return cmp.Compare(iNanos, jNanos)
}

// Neg returns -i.
func (i IntervalValue) Neg() IntervalValue {
	n, _ := NewInterval(-int64(i.Months), -int64(i.Days), -i.Seconds, -int64(i.Nanos))
	return n
}

// Add returns i + j, part by part. ok is false on overflow.
func (i IntervalValue) Add(j IntervalValue) (sum IntervalValue, ok bool) {
	return NewInterval(int64(i.Months)+int64(j.Months), int64(i.Days)+int64(j.Days), i.Seconds+j.Seconds,
		int64(i.Nanos)+int64(j.Nanos))
}

// An IntervalSum adds intervals, part by part. Only the final sum must be in the range of INTERVAL; intermediate sums
// may exceed it.
type IntervalSum struct {
	months, days, seconds, nanos int64
	wide                         *big.Int // the seconds that do not fit into the field seconds; nil if there are none
	n                            int64
}

// Add adds an interval.
func (s *IntervalSum) Add(i IntervalValue) {
	s.n++
	s.months += int64(i.Months)
	s.days += int64(i.Days)
	s.nanos += int64(i.Nanos)
	if s.nanos >= nanosPerSecond {
		s.nanos -= nanosPerSecond
		s.seconds++
	}
	if s.seconds += i.Seconds; s.seconds > math.MaxInt64/2 || s.seconds < math.MinInt64/2 {
		if s.wide == nil {
			s.wide = new(big.Int)
		}
		s.wide.Add(s.wide, big.NewInt(s.seconds))
		s.seconds = 0
	}
}

// Count returns the number of intervals that were added.
func (s *IntervalSum) Count() int64 { return s.n }

// parts returns the sums of the months, of the days and of the times. The sum of the times is in nanoseconds.
func (s *IntervalSum) parts() (months, days, nanos *big.Int) {
	nanos = big.NewInt(s.seconds)
	if s.wide != nil {
		nanos.Add(nanos, s.wide)
	}
	nanos.Mul(nanos, big.NewInt(nanosPerSecond))
	return big.NewInt(s.months), big.NewInt(s.days), nanos.Add(nanos, big.NewInt(s.nanos))
}

// Sum returns the sum. ok is false if it is out of range.
func (s *IntervalSum) Sum() (sum IntervalValue, ok bool) { return intervalOfBig(s.parts()) }

// Average returns the sum divided by Count, as IntervalValue.Div divides. Count must not be 0.
func (s *IntervalSum) Average() (average IntervalValue, ok bool) {
	months, days, nanos := s.parts()
	return divideInterval(months, days, nanos, s.n)
}

// Mul returns i * n, part by part. ok is false on overflow.
func (i IntervalValue) Mul(n int64) (product IntervalValue, ok bool) {
	by := big.NewInt(n)
	mul := func(x *big.Int) *big.Int { return x.Mul(x, by) }
	return intervalOfBig(mul(big.NewInt(int64(i.Months))), mul(big.NewInt(int64(i.Days))), mul(i.bigNanos()))
}

// Div returns i / n, rounded towards zero; n must not be 0. Months that remain after the division become days, 30 days
// for each, and days that remain become time. ok is false on overflow.
func (i IntervalValue) Div(n int64) (quotient IntervalValue, ok bool) {
	return divideInterval(big.NewInt(int64(i.Months)), big.NewInt(int64(i.Days)), i.bigNanos(), n)
}

// divideInterval divides months, days and nanoseconds by n, as IntervalValue.Div does. It modifies its arguments.
func divideInterval(months, days, nanos *big.Int, n int64) (quotient IntervalValue, ok bool) {
	by := big.NewInt(n)
	months, rest := months.QuoRem(months, by, new(big.Int))
	days.Add(days, rest.Mul(rest, big.NewInt(daysPerMonth)))
	days, rest = days.QuoRem(days, by, rest)
	nanos.Add(nanos, rest.Mul(rest, big.NewInt(secondsPerDay*nanosPerSecond)))
	return intervalOfBig(months, days, nanos.Quo(nanos, by))
}

func (i IntervalValue) bigNanos() *big.Int {
	n := new(big.Int).Mul(big.NewInt(i.Seconds), big.NewInt(nanosPerSecond))
	return n.Add(n, big.NewInt(int64(i.Nanos)))
}

func intervalOfBig(months, days, nanos *big.Int) (IntervalValue, bool) {
	seconds, rest := new(big.Int).DivMod(nanos, big.NewInt(nanosPerSecond), new(big.Int))
	if !months.IsInt64() || !days.IsInt64() || !seconds.IsInt64() {
		return IntervalValue{}, false
	}
	return NewInterval(months.Int64(), days.Int64(), seconds.Int64(), rest.Int64())
}

// Time returns the absolute value of the time part, and whether the time part is negative.
func (i IntervalValue) Time() (seconds int64, nanos int32, neg bool) {
	if i.Seconds >= 0 {
		return i.Seconds, i.Nanos, false
	}
	if i.Nanos == 0 {
		return -i.Seconds, 0, true
	}
	return -i.Seconds - 1, nanosPerSecond - i.Nanos, true
}

// Append appends the interval in ISO 8601, as Spanner prints it on the wire: P1Y2M3DT4H5M6.5S. Years and months have
// the same sign, and so have hours, minutes and seconds. If all parts are 0, the text is P0Y.
func (i IntervalValue) Append(dst []byte) []byte {
	start := len(dst)
	dst = append(dst, 'P')
	dst = appendDesignated(dst, int64(i.Months/12), 'Y')
	dst = appendDesignated(dst, int64(i.Months%12), 'M')
	dst = appendDesignated(dst, int64(i.Days), 'D')
	seconds, nanos, neg := i.Time()
	if seconds != 0 || nanos != 0 {
		dst = append(dst, 'T')
		sign := int64(1)
		if neg {
			sign = -1
		}
		dst = appendDesignated(dst, sign*(seconds/3600), 'H')
		dst = appendDesignated(dst, sign*(seconds/60%60), 'M')
		dst = appendISOSeconds(dst, seconds%60, nanos, neg)
	}
	if len(dst) == start+1 {
		dst = append(dst, "0Y"...)
	}
	return dst
}

func appendDesignated(dst []byte, n int64, designator byte) []byte {
	if n == 0 {
		return dst
	}
	return append(strconv.AppendInt(dst, n, 10), designator)
}

func appendISOSeconds(dst []byte, seconds int64, nanos int32, neg bool) []byte {
	if seconds == 0 && nanos == 0 {
		return dst
	}
	if neg {
		dst = append(dst, '-')
	}
	dst = strconv.AppendInt(dst, seconds, 10)
	if nanos != 0 {
		dst = appendFraction(dst, uint32(nanos))
	}
	return append(dst, 'S')
}

// AppendCanonical appends the interval as CAST to STRING prints it: [-]Y-M [-]D [-]H:M:S[.F]. The fraction F has 3, 6
// or 9 digits.
func (i IntervalValue) AppendCanonical(dst []byte) []byte {
	months := i.Months
	if months < 0 {
		dst = append(dst, '-')
		months = -months
	}
	dst = append(strconv.AppendInt(dst, int64(months/12), 10), '-')
	dst = append(strconv.AppendInt(dst, int64(months%12), 10), ' ')
	dst = append(strconv.AppendInt(dst, int64(i.Days), 10), ' ')
	seconds, nanos, neg := i.Time()
	if neg {
		dst = append(dst, '-')
	}
	dst = append(strconv.AppendInt(dst, seconds/3600, 10), ':')
	dst = append(strconv.AppendInt(dst, seconds/60%60, 10), ':')
	dst = strconv.AppendInt(dst, seconds%60, 10)
	return appendFractionGroups(dst, uint32(nanos))
}

// appendFractionGroups appends a point and a fraction, given in billionths, in groups of three digits. It omits groups
// of zeros at the end, and the point if all digits are zero.
func appendFractionGroups(dst []byte, billionths uint32) []byte {
	if billionths == 0 {
		return dst
	}
	digits := 9
	for billionths%1000 == 0 {
		billionths /= 1000
		digits -= 3
	}
	return appendDigits(append(dst, '.'), uint64(billionths), digits)
}
