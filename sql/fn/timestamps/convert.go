package timestamps

import (
	"time"

	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// The functions in this file convert between dates, timestamps, intervals and their texts.

// ParseDate converts a STRING to a DATE.
func ParseDate(_ *fn.Context, a []value.Value) (value.Value, error) {
	days, err := value.ParseDate(a[0].AsString())
	if err != nil {
		return value.Value{}, usererror.InvalidValue("date", a[0].AsString())
	}
	return value.OfDate(days), nil
}

// ParseTimestamp converts a STRING to a TIMESTAMP. If the text names no time zone, the statement's time zone is used.
func ParseTimestamp(ctx *fn.Context, a []value.Value) (value.Value, error) {
	return timestampIn(a[0].AsString(), ctx.Location())
}

func timestampIn(text string, zone *time.Location) (value.Value, error) {
	t, err := value.ParseTimestamp(text, zone)
	if err != nil {
		return value.Value{}, usererror.InvalidValue("timestamp", text)
	}
	return t, nil
}

// ParseInterval converts a STRING to an INTERVAL.
func ParseInterval(_ *fn.Context, a []value.Value) (value.Value, error) {
	i, err := value.ParseInterval(a[0].AsString())
	if err != nil {
		return fn.BadArgument("Invalid INTERVAL value '" + a[0].AsString() + "'")
	}
	return value.OfInterval(i), nil
}

// FromDate converts a DATE to the TIMESTAMP at which the day begins in the statement's time zone.
func FromDate(ctx *fn.Context, a []value.Value) (value.Value, error) {
	return startOfDay(a[0].AsDate(), ctx.Location())
}

// startOfDay returns the instant at which a day begins in a time zone.
func startOfDay(days int32, zone *time.Location) (value.Value, error) {
	return checkedTimestamp(value.InstantOf(int64(days)*secondsPerDay, zone), 0)
}

// ToDate converts a TIMESTAMP to its DATE in the statement's time zone.
func ToDate(ctx *fn.Context, a []value.Value) (value.Value, error) {
	return dayOf(a[0], ctx.Location())
}

// dayOf returns the day of a timestamp in a time zone.
func dayOf(t value.Value, zone *time.Location) (value.Value, error) {
	seconds, _ := t.AsTimestamp()
	days := floorDiv(seconds+value.ZoneOffset(seconds, zone), secondsPerDay)
	if !value.ValidDate(days) {
		return value.Value{}, usererror.DateRange()
	}
	return value.OfDate(int32(days)), nil
}
