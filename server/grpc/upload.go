package grpc

import (
	"bufio"
	"encoding/binary"
	"net"
	"sync"

	"golang.org/x/net/http2"

	"github.com/crowfoot-db/crowfoot/memory"
	"github.com/crowfoot-db/crowfoot/server/rpc"
)

// gRPC's library reads a message into memory before a handler or a codec sees it, however many clients send one at once. So a
// connection of the listener looks at the frames of HTTP/2 (https://www.rfc-editor.org/rfc/rfc9113#section-4.1) on their way to the library. Before a
// long message is received there must be room in the budget for all that its request will take. If there is none, the message's
// length is written over by one that the library refuses at once, with RESOURCE_EXHAUSTED, and what follows is dropped.

const (
	// longMessage is the length in bytes from which messages are charged before they arrive. A client may send as much, a stream's
	// window, before the library begins to read.
	longMessage = window
	// refusedLength is above maxMessage.
	refusedLength = 1<<32 - 1
)

// uploads are the long messages of a server that are being received, or are received and not yet decoded.
type uploads struct {
	budget *memory.Budget

	mu       sync.Mutex
	received map[int][]*upload // by length
}

// An upload is a long message.
type upload struct {
	length  int
	left    int // bytes that have not arrived
	account *memory.Account
	over    bool // its request was decoded, or has ended
}

func newUploads(budget *memory.Budget) *uploads {
	return &uploads{budget: budget, received: map[int][]*upload{}}
}

// take takes the charge for a message of some length that was received. It is nil for a short one. Which of several of the same length
// it was charged for does not matter.
func (u *uploads) take(length int) *memory.Account {
	if length < longMessage {
		return nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for list := u.received[length]; len(list) > 0; {
		one := list[0]
		list = list[1:]
		if u.received[length] = list; len(list) == 0 {
			delete(u.received, length)
		}
		if !one.over {
			one.over = true
			return one.account
		}
	}
	return nil
}

// begin charges for a message of some length; nil if there is no room for it.
func (u *uploads) begin(length int) *upload {
	need := int64(length)
	if length <= rpc.MaxCommitBytes { // the codec refuses longer ones without decoding them
		need *= rpc.MessageFactor
	}
	one := &upload{length: length, left: length, account: u.budget.Open(memory.Request)}
	if !one.account.TryGrow(need) {
		u.budget.Refused(memory.Request)
		return nil
	}
	return one
}

// arrived notes that n more bytes of an upload are here.
func (u *uploads) arrived(one *upload, n int) {
	if one.left -= n; one.left > 0 {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if !one.over {
		u.received[one.length] = append(u.received[one.length], one)
	}
}

// end gives back what an upload was charged, unless its request was decoded.
func (u *uploads) end(one *upload) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !one.over {
		one.over = true
		one.account.Close()
	}
}

// An inbound is what comes in on a connection. The library reads from it without a buffer of its own, so that each frame is looked at as the library
// comes to it. One goroutine reads and another one writes.
type inbound struct {
	net.Conn
	uploads *uploads

	r       *bufio.Reader
	left    int                 // bytes of the frame, or of the client's preface, that the library has not read
	begun   uint32              // the newest stream, until its data come
	pending map[uint32]struct{} // older streams without data

	written outgoing

	mu     sync.Mutex
	open   map[uint32]*upload // by stream
	closed bool
}

const (
	readBuffer  = 64 << 10
	frameHeader = 9 // bytes: length 3, type 1, flags 1, stream 4
	// messageHeader are the bytes before a gRPC message: compressed 1, length 4.
	messageHeader = 5
)

func newInbound(c net.Conn, u *uploads) *inbound {
	return &inbound{Conn: c, uploads: u, r: bufio.NewReaderSize(c, readBuffer), left: len(http2.ClientPreface),
		pending: map[uint32]struct{}{}, open: map[uint32]*upload{}}
}

// Read implements net.Conn. It reads no further than the end of a frame.
func (c *inbound) Read(p []byte) (int, error) {
	if c.left == 0 {
		if err := c.nextFrame(); err != nil {
			return 0, err
		}
	}
	n, err := c.r.Read(p[:min(len(p), c.left)])
	c.left -= n
	return n, err
}

// nextFrame looks at the frame that begins here.
func (c *inbound) nextFrame() error {
	head, err := c.r.Peek(frameHeader)
	if err != nil {
		return err
	}
	length := int(head[0])<<16 | int(head[1])<<8 | int(head[2])
	kind, flags, stream := http2.FrameType(head[3]), http2.Flags(head[4]), binary.BigEndian.Uint32(head[5:])&(1<<31-1)
	c.left = frameHeader + length
	switch kind {
	case http2.FrameHeaders:
		if c.begun != 0 {
			c.pending[c.begun] = struct{}{}
		}
		c.begun = stream
		if flags.Has(http2.FlagHeadersEndStream) {
			c.begun = 0
		}
	case http2.FrameData:
		return c.data(stream, flags, length)
	case http2.FrameRSTStream:
		delete(c.pending, stream)
		c.end(stream)
	}
	return nil
}

// data looks at a frame of data: at the first one of a stream, with which a message begins, or at a further one of an upload.
func (c *inbound) data(stream uint32, flags http2.Flags, length int) error {
	_, waits := c.pending[stream]
	if stream != c.begun && !waits {
		c.continued(stream, length)
		return nil
	}
	padding := 0
	if flags.Has(http2.FlagDataPadded) {
		padding = 1
	}
	if length == padding && !flags.Has(http2.FlagDataEndStream) {
		return nil // the message does not begin yet
	}
	if stream == c.begun {
		c.begun = 0
	}
	delete(c.pending, stream)
	if length < padding+messageHeader {
		return nil // no client parts the five bytes; the codec will charge for the message
	}
	frame, err := c.r.Peek(frameHeader + padding + messageHeader)
	if err != nil {
		return err
	}
	size := frame[frameHeader+padding+1:]
	message := int(binary.BigEndian.Uint32(size))
	if message < longMessage || message > maxMessage {
		return nil
	}
	one := c.uploads.begin(message)
	if one == nil {
		binary.BigEndian.PutUint32(size, refusedLength)
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		c.uploads.end(one)
		return nil
	}
	c.open[stream] = one
	c.uploads.arrived(one, length-padding-messageHeader)
	return nil
}

// continued notes further data of an upload.
func (c *inbound) continued(stream uint32, length int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if one := c.open[stream]; one != nil {
		c.uploads.arrived(one, length)
	}
}

// end notes that a stream has ended.
func (c *inbound) end(stream uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if one := c.open[stream]; one != nil {
		delete(c.open, stream)
		c.uploads.end(one)
	}
}

// Write implements net.Conn.
func (c *inbound) Write(p []byte) (int, error) {
	c.written.look(p, c.end)
	return c.Conn.Write(p)
}

// Close implements net.Conn.
func (c *inbound) Close() error {
	c.mu.Lock()
	c.closed = true
	for stream, one := range c.open {
		delete(c.open, stream)
		c.uploads.end(one)
	}
	c.mu.Unlock()
	return c.Conn.Close()
}

// outgoing follows the frames that the library writes, in pieces of any length.
type outgoing struct {
	head [frameHeader]byte
	have int // bytes of head
	left int // bytes of the frame behind head
}

// look calls ended for the streams that end in p.
func (o *outgoing) look(p []byte, ended func(stream uint32)) {
	for len(p) > 0 {
		if o.left > 0 {
			n := min(o.left, len(p))
			o.left -= n
			p = p[n:]
			continue
		}
		n := copy(o.head[o.have:], p)
		p = p[n:]
		if o.have += n; o.have < frameHeader {
			return
		}
		o.have, o.left = 0, int(o.head[0])<<16|int(o.head[1])<<8|int(o.head[2])
		kind, flags := http2.FrameType(o.head[3]), http2.Flags(o.head[4])
		ends := (kind == http2.FrameHeaders || kind == http2.FrameData) && flags.Has(http2.FlagDataEndStream)
		if ends || kind == http2.FrameRSTStream {
			ended(binary.BigEndian.Uint32(o.head[5:]) & (1<<31 - 1))
		}
	}
}
