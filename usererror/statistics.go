package usererror

import "google.golang.org/grpc/codes"

// QueryNotFound is cancel_query of an id that no query has which runs now.
func QueryNotFound(id string) *Error {
	return newError(codes.NotFound, "No active query has the id %q.", id)
}
