package usererror

import "google.golang.org/grpc/codes"

// QueryNotFound is cancel_query of an id that none of the running queries has.
func QueryNotFound(id string) *Error {
	return newError(codes.NotFound, "No active query has the id %q.", id)
}
