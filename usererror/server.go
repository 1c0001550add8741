package usererror

import "google.golang.org/grpc/codes"

// ServerStopping reports that the server is stopping. Clients then send the request again, and reach the server process
// that is started next.
func ServerStopping() *Error {
	return newError(codes.Unavailable, "The server is stopping.")
}

// ServerStarting reports that the server has not yet opened its data. Clients then send the request again.
func ServerStarting() *Error {
	return newError(codes.Unavailable, "The server is starting.")
}
