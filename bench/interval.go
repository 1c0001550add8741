package bench

import (
	"strings"
	"time"
)

// Interval is one of the intervals for which SPANNER_SYS keeps statistics.
type Interval string

// The intervals, as people type them.
const (
	Minute     Interval = "minute"
	TenMinutes Interval = "10minute"
)

// suffix ends the names of the interval's tables in SPANNER_SYS.
func (i Interval) suffix() string { return strings.ToUpper(string(i)) }

// length is 0 for what is no interval.
func (i Interval) length() time.Duration {
	switch i {
	case Minute:
		return time.Minute
	case TenMinutes:
		return 10 * time.Minute
	}
	return 0
}
