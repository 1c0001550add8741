package usererror

import "google.golang.org/grpc/codes"

// QueryNotFound returns the error for cancel_query with an id that no running query has.
func QueryNotFound(id string) *Error {
	return newError(codes.NotFound, "No active query has the id %q.", id)
}
