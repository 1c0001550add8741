package rpc

import (
	"context"
	"runtime"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/crowfoot-db/crowfoot/memory"
)

// A Frame is an encoded message of a reply. A handler fills it by
// appending to Data; once it is sent it belongs to the transport.
type Frame struct {
	Data    []byte
	account *memory.Account // nil for small ones
}

// Frames start at a size that holds a point read of a 1 kB row. Buffers that
// grew past maxPooledFrame are left to the garbage collector.
const (
	minFrame       = 4 << 10
	maxPooledFrame = 2 << 20
)

// NewFrame returns an empty frame. It must be sent, decoded or released.
func NewFrame() *Frame {
	b := Buffers.Get(minFrame)
	return &Frame{Data: (*b)[:0]}
}

// Charge charges the frame's memory, as it is now, to the budget of the call's server, until the client has been sent it. Small frames are
// not charged.
func (f *Frame) Charge(ctx context.Context, c *Call) error {
	if len(f.Data) <= memory.FreeBytes {
		return nil
	}
	if f.account == nil {
		f.account = c.dispatcher.budget.Open(memory.Stream)
	}
	return f.account.Grow(ctx, int64(cap(f.Data))-f.account.Used())
}

// Detach empties the frame and returns its bytes, and the pool into which the transport puts them when they are written.
func (f *Frame) Detach() (*[]byte, Pool) {
	b, pool := f.Data, Pool(Buffers)
	if f.account != nil {
		pool = newChargedPool(f.account)
	}
	f.Data, f.account = nil, nil
	return &b, pool
}

// Decode decodes the frame into m and releases it, for transports that do not speak protobuf.
func (f *Frame) Decode(m proto.Message) error {
	err := proto.Unmarshal(f.Data, m)
	f.Release()
	return err
}

// Release puts the bytes of a frame that is not sent back into Buffers.
func (f *Frame) Release() {
	if f.Data != nil {
		b, pool := f.Detach()
		pool.Put(b)
	}
}

// A Pool is where the bytes of a frame go when they are written.
type Pool interface {
	Get(n int) *[]byte
	Put(*[]byte)
}

// A chargedPool takes back the bytes of one charged frame. If the connection breaks the transport may drop them instead, so the garbage collector closes
// the account then.
type chargedPool struct {
	*BufferPool
	account *memory.Account
	dropped runtime.Cleanup
}

func newChargedPool(account *memory.Account) *chargedPool {
	p := &chargedPool{BufferPool: Buffers, account: account}
	p.dropped = runtime.AddCleanup(p, (*memory.Account).Close, account)
	return p
}

// Put takes the bytes back, and gives what they were charged back to the budget.
func (p *chargedPool) Put(b *[]byte) {
	p.dropped.Stop()
	p.account.Close()
	p.BufferPool.Put(b)
}

// Buffers is the pool of the frames' bytes.
var Buffers = &BufferPool{}

// A BufferPool is a pool of buffers of all sizes from minFrame to maxPooledFrame.
type BufferPool struct{ pool sync.Pool }

// Get returns a buffer of n bytes.
func (p *BufferPool) Get(n int) *[]byte {
	if b, ok := p.pool.Get().(*[]byte); ok && cap(*b) >= n {
		*b = (*b)[:n]
		return b
	}
	b := make([]byte, n)
	return &b
}

// Put takes a buffer back.
func (p *BufferPool) Put(b *[]byte) {
	if c := cap(*b); c >= minFrame && c <= maxPooledFrame {
		p.pool.Put(b)
	}
}
