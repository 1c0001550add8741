package fn

import (
	"time"
	"unicode/utf8"

	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// Conversions of text, dates and other types that are written as text.

func toText(ctx *Context, a []value.Value) (value.Value, error) {
	zone := time.UTC
	if a[0].Kind() == value.Timestamp {
		zone = ctx.zone()
	}
	return ofString(string(appendText(nil, a[0], zone)))
}

func stringToBytes(_ *Context, a []value.Value) (value.Value, error) {
	return bytesOf(a[0].AsString()), nil
}

func bytesToString(_ *Context, a []value.Value) (value.Value, error) {
	if !utf8.Valid(a[0].AsBytes()) {
		return value.Value{}, usererror.BytesNotUTF8()
	}
	return ofString(a[0].AsString())
}

func parseDate(_ *Context, a []value.Value) (value.Value, error) {
	days, err := value.ParseDate(a[0].AsString())
	if err != nil {
		return value.Value{}, usererror.InvalidValue("date", a[0].AsString())
	}
	return value.OfDate(days), nil
}

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

func parseInterval(_ *Context, a []value.Value) (value.Value, error) {
	i, err := value.ParseInterval(a[0].AsString())
	if err != nil {
		return badArgument("Invalid INTERVAL value '" + a[0].AsString() + "'")
	}
	return value.OfInterval(i), nil
}

func parseUUID(_ *Context, a []value.Value) (value.Value, error) {
	u, err := value.ParseUUID(a[0].AsString())
	if err != nil {
		return badArgument("Invalid input: Failed to parse UUID from string: " + quotedValue(a[0].AsString()))
	}
	return value.OfUUID(u), nil
}

func uuidToBytes(_ *Context, a []value.Value) (value.Value, error) {
	u := a[0].AsUUID()
	return ofBytes(u[:])
}

func bytesToUUID(_ *Context, a []value.Value) (value.Value, error) {
	b := a[0].AsBytes()
	if len(b) != 16 {
		return badArgument("Invalid bytes value size for UUID, expected 16 bytes, but got " + int64Text(int64(len(b))) + " bytes.")
	}
	return value.OfUUID([16]byte(b)), nil
}

func dateToTimestamp(ctx *Context, a []value.Value) (value.Value, error) {
	return startOfDay(a[0].AsDate(), ctx.zone())
}

// startOfDay returns the instant at which a day begins in a time zone.
func startOfDay(days int32, zone *time.Location) (value.Value, error) {
	return checkedTimestamp(value.InstantOf(int64(days)*secondsPerDay, zone), 0)
}

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

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
