package fault

import "google.golang.org/grpc/codes"

// Errors about the form of a request, before anything is looked up.

// Internal: a bug. It leaks nothing.
func Internal() *Error {
	return newError(codes.Internal, "An internal error occurred.")
}

// UndecodableRequest: the bytes are no message of the kind wanted, or too many.
func UndecodableRequest(text string) *Error {
	return newError(codes.InvalidArgument, "%s", text)
}

// InvalidResumeToken: no server gave this out, or not this one.
func InvalidResumeToken() *Error {
	return newError(codes.InvalidArgument, "Invalid resume_token: it was not given out by this server.")
}

// ForeignResumeToken: the token belongs to another request.
func ForeignResumeToken() *Error {
	return newError(codes.InvalidArgument, "Invalid resume_token: it was created for a different request.")
}

// NoRoute: no method is bound to this path.
func NoRoute(verb, path string) *Error {
	return newError(codes.NotFound, "No method is bound to %s %s.", verb, shorten(path))
}

// RequestTooLarge: more bytes than the method takes.
func RequestTooLarge(limit int) *Error {
	return newError(codes.InvalidArgument, "Request payload size exceeds the limit: %d bytes.", limit)
}

// InvalidJSON: the body or a parameter is no JSON of the message wanted.
func InvalidJSON(why error) *Error {
	return newError(codes.InvalidArgument, "Invalid JSON payload received. %v", why)
}

// UnknownParameter: a query parameter that names no field.
func UnknownParameter(path string) *Error {
	return newError(codes.InvalidArgument, "Invalid query parameter: cannot bind %s.", shorten(path))
}
