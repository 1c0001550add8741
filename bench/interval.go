package bench

import (
	"strings"
	"time"
)

// Interval is the length of the intervals into which a statistics table in SPANNER_SYS divides time.
type Interval string

// The intervals, in the form in which users write them in a flag.
const (
	Minute     Interval = "minute"
	TenMinutes Interval = "10minute"
)

// Suffix returns the end of the names of the SPANNER_SYS tables that have this interval.
func (i Interval) Suffix() string { return strings.ToUpper(string(i)) }

// Length returns the length of the interval, or 0 if the interval is unknown.
func (i Interval) Length() time.Duration {
	switch i {
	case Minute:
		return time.Minute
	case TenMinutes:
		return 10 * time.Minute
	}
	return 0
}
