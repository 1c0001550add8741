package rpc

import (
	"context"
	"slices"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/crowfoot-db/crowfoot/memory"
)

// A Frame is an encoded reply message. A handler appends to Data; from Send on the transport owns the frame.
type Frame struct {
	Data    []byte
	account *memory.Account // charged for the bytes; nil for small frames
}

// minFrame is the capacity of a new frame in bytes: enough for a point read of a 1 kB row. Buffers that grew past
// maxPooledFrame bytes are not reused.
const (
	minFrame       = 4 << 10
	maxPooledFrame = 2 << 20
)

// NewFrame returns an empty frame. The caller must send, decode or release it.
func NewFrame() *Frame {
	b := Buffers.Get(minFrame)
	return &Frame{Data: (*b)[:0]}
}

// Charge charges the server's budget for the frame's memory, until the frame has been sent to the client. Small frames
// are not charged. If there is no memory left it waits as memory.Account.Grow does.
func (f *Frame) Charge(ctx context.Context, c *Call) error {
	if len(f.Data) <= memory.FreeBytes {
		return nil
	}
	if f.account == nil {
		f.account = c.dispatcher.budget.Open(memory.Stream)
	}
	return f.account.Grow(ctx, int64(cap(f.Data))-f.account.Used())
}

// Reserve grows the frame for n more bytes, which the caller is about to append, and charges for them as Charge does.
func (f *Frame) Reserve(ctx context.Context, c *Call, n int) error {
	size := len(f.Data) + n
	if size <= memory.FreeBytes {
		return nil
	}
	if f.account == nil {
		f.account = c.dispatcher.budget.Open(memory.Stream)
	}
	if more := int64(size) - f.account.Used(); more > 0 {
		if err := f.account.Grow(ctx, more); err != nil {
			return err
		}
	}
	f.Data = slices.Grow(f.Data, n)
	return nil
}

// Detach empties the frame. It returns the frame's bytes and the account that is charged for them, or nil if nothing is
// charged. The transport puts the bytes into Buffers when they are written. If the message is small but its buffer
// large, Detach returns a copy in a small buffer.
func (f *Frame) Detach() (*[]byte, *memory.Account) {
	b, charged := f.Data, f.account
	f.Data, f.account = nil, nil
	if len(b) <= minFrame && cap(b) > memory.FreeBytes {
		small := append(make([]byte, 0, minFrame), b...)
		Buffers.Put(&b)
		return &small, charged
	}
	return &b, charged
}

// Decode decodes the frame into m and releases it, for transports that do not speak protobuf.
func (f *Frame) Decode(m proto.Message) error {
	err := proto.Unmarshal(f.Data, m)
	f.Release()
	return err
}

// Release is for a frame that was not sent. It puts the frame's bytes back into Buffers and closes its account.
func (f *Frame) Release() {
	if f.Data != nil {
		b, charged := f.Detach()
		charged.Close()
		Buffers.Put(b)
	}
}

// Buffers is the pool of the buffers of frames.
var Buffers = &BufferPool{}

// A BufferPool is a pool of byte buffers with capacities from minFrame to maxPooledFrame.
type BufferPool struct{ pool sync.Pool }

// Get returns a buffer with a length of n bytes, from the pool or new.
func (p *BufferPool) Get(n int) *[]byte {
	if b, ok := p.pool.Get().(*[]byte); ok && cap(*b) >= n {
		*b = (*b)[:n]
		return b
	}
	b := make([]byte, n)
	return &b
}

// Put returns a buffer to the pool, unless it is too small or too large for the pool.
func (p *BufferPool) Put(b *[]byte) {
	if c := cap(*b); c >= minFrame && c <= maxPooledFrame {
		p.pool.Put(b)
	}
}
