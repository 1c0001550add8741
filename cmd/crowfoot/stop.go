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

// stopLimit is the longest time that a command may take to end after a signal. Docker kills a container ten seconds
// after its signal: https://docs.docker.com/reference/cli/docker/container/stop.
const stopLimit = 8 * time.Second

// messageLimit is the longest time that the process waits for a reader of its standard error. Then it ends without
// its last message.
const messageLimit = time.Second

// untilSignal returns a context that ends when the process gets SIGINT (Ctrl-C), SIGTERM or SIGHUP. It ignores SIGHUP
// if the process was started to outlive its terminal (nohup). A second signal ends the process at once. If the
// process has not ended stopLimit after the first signal, it ends then. Acknowledged commits are on disk whenever it
// ends.
func untilSignal() context.Context {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
	context.AfterFunc(ctx, stop) // then the second signal has its default effect
	endAfter(ctx, stopLimit, os.Stderr, os.Exit)
	return ctx
}

// endAfter prints a message and ends the process some time after the context has ended.
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
