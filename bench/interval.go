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

// suffix returns the end of the names of the interval's tables in SPANNER_SYS.
func (i Interval) suffix() string { return strings.ToUpper(string(i)) }

// length returns 0 for an unknown interval.
func (i Interval) length() time.Duration {
	switch i {
	case Minute:
		return time.Minute
	case TenMinutes:
		return 10 * time.Minute
	}
	return 0
}
