package usererror

import (
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/memory"
)

// Errors about memory that requests share. Official clients repeat any request that failed with RESOURCE_EXHAUSTED if
// the error contains a google.rpc.RetryInfo, which says when to repeat the request (see the retryer in
// https://pkg.go.dev/cloud.google.com/go/spanner). So an error here contains a RetryInfo only if other requests have
// taken the memory and will free it. Clients repeat Commit, and the other methods that answer with one message, even
// without a RetryInfo. The Go client repeats these methods for up to an hour if the application sets no deadline (see
// the retry settings in the client's generated code).

// memoryRetryAfter is how long a client should wait before it repeats a request that got no memory. Most other requests
// have ended by then.
const memoryRetryAfter = time.Second

// IsExhausted reports whether the code of err is RESOURCE_EXHAUSTED. A request that failed with this code may succeed
// later.
func IsExhausted(err error) bool { return CodeOf(err) == codes.ResourceExhausted }

// ofMemory returns the error for users that says the same as err, or nil if err is not an error of package memory.
func ofMemory(err error) *Error {
	var exhausted *memory.ExhaustedError
	var tooMuch *memory.TooMuchError
	var sessions *memory.SessionsError
	switch {
	case errors.As(err, &exhausted):
		since := ""
		if exhausted.Waited > 0 {
			since = fmt.Sprintf("for %v ", exhausted.Waited)
		}
		e := newError(codes.ResourceExhausted, "The request needs %d more bytes of memory, and %sother requests have taken the %d bytes that all may take together. "+
			"Send it again later, or start the server with more: --memory.", exhausted.Need, since, exhausted.Limit)
		e.RetryAfter = memoryRetryAfter
		return e
	case errors.As(err, &tooMuch):
		return newError(codes.ResourceExhausted, "The request needs at least %d bytes of memory, and may take %d bytes. Make it smaller, or start the server with more: --memory.",
			tooMuch.Need, tooMuch.Limit)
	case errors.As(err, &sessions):
		return newError(codes.ResourceExhausted, "There is no memory for more sessions: those that exist take %d bytes. Delete sessions that are not used, "+
			"or start the server with more: --memory.", sessions.Used)
	}
	return nil
}
