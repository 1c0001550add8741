package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// stopLimit is how long a command may take to end after a signal has told it to. Containers are killed ten seconds after theirs:
// https://docs.docker.com/reference/cli/docker/container/stop.
const stopLimit = 8 * time.Second

// messageLimit is how long the process waits for what reads its standard error before it ends without its last message.
const messageLimit = time.Second

// untilSignal is a context that ends when a signal tells the process to end: SIGINT (Ctrl-C), SIGTERM, or SIGHUP, unless the process was started
// to outlive its terminal (nohup). A second signal ends the process at once. If it has not ended stopLimit after the first, it ends then.
// Whatever it does at that time, what it has acknowledged is on disk.
func untilSignal() context.Context {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
	context.AfterFunc(ctx, stop) // the second signal does what it does to any process
	endAfter(ctx, stopLimit, os.Stderr, os.Exit)
	return ctx
}

// endAfter ends the process a while after a context has ended, and says so.
func endAfter(ctx context.Context, limit time.Duration, message io.Writer, exit func(status int)) {
	context.AfterFunc(ctx, func() {
		time.Sleep(limit)
		written := make(chan struct{})
		go func() {
			fmt.Fprintf(message, "crowfoot: %v, and what was under way has not ended %v later: it is cut off. No acknowledged commit in a data directory is lost.\n", context.Cause(ctx), limit)
			close(written)
		}()
		select {
		case <-written:
		case <-time.After(messageLimit):
		}
		exit(exitFailure)
	})
}
