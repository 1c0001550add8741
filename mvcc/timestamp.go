package mvcc

import (
	"math"
	"time"
)

// Timestamp is a commit or read timestamp: microseconds since 1970-01-01T00:00:00Z,
// the granularity of Spanner's timestamps.
type Timestamp int64

// Latest is the timestamp at which a read sees the newest version of every key.
const Latest Timestamp = math.MaxInt64

// TimestampOf returns a time as a Timestamp, truncated to the microsecond.
func TimestampOf(t time.Time) Timestamp { return Timestamp(t.UnixMicro()) }

// Time returns the timestamp as a time in UTC.
func (t Timestamp) Time() time.Time { return time.UnixMicro(int64(t)).UTC() }
