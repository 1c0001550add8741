package fn

import (
	"time"

	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// Conversions between dates, timestamps, intervals and their texts.

// parseDate converts a STRING to a DATE.
func parseDate(_ *Context, a []value.Value) (value.Value, error) {
	days, err := value.ParseDate(a[0].AsString())
	if err != nil {
		return value.Value{}, usererror.InvalidValue("date", a[0].AsString())
	}
	return value.OfDate(days), nil
}

// parseTimestamp converts a STRING to a TIMESTAMP, in the statement's time zone unless the text names one.
func parseTimestamp(ctx *Context, a []value.Value) (value.Value, error) {
	return timestampIn(a[0].AsString(), ctx.zone())
}

func timestampIn(text string, zone *time.Location) (value.Value, error) {
	t, err := value.ParseTimestamp(text, zone)
	if err != nil {
		return value.Value{}, usererror.InvalidValue("timestamp", text)
	}
	return t, nil
}

// parseInterval converts a STRING to an INTERVAL.
func parseInterval(_ *Context, a []value.Value) (value.Value, error) {
	i, err := value.ParseInterval(a[0].AsString())
	if err != nil {
		return badArgument("Invalid INTERVAL value '" + a[0].AsString() + "'")
	}
	return value.OfInterval(i), nil
}

// dateToTimestamp converts a DATE to the TIMESTAMP at which the day begins in the statement's time zone.
func dateToTimestamp(ctx *Context, a []value.Value) (value.Value, error) {
	return startOfDay(a[0].AsDate(), ctx.zone())
}

// startOfDay returns the instant at which a day begins in a time zone.
func startOfDay(days int32, zone *time.Location) (value.Value, error) {
	return checkedTimestamp(value.InstantOf(int64(days)*secondsPerDay, zone), 0)
}

// timestampToDate converts a TIMESTAMP to its DATE in the statement's time zone.
func timestampToDate(ctx *Context, a []value.Value) (value.Value, error) {
	return dayOf(a[0], ctx.zone())
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
