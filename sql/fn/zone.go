package fn

import (
	"sync"
	"time"

	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

var defaultZone = sync.OnceValue(func() *time.Location {
	zone, err := value.LoadZone(value.DefaultZone)
	if err != nil {
		panic("fn: " + err.Error()) // the time zone database is part of the program
	}
	return zone
})

// Location returns the statement's time zone.
func (ctx *Context) Location() *time.Location {
	if ctx.Zone != nil {
		return ctx.Zone
	}
	return defaultZone()
}

// ZoneArgument returns the time zone that argument i names. If there is no argument i, it returns the statement's
// time zone.
func ZoneArgument(ctx *Context, a []value.Value, i int) (*time.Location, error) {
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
