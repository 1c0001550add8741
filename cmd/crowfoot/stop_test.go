package main

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestEndAfter: the process ends when its time is over, also if nothing reads its last message, and not before it was told to end.
func TestEndAfter(t *testing.T) {
	for _, reads := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			pipe, message := io.Pipe()
			exited := make(chan int, 1)
			endAfter(ctx, stopLimit, message, func(status int) { exited <- status })
			var text []byte
			if reads {
				go func() { text, _ = io.ReadAll(pipe) }()
			}
			time.Sleep(time.Hour)
			cancel(errors.New("hangup signal received"))
			time.Sleep(stopLimit - 1)
			synctest.Wait()
			if len(exited) > 0 {
				t.Error("it ended too early")
			}
			time.Sleep(messageLimit + 1)
			synctest.Wait()
			if len(exited) == 0 || <-exited != exitFailure {
				t.Error("it has not ended, or as if all were well")
			}
			pipe.Close()
			message.Close()
			synctest.Wait()
			if reads && !strings.Contains(string(text), "hangup signal received") {
				t.Errorf("it says %q", text)
			}
		})
	}
}
