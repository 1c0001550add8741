package system

import (
	"context"

	"github.com/crowfoot-db/crowfoot/schema"
)

type accessKey struct{}

// WithAccess is a context in which the rows of INFORMATION_SCHEMA are those of what a role has privileges on.
// Source: https://cloud.google.com/spanner/docs/information-schema#row-filtering.
func WithAccess(ctx context.Context, a *schema.Access) context.Context {
	return context.WithValue(ctx, accessKey{}, a)
}

// accessOf is the access of a context; nil if all rows are seen.
func accessOf(ctx context.Context) *schema.Access {
	a, _ := ctx.Value(accessKey{}).(*schema.Access)
	if a.SeesAll() {
		return nil
	}
	return a
}
