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
	// answerLimit is how long a server may take to answer what a command asks first.
	answerLimit = 20 * time.Second
	// silenceNoted is how long a server may be silent before the command says that it waits for it.
	silenceNoted = 3 * time.Second
)

// presence is what the calls of a command tell of its server: whether it is there, and since when it has been silent while calls wait for it.
type presence struct {
	server string

	mu      sync.Mutex
	waiting int                     // calls that wait for an answer
	since   time.Time               // when the server was last heard, or when the first of waiting began
	failed  error                   // of the last attempt since then, nil if none has failed
	heard   bool                    // the server has answered
	cancel  context.CancelCauseFunc // ends the command; nil if it goes on whatever happens
}

func newPresence(server string) *presence { return &presence{server: server} }

// dialOptions have the calls of a connection observed.
func (p *presence) dialOptions() []grpc.DialOption {
	return []grpc.DialOption{grpc.WithChainUnaryInterceptor(p.unary), grpc.WithChainStreamInterceptor(p.stream), grpc.WithConnectParams(reconnect)}
}

// options have the calls of a client observed.
func (p *presence) options() (list []option.ClientOption) {
	for _, o := range p.dialOptions() {
		list = append(list, option.WithGRPCDialOption(o))
	}
	return list
}

func (p *presence) unary(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, o ...grpc.CallOption) error {
	return p.wait(func() error { return invoke(ctx, method, req, reply, cc, o...) })
}

func (p *presence) stream(ctx context.Context, d *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, o ...grpc.CallOption) (s grpc.ClientStream, err error) {
	p.begin()
	s, err = open(ctx, d, cc, method, o...)
	p.end(err, false)
	return observedStream{s, p}, err
}

type observedStream struct {
	grpc.ClientStream
	of *presence
}

func (s observedStream) RecvMsg(m any) error {
	return s.of.wait(func() error { return s.ClientStream.RecvMsg(m) })
}

// wait observes a call that waits for the server.
func (p *presence) wait(call func() error) error {
	p.begin()
	err := call()
	p.end(err, true)
	return err
}

func (p *presence) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiting == 0 && p.failed == nil {
		p.since = time.Now()
	}
	p.waiting++
}

// end notes how a call ended; answered says that a call without an error was answered by the server.
func (p *presence) end(err error, answered bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting--
	switch grpcstatus.Code(err) {
	case codes.Unavailable:
		p.failed = err
		if !p.heard && p.cancel != nil && isForeign(err) {
			p.cancel(errForeign{p.server, err})
		}
	case codes.Canceled, codes.DeadlineExceeded: // by the command itself
	default:
		if answered || err != nil {
			p.since, p.failed, p.heard = time.Now(), nil, true
		}
	}
}

// silence is how long the server has been silent while the command waits for it, and why if that is known.
func (p *presence) silence() (time.Duration, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiting == 0 && p.failed == nil {
		return 0, nil
	}
	return time.Since(p.since), p.failed
}

// String says that the command waits, "" if it does not.
func (p *presence) String() string {
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

// dialing begins gRPC's words for a connection that cannot be made.
var dialing = regexp.MustCompile(`^(?s).*desc = "?(?:transport: )?(?:Error while dialing: )?(.*?)"?$`)

// reasonOf is why a server cannot be reached.
func reasonOf(err error) string {
	return dialing.ReplaceAllString(grpcstatus.Convert(err).Message(), "$1")
}

// errAway is a server that went away, or never was there.
type errAway struct {
	server string
	after  time.Duration
	failed error // nil if the server was silent
}

func (e errAway) Error() string {
	text := fmt.Sprintf("%s has not answered for %v", e.server, e.after.Truncate(time.Second))
	if e.failed != nil {
		text += ": " + reasonOf(e.failed)
	}
	return text
}

// isForeign says whether a program that does not speak HTTP/2, as gRPC has it, has answered. One that only hangs up may be about to start, or be a proxy whose
// server is.
func isForeign(err error) bool {
	text := grpcstatus.Convert(err).Message()
	return strings.Contains(text, "server preface: http2: ") || strings.Contains(text, "initial http2 frame from server is not a settings frame")
}

// errForeign is a program that is no Spanner server.
type errForeign struct {
	server string
	err    error
}

func (e errForeign) Error() string {
	return fmt.Sprintf("what answers at %s is not a Spanner server: it does not speak gRPC in plain text (is it the gRPC port?): %s", e.server, reasonOf(e.err))
}

// orForeign is an error, or that for which orForeign of a presence has ended the context.
func orForeign(ctx context.Context, err error) error {
	if foreign := (errForeign{}); errors.As(context.Cause(ctx), &foreign) {
		return foreign
	}
	return err
}

// orForeign ends a context when another program than a server answers.
func (p *presence) orForeign(ctx context.Context) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cancel = cancel
	return ctx, func() { cancel(nil) }
}

// limit ends a context when the server has been away for some time. One that is only silent may work on a long answer.
func (p *presence) limit(ctx context.Context, away time.Duration) (_ context.Context, stop func()) {
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
				if silent, failed := p.silence(); failed != nil && silent >= away {
					cancel(errAway{p.server, silent, failed})
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, func() { cancel(nil) }
}

// answered asks a server what it answers at once if it is there.
func (p *presence) answered(ctx context.Context, ask func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	err := ask(limited)
	if err != nil && ctx.Err() == nil && errors.Is(limited.Err(), context.DeadlineExceeded) {
		_, failed := p.silence()
		return errAway{p.server, answerLimit, failed}
	}
	return err
}
