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

// A Call is one request, from the moment at which it arrives until its reply is sent. Its transport takes it through its life:
//
//	Dispatcher.Begin   the transport is about to decode the request into Request
//	Received           its bytes have arrived: latency and CPU time run
//	Run                the method's handler answers it, and gives the messages of a streamed reply to Send
//	End                the reply or the error is known: what the call cost is recorded
//
// The transport owns the Call and may use it again after End, so nothing may keep one.
type Call struct {
	Method  *Method
	Request proto.Message
	Cost    cost.Recorder
	// Memory is charged what the request takes: its message, what it writes, its reply. Rows is charged the rows that its statement keeps.
	Memory, Rows memory.Account
	// Failure is the error of a part of a batch. The reply reports it, and the call itself is answered OK.
	Failure error

	dispatcher *Dispatcher
	transport  Transport
	ctx        context.Context // nil before it runs
	statement  statement       // that runs now
	upload     *memory.Account // charged the newest request of a stream of them; nil before the second
}

// Received starts the call's latency and CPU meter: its request has arrived, in size bytes.
func (c *Call) Received(size int) {
	c.Cost.Wire.Received = int64(size)
	c.Cost.Begin()
	if !c.Method.varied {
		c.Cost.CPU.Is(c.Method.typical)
	}
}

// Run calls the method's handler. The reply is nil if the handler streamed it. A panic of the handler becomes the error of this call.
func (c *Call) Run(ctx context.Context) (reply any, err error) {
	defer Recover(&err)
	c.ctx = cpu.With(ctx, &c.Cost.CPU)
	reply, err = c.Method.handle(c.ctx, c)
	if err == nil && !c.Method.Streaming {
		c.replying(reply)
	}
	return reply, err
}

// Send sends one message of a streamed reply: a proto.Message, or a *Frame, which belongs to the transport from then on.
func (c *Call) Send(m any) error {
	c.replying(m)
	c.Cost.CPU.Lap()
	return c.transport.Send(m)
}

// replying counts a message of the reply. With the first, it tells the client how long the request took up to here.
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

// End records the call, which ended with err, in statistics, metrics and log. It must be called also if the request was never received.
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

// deadline is when the client stops waiting; zero if it does not say.
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

// Recover turns a panic into an error. It must be deferred itself.
func Recover(err *error) {
	if p := recover(); p != nil {
		*err = &Panic{p, debug.Stack()}
	}
}

// stackOf is where err panicked, if it did.
func stackOf(err error) []byte {
	if p := (*Panic)(nil); errors.As(err, &p) {
		return p.Stack
	}
	return nil
}
