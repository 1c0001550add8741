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

// stopLimit is how long a command may take to end after a signal. Docker kills a container ten seconds after its
// signal: https://docs.docker.com/reference/cli/docker/container/stop.
const stopLimit = 8 * time.Second

// messageLimit is how long a process that ends waits until its last message is written to standard error. After this
// time it ends without the message.
const messageLimit = time.Second

// untilSignal returns a context that ends when the process gets SIGINT (Ctrl-C), SIGTERM or SIGHUP. SIGHUP is ignored
// if the process was started to outlive its terminal (nohup). A second signal ends the process at once. If the process
// still runs stopLimit after the first signal, it is ended then. At any such end all acknowledged commits are on disk.
func untilSignal() context.Context {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
	context.AfterFunc(ctx, stop) // once stop was called, a second signal ends the process at once
	endAfter(ctx, stopLimit, os.Stderr, os.Exit)
	return ctx
}

// endAfter ends the process if it still runs when limit has passed since the end of the context. It prints a message
// first.
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
