package fn

import (
	"crypto/rand"
	"io"

	"github.com/google/uuid"

	"github.com/crowfoot-db/crowfoot/value"
)

var utilities = []record{
	{name: "generate_uuid", doc: "A random UUID (version 4), as text.", property: volatile, overloads: []overload{on("-> STRING", strict(generateUUID))}},
	{name: "new_uuid", doc: "A random UUID (version 4).", property: volatile, overloads: []overload{on("-> UUID", strict(newUUID))}},
}

func randomUUID(ctx *Context) (u uuid.UUID, err error) {
	random := ctx.Random
	if random == nil {
		random = rand.Reader
	}
	if _, err = io.ReadFull(random, u[:]); err != nil {
		return u, err
	}
	u[6] = u[6]&0x0f | 4<<4 // version 4
	u[8] = u[8]&0x3f | 0x80 // RFC 9562's variant
	return u, nil
}

func generateUUID(ctx *Context, _ []value.Value) (value.Value, error) {
	u, err := randomUUID(ctx)
	return value.OfString(u.String()), err
}

func newUUID(ctx *Context, _ []value.Value) (value.Value, error) {
	u, err := randomUUID(ctx)
	return value.OfUUID(u), err
}
