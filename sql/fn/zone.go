package fn

import (
	"sync"
	"time"

	"github.com/crowfoot-db/crowfoot/value"
)

var defaultZone = sync.OnceValue(func() *time.Location {
	zone, err := value.LoadZone(value.DefaultZone)
	if err != nil {
		panic("fn: " + err.Error()) // never happens: the program contains a time zone database
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
