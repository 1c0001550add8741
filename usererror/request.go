package usererror

import (
	"time"

	"google.golang.org/grpc/codes"
)

// Errors about the form of a request. The server finds these errors before it looks up the objects that the request
// names.

// Internal returns the error for a bug of the server. Its text gives no details, because those are in the log.
func Internal() *Error {
	return newError(codes.Internal, "An internal error occurred.")
}

// RequestCancelled reports that the client cancelled the request, or disconnected.
func RequestCancelled() *Error {
	return newError(codes.Canceled, "The request was cancelled.")
}

// DeadlineExceeded reports that the deadline which the client set for the request has passed.
func DeadlineExceeded() *Error {
	return newError(codes.DeadlineExceeded, "Deadline exceeded.")
}

// Transport reports that the connection broke, or that the protocol's library refused a message. code and text come
// from the library.
func Transport(code codes.Code, text string) *Error {
	return newError(code, "%s", text)
}

// UndecodableRequest reports that the bytes of a request cannot be decoded. text is the whole text of the error.
func UndecodableRequest(text string) *Error {
	return newError(codes.InvalidArgument, "%s", text)
}

// InvalidResumeToken returns the error for a resume token that this server did not make.
func InvalidResumeToken() *Error {
	return newError(codes.InvalidArgument, "Invalid resume_token: it was not given out by this server.")
}

// ForeignResumeToken reports that a resume token belongs to another request.
func ForeignResumeToken() *Error {
	return newError(codes.InvalidArgument, "Invalid resume_token: it was created for a different request.")
}

// ResumeWithinRow reports that a request whose reply is a single message carries the resume token of a stream that
// ended within a row. Such a reply cannot continue that stream, because it contains whole rows.
func ResumeWithinRow() *Error {
	return newError(codes.InvalidArgument, "Invalid resume_token: it continues within a row. Use a streaming request to resume from it.")
}

// NoRoute reports that no API method has this HTTP verb and path.
func NoRoute(verb, path string) *Error {
	return newError(codes.NotFound, "No method is bound to %s %s.", verb, shorten(path))
}

// ForeignHost returns the error for a request that reaches a listener on the loopback interface but whose header Host
// is not a name of this machine. A web page of another site can make a browser send such a request (DNS rebinding).
func ForeignHost(host string) *Error {
	return newError(codes.PermissionDenied, "Host %s is not a name of this server. If it is meant to be, start the server with --http-host.", shorten(host))
}

// ForeignOrigin returns the error for a request from a web page of another site. origin is the page's origin, or what
// the browser sent as Sec-Fetch-Site.
func ForeignOrigin(origin string) *Error {
	return newError(codes.PermissionDenied, "Requests from web pages of other origins are refused (%s). To allow an origin, start the server with --cors-origin.", shorten(origin))
}

// TooManyConnections returns the error for a connection that a listener refuses because it has too many connections
// already. text is the whole text of the error.
func TooManyConnections(text string) *Error {
	return newError(codes.Unavailable, "%s", text)
}

// InvalidOrigin reports that the value of a command-line flag is not the origin of web pages.
func InvalidOrigin(origin string) *Error {
	return newError(codes.InvalidArgument, "%s is not an origin: write scheme://host or scheme://host:port.", shorten(origin))
}

// ReceiveTimeout reports that the client took too long to send its request.
func ReceiveTimeout(limit time.Duration) *Error {
	return newError(codes.DeadlineExceeded, "The request did not arrive within %v.", limit)
}

// RequestTooLarge returns the error for a request with more bytes than the method accepts.
func RequestTooLarge(limit int) *Error {
	return newError(codes.InvalidArgument, "Request payload size exceeds the limit: %d bytes.", limit)
}

// MoreThanOneMessage reports that a client sent more than one message to a method that takes one. The code is the one
// that gRPC's libraries use (https://github.com/grpc/grpc/blob/master/doc/statuscodes.md: cardinality violation).
func MoreThanOneMessage() *Error {
	return newError(codes.Unimplemented, "The request has more than one message, and the method takes one.")
}

// InvalidJSON reports that the body or a parameter of a request is not the JSON form of the request's message.
func InvalidJSON(why error) *Error {
	return newError(codes.InvalidArgument, "Invalid JSON payload received. %v", why)
}

// UnknownField reports that the JSON message at path has an unknown field. path is "" for the request itself.
func UnknownField(name, path string) *Error {
	if path != "" {
		path = " at '" + shorten(path) + "'"
	}
	return newError(codes.InvalidArgument, "Invalid JSON payload received. Unknown name \"%s\"%s: Cannot find field.", shorten(name), path)
}

// InvalidField reports that the JSON value at path does not have the type of its field.
func InvalidField(path, typeName, json string) *Error {
	return newError(codes.InvalidArgument, "Invalid value at '%s' (%s), %s", shorten(path), typeName, shorten(json))
}

// UnknownParameter returns the error for a query parameter whose path contains a name that is not a field of the
// request. The parameter field is that name.
func UnknownParameter(path, field string) *Error {
	return newError(codes.InvalidArgument, "Invalid JSON payload received. Unknown name \"%s\": Cannot bind query parameter. "+
		"Field '%s' could not be found in request message.", shorten(path), shorten(field))
}

// MessageParameter returns the error for a query parameter whose path leads to a message, a map or a list that a query
// parameter cannot set. The parameter field is the name of this message, map or list in the path.
func MessageParameter(path, field string) *Error {
	return newError(codes.InvalidArgument, "Invalid JSON payload received. Unknown name \"%s\": Cannot bind query parameter. "+
		"'%s' is a message type. Parameters can only be bound to primitive types.", shorten(path), shorten(field))
}
