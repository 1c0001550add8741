package usererror

import "google.golang.org/grpc/codes"

// InvalidResourceName reports that a name in a request does not have the form that names of resources of this kind
// have.
func InvalidResourceName(kind, name string) *Error {
	return newError(codes.InvalidArgument, "Invalid %s name: %s", kind, shorten(name))
}

// SessionNotFound reports that the session does not exist. Clients recognise the error by the beginning of its text and
// by the resource, and then create a new session.
func SessionNotFound(name string) *Error {
	e := newError(codes.NotFound, "Session not found: %s", name)
	e.Resource = &Resource{SessionResource, name}
	return e
}

// InvalidSessionCount returns the error for BatchCreateSessions with a session_count below 1.
func InvalidSessionCount(n int32) *Error {
	return newError(codes.InvalidArgument, "Invalid session_count %d: it must be at least 1.", n)
}

// MultiplexedBatch returns the error for BatchCreateSessions of multiplexed sessions, which must be created one at a
// time.
func MultiplexedBatch() *Error {
	return newError(codes.InvalidArgument, "Multiplexed sessions may not be created in a batch. Use CreateSession.")
}

// MultiplexedDelete returns the error for DeleteSession of a multiplexed session, which clients cannot delete.
func MultiplexedDelete() *Error {
	return newError(codes.InvalidArgument, "Multiplexed sessions may not be deleted.")
}

// TooManyLabels returns the error for a resource that has n labels but may have at most limit labels.
func TooManyLabels(n, limit int) *Error {
	return newError(codes.InvalidArgument, "Too many labels: %d. The limit is %d.", n, limit)
}

// InvalidLabel reports that the key or the value of a label is malformed. text is that key or value.
func InvalidLabel(text string) *Error {
	return newError(codes.InvalidArgument, "Invalid label: %s. Keys begin with a lower-case letter; keys and values have at most 63 lower-case letters, digits, dashes and underscores.", shorten(text))
}

// InvalidPageSize returns the error for a negative page_size.
func InvalidPageSize(n int32) *Error {
	return newError(codes.InvalidArgument, "Invalid page_size %d: it must not be negative.", n)
}

// InvalidPageToken returns the error for a page_token that is malformed, or was made for another request.
func InvalidPageToken() *Error {
	return newError(codes.InvalidArgument, "Invalid page_token: it was not given out for this request.")
}

// InvalidFilter returns the error for a filter that does not parse, or that names an unknown field.
func InvalidFilter(filter string) *Error {
	return newError(codes.InvalidArgument, "Invalid filter: %s", shorten(filter))
}
