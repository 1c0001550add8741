package usererror

import (
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
)

// Errors of the memory that requests share. Official clients send a request that got RESOURCE_EXHAUSTED again if the error says when, as
// google.rpc.RetryInfo (https://pkg.go.dev/cloud.google.com/go/spanner: its retryer). So a request that would find room at another moment says so,
// and one for which there can be no room does not. A Commit and the other methods that answer with one message are sent again either way,
// by the Go client for up to an hour if the application gives no deadline (the retry settings of its generated part).

// memoryRetryAfter is when a request that found no room may come again: most requests are over by then.
const memoryRetryAfter = time.Second

// IsExhausted says whether an error is RESOURCE_EXHAUSTED: the same request may succeed later.
func IsExhausted(err error) bool { return CodeOf(err) == codes.ResourceExhausted }

// MemoryTaken: a request waited for want bytes of memory, if it could, and other requests kept the budget of limit bytes for all that time.
func MemoryTaken(want, limit int64, waited time.Duration) *Error {
	since := ""
	if waited > 0 {
		since = fmt.Sprintf("for %v ", waited)
	}
	e := newError(codes.ResourceExhausted, "The request needs %d more bytes of memory, and %sother requests have taken the %d bytes that all may take together. "+
		"Send it again later, or start the server with more: --memory.", want, since, limit)
	e.RetryAfter = memoryRetryAfter
	return e
}

// TooManySessions: sessions take taken bytes of memory, and there is no room for more of them.
func TooManySessions(taken int64) *Error {
	return newError(codes.ResourceExhausted, "There is no memory for more sessions: those that exist take %d bytes. Delete sessions that are not used, "+
		"or start the server with more: --memory.", taken)
}

// TooMuchMemory: a request needs want bytes of memory for what it has done so far, and it may take limit bytes even if it is alone.
func TooMuchMemory(want, limit int64) *Error {
	return newError(codes.ResourceExhausted, "The request needs at least %d bytes of memory, and may take %d bytes. Make it smaller, or start the server with more: --memory.", want, limit)
}
