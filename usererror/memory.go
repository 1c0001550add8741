package usererror

import (
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/memory"
)

// Errors of the memory that requests share. Official clients repeat a request that failed with RESOURCE_EXHAUSTED if
// the error says when, as google.rpc.RetryInfo (https://pkg.go.dev/cloud.google.com/go/spanner: its retryer). So the
// error says when if the request could find memory at another time, and does not if it never can. Clients repeat a
// Commit, and the other methods that answer with one message, in either case. The Go client does so for up to an hour
// if the application sets no deadline (the retry settings of its generated part).

// memoryRetryAfter is the time after which a request that found no memory may be repeated. Most requests are over by
// then.
const memoryRetryAfter = time.Second

// IsExhausted reports whether an error is RESOURCE_EXHAUSTED. Then the same request may succeed later.
func IsExhausted(err error) bool { return CodeOf(err) == codes.ResourceExhausted }

// ofMemory returns the error for users of one of package memory, or nil.
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
