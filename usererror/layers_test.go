package usererror

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/kv"
	"github.com/crowfoot-db/crowfoot/memory"
)

// TestLayers checks the code and the text that a user gets for each typed error of packages kv and memory when the
// error is wrapped in other errors.
func TestLayers(t *testing.T) {
	cause := errors.New("the cause")
	for _, c := range []struct {
		err        error
		code       codes.Code
		text       string
		retryAfter time.Duration
	}{
		{&kv.DiskFullError{Dir: "/data", Free: 5 << 20, Need: 7<<20 + 1}, codes.ResourceExhausted, "5 MiB are free, and commits are taken where at least 8 MiB are", 0},
		{&kv.DiskRefusesError{Dir: "/data", Cause: cause}, codes.ResourceExhausted, "/data is full: the cause", 0},
		{&kv.CompactionError{Dir: "/data", Cause: cause}, codes.Unavailable, "/data: the cause", 0},
		{&kv.DamagedError{File: "000012.sst"}, codes.DataLoss, "in 000012.sst of the data directory", 0},
		{&kv.FailedError{Cause: cause}, codes.Internal, "must be started again: the cause", 0},
		{&memory.TooMuchError{Need: 20, Limit: 10}, codes.ResourceExhausted, "at least 20 bytes of memory, and may take 10 bytes", 0},
		{&memory.ExhaustedError{Need: 20, Limit: 100}, codes.ResourceExhausted, "20 more bytes of memory, and other requests have taken the 100 bytes", memoryRetryAfter},
		{&memory.ExhaustedError{Need: 20, Limit: 100, Waited: time.Second}, codes.ResourceExhausted, "and for 1s other requests have taken", memoryRetryAfter},
		{&memory.SessionsError{Used: 30}, codes.ResourceExhausted, "those that exist take 30 bytes", 0},
		{DatabaseNotFound("d"), codes.NotFound, "Database not found: d", 0},
	} {
		err := fmt.Errorf("read: %w", fmt.Errorf("%w: %w", kv.ErrRefused, c.err))
		e, ok := As(err)
		if !ok || e.Code != c.code || CodeOf(err) != c.code || !strings.Contains(e.Message, c.text) || e.RetryAfter != c.retryAfter {
			t.Errorf("%T: %v, %+v", c.err, ok, e)
		}
	}
	// If err contains both an error for users and a typed error, As returns the error for users.
	err := fmt.Errorf("%w: %w", DataDamaged("a columnar copy"), &kv.DamagedError{File: "000012.sst"})
	if e, ok := As(err); !ok || !strings.Contains(e.Message, "a columnar copy") {
		t.Errorf("%v, %+v", ok, e)
	}
	for _, err := range []error{cause, nil} {
		if e, ok := As(err); ok {
			t.Errorf("%v is for users: %+v", err, e)
		}
	}
	if CodeOf(cause) != codes.Internal || CodeOf(nil) != codes.OK {
		t.Errorf("other errors are %v and %v", CodeOf(cause), CodeOf(nil))
	}
}
