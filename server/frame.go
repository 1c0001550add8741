package server

import (
	"sync"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
)

// A frame is one encoded message, ready for the wire. It is filled by
// appending to data and belongs to whoever it is sent to.
type frame struct{ data []byte }

// Frames start at a size that holds a point read of a 1 kB row. Buffers that
// grew past maxPooledFrame are left to the garbage collector.
const (
	minFrame       = 4 << 10
	maxPooledFrame = 2 << 20
)

func newFrame() *frame {
	b := frames.Get(minFrame)
	return &frame{data: (*b)[:0]}
}

// detach gives the bytes away as a buffer that returns to the pool once gRPC has written it.
func (f *frame) detach() mem.Buffer {
	b := f.data
	f.data = nil
	return mem.NewBuffer(&b, frames)
}

// decode turns the frame back into a message and frees it: for callers that speak JSON.
func (f *frame) decode(m proto.Message) error {
	err := proto.Unmarshal(f.data, m)
	f.release()
	return err
}

// release gives up a frame that was not sent.
func (f *frame) release() {
	if f.data != nil {
		b := f.data
		f.data = nil
		frames.Put(&b)
	}
}

// frames is the pool of frame buffers.
var frames = &framePool{}

type framePool struct{ pool sync.Pool }

// Get returns a buffer of at least n bytes.
func (p *framePool) Get(n int) *[]byte {
	if b, ok := p.pool.Get().(*[]byte); ok && cap(*b) >= n {
		*b = (*b)[:n]
		return b
	}
	b := make([]byte, n)
	return &b
}

// Put takes a buffer back.
func (p *framePool) Put(b *[]byte) {
	if c := cap(*b); c >= minFrame && c <= maxPooledFrame {
		p.pool.Put(b)
	}
}
