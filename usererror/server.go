package usererror

import "google.golang.org/grpc/codes"

// ServerStopping reports that the server is shutting down. Clients send the request again, to the next process.
func ServerStopping() *Error {
	return newError(codes.Unavailable, "The server is stopping.")
}

// ServerStarting reports that the server has not opened its data yet. Clients send the request again.
func ServerStarting() *Error {
	return newError(codes.Unavailable, "The server is starting.")
}
