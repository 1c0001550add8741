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
	// answerLimit is how long a command waits for the answer to a request that an available server answers at once.
	answerLimit = 20 * time.Second
	// silenceNoted is how long a server must have been silent before the command prints that it waits for the server.
	silenceNoted = 3 * time.Second
)

// connectivity observes the calls that a command sends to a server. It knows whether the server answers, and for how
// long calls have waited in vain.
type connectivity struct {
	server string

	mu      sync.Mutex
	waiting int                     // number of calls that wait for an answer
	since   time.Time               // time of the server's last answer, or of the first waiting call if that call began later
	failed  error                   // error of the last call that failed after the last answer; nil if none failed
	heard   bool                    // the server has answered at least once
	cancel  context.CancelCauseFunc // ends the context that limit or orForeign returned; nil if neither was called
}

func newConnectivity(server string) *connectivity { return &connectivity{server: server} }

// dialOptions returns gRPC dial options by which every call of a connection is reported to p.
func (p *connectivity) dialOptions() []grpc.DialOption {
	return []grpc.DialOption{grpc.WithChainUnaryInterceptor(p.unary), grpc.WithChainStreamInterceptor(p.stream), grpc.WithConnectParams(reconnect)}
}

// options returns client options by which every call of a client is reported to p.
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

// wait runs a function that sends a request and waits for the answer. It records when the function begins and how it
// ends.
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

// end records how a call ended. If err is nil, the parameter answered tells whether the server has answered. Most
// errors are answers of the server, too. The exceptions are the error of an unavailable server, and the errors of a
// call that the command itself has ended.
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
	case codes.Canceled, codes.DeadlineExceeded: // the command itself has ended the call
	default:
		if answered || err != nil {
			p.since, p.failed, p.heard = time.Now(), nil, true
		}
	}
}

// silence returns for how long the server has not answered while the command waited for it, and the error of the last
// failed call, if one failed. It returns 0 if no call is running and the server has answered since the last call
// failed.
func (p *connectivity) silence() (time.Duration, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiting == 0 && p.failed == nil {
		return 0, nil
	}
	return time.Since(p.since), p.failed
}

// String returns a line that says how long the command has waited for the server. It returns "" if the command has
// waited for less than silenceNoted, or does not wait.
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

// dialing matches the error text of gRPC when it cannot connect. Its only group matches the reason, without the words
// that gRPC puts before it.
var dialing = regexp.MustCompile(`^(?s).*desc = "?(?:transport: )?(?:Error while dialing: )?(.*?)"?$`)

// reasonOf returns the reason why a server cannot be reached, from the error of a call.
func reasonOf(err error) string {
	return dialing.ReplaceAllString(grpcstatus.Convert(err).Message(), "$1")
}

// errUnavailable is the error for a server that is no longer available, or never was.
type errUnavailable struct {
	server string
	after  time.Duration
	failed error // error of the last call; nil if the server did not answer at all
}

func (e errUnavailable) Error() string {
	text := fmt.Sprintf("%s has not answered for %v", e.server, e.after.Truncate(time.Second))
	if e.failed != nil {
		text += ": " + reasonOf(e.failed)
	}
	return text
}

// isForeign reports whether err shows that the program at the address does not speak HTTP/2, which gRPC needs. A
// program that only closes the connection is not foreign: it may be about to start, or may be a proxy whose server is
// about to start.
func isForeign(err error) bool {
	text := grpcstatus.Convert(err).Message()
	return strings.Contains(text, "server preface: http2: ") || strings.Contains(text, "initial http2 frame from server is not a settings frame")
}

// errForeign is the error for a command that has reached a program which is not a Spanner server.
type errForeign struct {
	server string
	err    error
}

func (e errForeign) Error() string {
	return fmt.Sprintf("what answers at %s is not a Spanner server: it does not speak gRPC in plain text (is it the gRPC port?): %s", e.server, reasonOf(e.err))
}

// orForeign returns the errForeign that has ended ctx, or err if none has. ctx comes from connectivity.orForeign.
func orForeign(ctx context.Context, err error) error {
	if foreign := (errForeign{}); errors.As(context.Cause(ctx), &foreign) {
		return foreign
	}
	return err
}

// orForeign returns a context that ends with errForeign when a call shows that the program at the address is not a
// Spanner server.
func (p *connectivity) orForeign(ctx context.Context) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cancel = cancel
	return ctx, func() { cancel(nil) }
}

// limit returns a context that ends when calls have failed for as long as timeout. It does not end while calls only
// wait for an answer without failing, because the server may need a long time to compute it. Like the context of
// orForeign, it also ends when a call shows that the program at the address is not a Spanner server.
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

// answered calls the function ask, which sends a request that an available server answers at once. It returns
// errUnavailable if no answer comes within answerLimit.
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
