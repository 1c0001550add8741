package value

import "strconv"

// IntervalValue is the value of an INTERVAL. Its three parts, months, days and
// time (Seconds + Nanos), have signs of their own.
type IntervalValue struct {
	Months  int32
	Days    int32
	Seconds int64
	Nanos   int32 // 0 to 999,999,999, to be added to Seconds whatever its sign
}

// The range of an INTERVAL: 10,000 years either way in each part.
const (
	maxIntervalMonths  = 10_000 * 12
	maxIntervalDays    = 10_000 * 366
	maxIntervalSeconds = maxIntervalDays * secondsPerDay
)

// InRange says whether each part is in range.
func (i IntervalValue) InRange() bool {
	return i.Months >= -maxIntervalMonths && i.Months <= maxIntervalMonths &&
		i.Days >= -maxIntervalDays && i.Days <= maxIntervalDays &&
		i.Seconds >= -maxIntervalSeconds && i.Seconds <= maxIntervalSeconds &&
		i.Nanos >= 0 && i.Nanos < nanosPerSecond && (i.Seconds < maxIntervalSeconds || i.Nanos == 0)
}

// Append appends the interval in ISO 8601, as Spanner prints it on the wire: P1Y2M3DT4H5M6.5S. Years and months share a
// sign, and so do hours, minutes and seconds; nothing at all is P0Y.
func (i IntervalValue) Append(dst []byte) []byte {
	start := len(dst)
	dst = append(dst, 'P')
	dst = appendDesignated(dst, int64(i.Months/12), 'Y')
	dst = appendDesignated(dst, int64(i.Months%12), 'M')
	dst = appendDesignated(dst, int64(i.Days), 'D')
	seconds, nanos, neg := i.time()
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

// time gives the magnitude and the sign of the time part.
func (i IntervalValue) time() (seconds int64, nanos int32, neg bool) {
	if i.Seconds >= 0 {
		return i.Seconds, i.Nanos, false
	}
	if i.Nanos == 0 {
		return -i.Seconds, 0, true
	}
	return -i.Seconds - 1, nanosPerSecond - i.Nanos, true
}
