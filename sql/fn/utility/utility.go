package utility

import (
	"crypto/rand"
	"io"

	"github.com/google/uuid"

	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/value"
)

// UUIDs has the functions that make UUIDs.
var UUIDs = []fn.Record{
	{Name: "generate_uuid", Doc: "A random UUID (version 4), as text.", Property: fn.Volatile, Overloads: []fn.Overload{fn.On("-> STRING", fn.Strict(generateUUID))}},
	{Name: "new_uuid", Doc: "A random UUID (version 4).", Property: fn.Volatile, Overloads: []fn.Overload{fn.On("-> UUID", fn.Strict(newUUID))}},
}

func randomUUID(ctx *fn.Context) (u uuid.UUID, err error) {
	random := ctx.Random
	if random == nil {
		random = rand.Reader
	}
	if _, err = io.ReadFull(random, u[:]); err != nil {
		return u, err
	}
	u[6] = u[6]&0x0f | 4<<4 // sets the version of the UUID to 4
	u[8] = u[8]&0x3f | 0x80 // sets the variant of the UUID to that of RFC 9562
	return u, nil
}

func generateUUID(ctx *fn.Context, _ []value.Value) (value.Value, error) {
	u, err := randomUUID(ctx)
	return value.OfString(u.String()), err
}

func newUUID(ctx *fn.Context, _ []value.Value) (value.Value, error) {
	u, err := randomUUID(ctx)
	return value.OfUUID(u), err
}
