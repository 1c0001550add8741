package rpc

import (
	"sync"

	"google.golang.org/protobuf/proto"
)

// A Frame is an encoded message of a reply. A handler fills it by
// appending to Data; once it is sent it belongs to the transport.
type Frame struct{ Data []byte }

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

// Detach empties the frame and returns its bytes. The transport puts them back into Buffers when they are written.
func (f *Frame) Detach() *[]byte {
	b := f.Data
	f.Data = nil
	return &b
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
		Buffers.Put(f.Detach())
	}
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
