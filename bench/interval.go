package bench

import (
	"strings"
	"time"
)

// Interval is the length of the intervals of a table of statistics in SPANNER_SYS.
type Interval string

// The intervals, as users write them in a flag.
const (
	Minute     Interval = "minute"
	TenMinutes Interval = "10minute"
)

// Suffix returns the end of the names of the interval's tables in SPANNER_SYS.
func (i Interval) Suffix() string { return strings.ToUpper(string(i)) }

// Length returns 0 for an unknown interval.
func (i Interval) Length() time.Duration {
	switch i {
	case Minute:
		return time.Minute
	case TenMinutes:
		return 10 * time.Minute
	}
	return 0
}
