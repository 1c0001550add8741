package usererror

import (
	"time"

	"google.golang.org/grpc/codes"
)

// Errors about the form of a request, before anything is looked up.

// Internal: a bug. The text says nothing about it; the log does.
func Internal() *Error {
	return newError(codes.Internal, "An internal error occurred.")
}

// RequestCancelled: the client cancelled the request, or went away.
func RequestCancelled() *Error {
	return newError(codes.Canceled, "The request was cancelled.")
}

// DeadlineExceeded: the time that the client gave the request is over.
func DeadlineExceeded() *Error {
	return newError(codes.DeadlineExceeded, "Deadline exceeded.")
}

// Transport: the connection broke, or the protocol's library refused a message. Code and text are those of the library.
func Transport(code codes.Code, text string) *Error {
	return newError(code, "%s", text)
}

// UndecodableRequest: the bytes of a request cannot be decoded. The caller gives the whole sentence.
func UndecodableRequest(text string) *Error {
	return newError(codes.InvalidArgument, "%s", text)
}

// InvalidResumeToken: a resume token that this server has not given out.
func InvalidResumeToken() *Error {
	return newError(codes.InvalidArgument, "Invalid resume_token: it was not given out by this server.")
}

// ForeignResumeToken: the token belongs to another request.
func ForeignResumeToken() *Error {
	return newError(codes.InvalidArgument, "Invalid resume_token: it was created for a different request.")
}

// ResumeWithinRow: a reply in one message holds whole rows, and the stream that the token is from ended within one.
func ResumeWithinRow() *Error {
	return newError(codes.InvalidArgument, "Invalid resume_token: it continues within a row. Use a streaming request to resume from it.")
}

// NoRoute: no method is bound to this path.
func NoRoute(verb, path string) *Error {
	return newError(codes.NotFound, "No method is bound to %s %s.", verb, shorten(path))
}

// ForeignHost: a request to a listener of the loopback interface under a name that is not the machine's own.
func ForeignHost(host string) *Error {
	return newError(codes.PermissionDenied, "Host %s is not a name of this server. If it is meant to be, start the server with --http-host.", shorten(host))
}

// ForeignOrigin: a request from a web page of another site; origin is the page's origin, or what its browser says of the site.
func ForeignOrigin(origin string) *Error {
	return newError(codes.PermissionDenied, "Requests from web pages of other origins are refused (%s). To allow an origin, start the server with --cors-origin.", shorten(origin))
}

// TooManyConnections: a connection that a full listener has refused. The caller gives the text.
func TooManyConnections(text string) *Error {
	return newError(codes.Unavailable, "%s", text)
}

// InvalidOrigin: a flag names an origin that is none.
func InvalidOrigin(origin string) *Error {
	return newError(codes.InvalidArgument, "%s is not an origin: write scheme://host or scheme://host:port.", shorten(origin))
}

// ReceiveTimeout: the client took too long to send its request.
func ReceiveTimeout(limit time.Duration) *Error {
	return newError(codes.DeadlineExceeded, "The request did not arrive within %v.", limit)
}

// RequestTooLarge: a request with more bytes than the method accepts.
func RequestTooLarge(limit int) *Error {
	return newError(codes.InvalidArgument, "Request payload size exceeds the limit: %d bytes.", limit)
}

// MoreThanOneMessage: a client sent more than the one message that each method of the API takes. The code is that of gRPC's libraries
// (https://github.com/grpc/grpc/blob/master/doc/statuscodes.md: cardinality violation).
func MoreThanOneMessage() *Error {
	return newError(codes.Unimplemented, "The request has more than one message, and the method takes one.")
}

// InvalidJSON: the body or a parameter of a request is not JSON of the request's message.
func InvalidJSON(why error) *Error {
	return newError(codes.InvalidArgument, "Invalid JSON payload received. %v", why)
}

// UnknownField: JSON gives the message at path a field that it does not have. The path is empty for the request itself.
func UnknownField(name, path string) *Error {
	if path != "" {
		path = " at '" + shorten(path) + "'"
	}
	return newError(codes.InvalidArgument, "Invalid JSON payload received. Unknown name \"%s\"%s: Cannot find field.", shorten(name), path)
}

// InvalidField: JSON gives the field at path a value that is not of its type.
func InvalidField(path, typeName, json string) *Error {
	return newError(codes.InvalidArgument, "Invalid value at '%s' (%s), %s", shorten(path), typeName, shorten(json))
}

// UnknownParameter: a query parameter whose part field names no field of the request.
func UnknownParameter(path, field string) *Error {
	return newError(codes.InvalidArgument, "Invalid JSON payload received. Unknown name \"%s\": Cannot bind query parameter. "+
		"Field '%s' could not be found in request message.", shorten(path), shorten(field))
}

// MessageParameter: a query parameter whose part field names a message or a map.
func MessageParameter(path, field string) *Error {
	return newError(codes.InvalidArgument, "Invalid JSON payload received. Unknown name \"%s\": Cannot bind query parameter. "+
		"'%s' is a message type. Parameters can only be bound to primitive types.", shorten(path), shorten(field))
}
