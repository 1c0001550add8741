package rpc

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/crowfoot-db/crowfoot/memory"
	"github.com/crowfoot-db/crowfoot/server/cost"
	"github.com/crowfoot-db/crowfoot/server/status"
	"github.com/crowfoot-db/crowfoot/stats/cpu"
	"github.com/crowfoot-db/crowfoot/stats/metrics"
)

// A Call is one request, from its arrival until its reply is sent. Its transport calls, in this order:
//
//	Dispatcher.Begin   when it is about to decode the request into Request
//	Received           when the request's bytes have arrived: the measurement of latency and CPU time starts
//	Run                to let the method's handler answer; the handler passes the messages of a streamed reply to Send
//	End                when the reply or the error is known: the cost of the call is recorded
//
// The transport owns the Call and may reuse it after End, so nothing else may keep a reference to it.
type Call struct {
	Method  *Method
	Request proto.Message
	Cost    cost.Recorder
	// Memory is charged for the request: its message, its writes, its reply. Rows is charged for the rows that its
	// statement holds in memory.
	Memory, Rows memory.Account
	// Failure is the error of a part of a batch. The reply reports this error; the call itself is answered OK.
	Failure error

	dispatcher *Dispatcher
	transport  Transport
	ctx        context.Context // nil before Run
	statement  statement       // the running statement
	upload     *memory.Account // in a stream of requests: account of the newest request but the first; nil before the second
}

// Received records that the request has arrived, with size bytes, and starts the measurement of latency and CPU time.
func (c *Call) Received(size int) {
	c.Cost.Wire.Received = int64(size)
	c.Cost.Begin()
	if !c.Method.varied {
		c.Cost.CPU.Is(c.Method.typical)
	}
}

// Run calls the method's handler. The reply is nil if the handler has streamed it. If the handler panics, err is a
// Panic.
func (c *Call) Run(ctx context.Context) (reply any, err error) {
	defer Recover(&err)
	c.ctx = cpu.With(ctx, &c.Cost.CPU)
	reply, err = c.Method.handle(c.ctx, c)
	if err == nil && !c.Method.Streaming {
		c.replying(reply)
	}
	return reply, err
}

// Send sends one message of a streamed reply: a proto.Message, or a *Frame, which the transport owns from then on.
func (c *Call) Send(m any) error {
	c.replying(m)
	c.Cost.CPU.Lap()
	return c.transport.Send(m)
}

// replying counts a message of the reply. With the first message it sends a header that says how long the request took
// until now.
func (c *Call) replying(m any) {
	wire := &c.Cost.Wire
	wire.Messages++
	if wire.Messages == 1 && c.transport.WantsTiming() {
		c.transport.SetHeader(TimingKey, frontEnds(c.Cost.Elapsed()))
	}
	switch m := m.(type) {
	case *Frame:
		wire.Sent += int64(len(m.Data))
	case proto.Message:
		wire.Sent += int64(proto.Size(m))
	}
}

// End records the end of the call, with error err or nil, in statistics, metrics and log. The transport must call it
// even if the request was never received.
func (c *Call) End(err error) {
	c.statement.active.Finish()
	code := status.Code(err)
	total := c.Cost.End(cost.Ending{Err: err, Failure: c.Failure, Deadline: c.deadline()})
	if c.transport.WantsTiming() {
		c.transport.SetTrailer(TimingKey, totals(total))
	}
	c.Method.metrics.Observe(metrics.Call{
		Code: code, Latency: total.Latency, CPU: total.CPU, SharedCPU: total.SharedCPU, Received: c.Cost.Wire.Received, Sent: c.Cost.Wire.Sent, RemoteCalls: total.RemoteCalls,
		ChangeStream: total.ChangeStream,
	})
	c.log(total, err)
	c.Memory.Close()
	c.Rows.Close()
	c.upload.Close()
}

// deadline returns the time until which the client waits, or zero if the client did not set one.
func (c *Call) deadline() (t time.Time) {
	if c.ctx != nil {
		t, _ = c.ctx.Deadline()
	}
	return t
}

// A Panic is the error of a call, or an operation, that panicked.
type Panic struct {
	Value any
	Stack []byte
}

func (p *Panic) Error() string { return fmt.Sprintf("panic: %v", p.Value) }

// Recover turns a panic into an error. It works only as the deferred function itself: defer Recover(&err).
func Recover(err *error) {
	if p := recover(); p != nil {
		*err = &Panic{p, debug.Stack()}
	}
}

// stackOf returns the stack of the panic that caused err, or nil if err is not the error of a panic.
func stackOf(err error) []byte {
	if p := (*Panic)(nil); errors.As(err, &p) {
		return p.Stack
	}
	return nil
}
