package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
)

const (
	// answerLimit is the longest time that a server may take to answer a command's first request.
	answerLimit = 20 * time.Second
	// silenceNoted is the time without an answer after which the command prints that it waits for the server.
	silenceNoted = 3 * time.Second
)

// connectivity observes the calls of a command. It knows whether the server is there, and for how long it has been silent
// while calls waited for it.
type connectivity struct {
	server string

	mu      sync.Mutex
	waiting int                     // number of calls that wait for an answer
	since   time.Time               // when the server last answered, or when the first of the waiting calls began
	failed  error                   // error of the last attempt since then; nil if none has failed
	heard   bool                    // true if the server has ever answered
	cancel  context.CancelCauseFunc // ends the command; nil if nothing ends it
}

func newConnectivity(server string) *connectivity { return &connectivity{server: server} }

// dialOptions returns dial options that report every call of a connection to p.
func (p *connectivity) dialOptions() []grpc.DialOption {
	return []grpc.DialOption{grpc.WithChainUnaryInterceptor(p.unary), grpc.WithChainStreamInterceptor(p.stream), grpc.WithConnectParams(reconnect)}
}

// options returns client options that report every call to p.
func (p *connectivity) options() (list []option.ClientOption) {
	for _, o := range p.dialOptions() {
		list = append(list, option.WithGRPCDialOption(o))
	}
	return list
}

func (p *connectivity) unary(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, o ...grpc.CallOption) error {
	return p.wait(func() error { return invoke(ctx, method, req, reply, cc, o...) })
}

func (p *connectivity) stream(ctx context.Context, d *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, o ...grpc.CallOption) (s grpc.ClientStream, err error) {
	p.begin()
	s, err = open(ctx, d, cc, method, o...)
	p.end(err, false)
	return observedStream{s, p}, err
}

type observedStream struct {
	grpc.ClientStream
	of *connectivity
}

func (s observedStream) RecvMsg(m any) error {
	return s.of.wait(func() error { return s.ClientStream.RecvMsg(m) })
}

// wait runs call, which waits for the server, and records how it ended.
func (p *connectivity) wait(call func() error) error {
	p.begin()
	err := call()
	p.end(err, true)
	return err
}

func (p *connectivity) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiting == 0 && p.failed == nil {
		p.since = time.Now()
	}
	p.waiting++
}

// end records how a call ended. answered is true if a call that returned no error has received an answer from the
// server.
func (p *connectivity) end(err error, answered bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting--
	switch grpcstatus.Code(err) {
	case codes.Unavailable:
		p.failed = err
		if !p.heard && p.cancel != nil && isForeign(err) {
			p.cancel(errForeign{p.server, err})
		}
	case codes.Canceled, codes.DeadlineExceeded: // the command has ended the call
	default:
		if answered || err != nil {
			p.since, p.failed, p.heard = time.Now(), nil, true
		}
	}
}

// silence returns for how long the server has been silent while the command waited for it. It returns the error of
// the last failed call, if there is one. It returns 0 if the command does not wait.
func (p *connectivity) silence() (time.Duration, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiting == 0 && p.failed == nil {
		return 0, nil
	}
	return time.Since(p.since), p.failed
}

// String returns a line that says for how long the command has been waiting, or "" if it does not wait.
func (p *connectivity) String() string {
	silent, failed := p.silence()
	if silent < silenceNoted {
		return ""
	}
	text := fmt.Sprintf("waiting for %s, silent for %v", p.server, silent.Truncate(time.Second))
	if failed != nil {
		text += ": " + reasonOf(failed)
	}
	return text
}

// dialing matches the text that gRPC puts before the reason why it cannot connect.
var dialing = regexp.MustCompile(`^(?s).*desc = "?(?:transport: )?(?:Error while dialing: )?(.*?)"?$`)

// reasonOf returns the reason why a server cannot be reached.
func reasonOf(err error) string {
	return dialing.ReplaceAllString(grpcstatus.Convert(err).Message(), "$1")
}

// errUnavailable is the error of a server that went away or was never there.
type errUnavailable struct {
	server string
	after  time.Duration
	failed error // nil if the server was silent
}

func (e errUnavailable) Error() string {
	text := fmt.Sprintf("%s has not answered for %v", e.server, e.after.Truncate(time.Second))
	if e.failed != nil {
		text += ": " + reasonOf(e.failed)
	}
	return text
}

// isForeign reports whether the program at the address does not speak HTTP/2, which gRPC needs. A program that only
// closes the connection does not count. It may be about to start, or it may be a proxy whose server is.
func isForeign(err error) bool {
	text := grpcstatus.Convert(err).Message()
	return strings.Contains(text, "server preface: http2: ") || strings.Contains(text, "initial http2 frame from server is not a settings frame")
}

// errForeign is the error of a command that reached another program instead of a Spanner server.
type errForeign struct {
	server string
	err    error
}

func (e errForeign) Error() string {
	return fmt.Sprintf("what answers at %s is not a Spanner server: it does not speak gRPC in plain text (is it the gRPC port?): %s", e.server, reasonOf(e.err))
}

// orForeign returns the errForeign for which connectivity.orForeign has ended the context, or err if it has not.
func orForeign(ctx context.Context, err error) error {
	if foreign := (errForeign{}); errors.As(context.Cause(ctx), &foreign) {
		return foreign
	}
	return err
}

// orForeign returns a context that ends if the program at the address is not a Spanner server.
func (p *connectivity) orForeign(ctx context.Context) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cancel = cancel
	return ctx, func() { cancel(nil) }
}

// limit returns a context that ends when calls have failed for the time away. A server that is only silent does not
// end it, because it may be computing a long answer.
func (p *connectivity) limit(ctx context.Context, timeout time.Duration) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	p.mu.Lock()
	p.cancel = cancel
	p.mu.Unlock()
	go func() {
		ticks := time.NewTicker(time.Second)
		defer ticks.Stop()
		for {
			select {
			case <-ticks.C:
				if silent, failed := p.silence(); failed != nil && silent >= timeout {
					cancel(errUnavailable{p.server, silent, failed})
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, func() { cancel(nil) }
}

// answered sends a request that a server answers at once if it is there. It returns errAway if no answer comes within
// answerLimit.
func (p *connectivity) answered(ctx context.Context, ask func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	err := ask(limited)
	if err != nil && ctx.Err() == nil && errors.Is(limited.Err(), context.DeadlineExceeded) {
		_, failed := p.silence()
		return errUnavailable{p.server, answerLimit, failed}
	}
	return err
}
