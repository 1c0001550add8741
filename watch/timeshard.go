package watch

import (
	"crypto/sha512"
	"encoding/base64"
	"fmt"
	"time"
)

// TimeShard selects rows by a shard column. Each write must set that column to Interval.Shard of the current time, or
// to the value of Interval.Expression. A poll reads the shards of all times since the checkpoint, so rows are found
// however long the watcher was stopped.
func TimeShard(column string, interval Interval) ShardProvider { return timeShard{column, interval} }

// Interval is the length of time for which TimeShard uses one shard. With the first four intervals, Day to Year, each
// period of time has a shard of its own. With the others, shards repeat; for example, with DayOfWeek every Monday has
// the same shard.
type Interval int

// The intervals of Google's Java library Spanner Change Watcher (TimebasedShardProvider.Interval), in UTC.
const (
	Day Interval = iota
	Week
	Month
	Year
	MinuteOfHour
	HourOfDay
	DayOfWeek
	DayOfMonth
	WeekOfYear
	DayOfYear
)

// intervals is indexed by Interval. cycle is a length of time in which each shard of the interval occurs at least once;
// 0 means that shards do not repeat.
var intervals = [...]struct {
	name   string
	format string // the format for FORMAT_TIMESTAMP
	step   time.Duration
	cycle  time.Duration
}{
	{"DAY", "%F", 24 * time.Hour, 0},
	{"WEEK", "%Y-%W", 24 * time.Hour, 0},
	{"MONTH", "%yyyy-%m", 24 * time.Hour, 0}, // as in the Java library: %y is a year of two digits, "yyy-" is literal
	{"YEAR", "%Y", 24 * time.Hour, 0},
	{"MINUTE_OF_HOUR", "%M", time.Minute, time.Hour},
	{"HOUR_OF_DAY", "%H", time.Hour, 24 * time.Hour},
	{"DAY_OF_WEEK", "%u", 24 * time.Hour, 7 * 24 * time.Hour},
	{"DAY_OF_MONTH", "%d", 24 * time.Hour, 62 * 24 * time.Hour},
	{"WEEK_OF_YEAR", "%W", 24 * time.Hour, 13 * 366 * 24 * time.Hour}, // up to 12 years pass between two years with a week 53
	{"DAY_OF_YEAR", "%j", 24 * time.Hour, 9 * 366 * 24 * time.Hour},   // up to 8 years pass between two leap years
}

// Intervals returns all intervals, by their names in the Java library.
func Intervals() map[string]Interval {
	m := map[string]Interval{}
	for i := range intervals {
		m[intervals[i].name] = Interval(i)
	}
	return m
}

// Shard returns the value of the shard column for a row that is written at time t. It is the base64 of the SHA-512 of
// the formatted time.
func (i Interval) Shard(t time.Time) string {
	sum := sha512.Sum512([]byte(i.text(t.UTC())))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// Expression returns the GoogleSQL expression that computes Shard at the database's current time, for use in DML.
func (i Interval) Expression() string {
	return fmt.Sprintf("TO_BASE64(SHA512(FORMAT_TIMESTAMP('%s', CURRENT_TIMESTAMP(), 'UTC')))", intervals[i].format)
}

// text formats a time in the same way as FORMAT_TIMESTAMP does with the format of the interval.
func (i Interval) text(t time.Time) string {
	switch i {
	case Day:
		return t.Format("2006-01-02")
	case Week:
		return fmt.Sprintf("%04d-%02d", t.Year(), mondayWeek(t))
	case Month:
		return t.Format("06") + "yyy-" + t.Format("01")
	case Year:
		return fmt.Sprintf("%04d", t.Year())
	case MinuteOfHour:
		return t.Format("04")
	case HourOfDay:
		return t.Format("15")
	case DayOfWeek:
		return fmt.Sprint((int(t.Weekday())+6)%7 + 1)
	case DayOfMonth:
		return t.Format("02")
	case WeekOfYear:
		return fmt.Sprintf("%02d", mondayWeek(t))
	}
	return t.Format("002")
}

// mondayWeek computes the week that FORMAT_TIMESTAMP writes for %W. Weeks begin on Monday, and the days before the
// year's first Monday are in week 0.
func mondayWeek(t time.Time) int {
	return (t.YearDay() + 6 - (int(t.Weekday())+6)%7) / 7
}

const (
	// clockSlack is added at both ends of the period that a poll reads. It allows for a wrong clock of the program that
	// computed the shard, and for the time between that computation and the commit.
	clockSlack = time.Minute
	// maxTimeShards is the maximum number of shards that a statement lists. If there are more, the statement selects
	// all rows whose shard is not NULL.
	maxTimeShards = 400
)

type timeShard struct {
	column   string
	interval Interval
}

func (s timeShard) ID() ShardID { return ShardID{} }

func (s timeShard) Filter(after, now time.Time) (string, map[string]any) {
	list := s.interval.shards(after.Add(-clockSlack), now.Add(clockSlack))
	if list == nil {
		return notNullShard(s.column).Filter(after, now)
	}
	return quote(s.column) + " IN UNNEST(@shards)", map[string]any{"shards": list}
}

// shards returns the shards of all times from the first argument to the second. It returns nil if they are too many to
// list.
func (i Interval) shards(from, to time.Time) []string {
	unit := intervals[i]
	if unit.cycle > 0 && to.Sub(from) > unit.cycle {
		from = to.Add(-unit.cycle)
	}
	if unit.cycle == 0 && to.Sub(from) > maxTimeShards*unit.step {
		return nil
	}
	listed := map[string]bool{}
	var list []string
	for t := from.UTC().Truncate(unit.step); !t.After(to); t = t.Add(unit.step) {
		if shard := i.text(t); !listed[shard] {
			listed[shard] = true
			list = append(list, i.Shard(t))
		}
	}
	return list
}
