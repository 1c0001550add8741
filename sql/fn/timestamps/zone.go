package timestamps

import (
	"time"

	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// zoneArgument returns the time zone that argument i names. If there is no argument i, it returns the statement's
// time zone.
func zoneArgument(ctx *fn.Context, a []value.Value, i int) (*time.Location, error) {
	if len(a) <= i {
		return ctx.Location(), nil
	}
	name := a[i].AsString()
	if name == "" {
		return nil, usererror.BadArgument("Invalid empty time zone")
	}
	zone, err := value.LoadZone(name)
	if err != nil {
		return nil, usererror.BadArgument("Invalid time zone: " + name)
	}
	return zone, nil
}
