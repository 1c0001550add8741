package grpc

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"net"
	"sync"
	"sync/atomic"

	"golang.org/x/net/http2"

	"github.com/crowfoot-db/crowfoot/server/listener"
)

// gRPC's library reads a message into memory before a handler or a codec sees it, however many clients send messages at
// once. After a message it reads on until the end of the stream, and so also reads a second message. A handler or a
// codec would thus charge too late. So a connection of the listener follows each message through the frames of HTTP/2
// (https://www.rfc-editor.org/rfc/rfc9113#section-4.1) on their way to the library.
//
// If a message is complete in its first frame, the codec charges for it. Any other message must get memory from the
// budget before more of it is received. If the budget has none, the message is refused: the library gets an empty
// message and the end of the stream instead, and the reply gives the reason. The remaining frames of the message still
// count for the flow control of the connection, so the library gets them too. But it gets them as frames of a stream
// that does not exist (noStream), and drops them.

// An inbound is the receiving side of a connection. The library reads from it without a buffer of its own, so inbound
// inspects each frame just when the library reads that frame. One goroutine reads and another one writes.
type inbound struct {
	net.Conn
	all *connections

	r     *bufio.Reader
	ahead bytes.Buffer // bytes that the library gets before it gets more bytes of r
	left  int          // bytes of the current frame, or of the client's preface, that the library has not yet read

	unproductive int // number of frames since the last frame with content

	written    outgoing
	sent       atomic.Int64 // bytes of replies that the library has begun to write
	lastSent   int64        // value of the field sent at the last call of the method stalled
	lastSentAt int64        // tick of the last call of stalled when the field sent had changed or no reply waited
	held       *holding

	mu     sync.Mutex
	block  int                // length of the newest stream's compressed headers in bytes
	opened map[uint32]int64   // bytes reserved for the headers of each stream
	owed   int64              // sum of the bytes in opened
	last   uint32             // number of the newest stream, which is the highest
	begun  begun              // zero once content of the newest stream has come
	open   map[uint32]*upload // uploads that have not ended, by number of the stream
	closed bool
}

// begun is the newest stream, until the first content of the stream comes.
type begun struct {
	stream  uint32
	receipt *receipt // nil if the headers are not those of a request to the dispatcher's services
	small   bool     // the stream is a request of gRPC's own services
	several bool     // the stream consists of any number of requests
}

const (
	readBuffer  = 64 << 10
	frameHeader = 9 // bytes: length 3, type 1, flags 1, stream 4
	// maxUnproductive is how many frames in a row may bring no content: empty headers and content, priorities, frames
	// that HTTP/2 does not know. Official clients send no such frames; others send a few when a connection begins. Many
	// are an attack: https://www.rfc-editor.org/rfc/rfc9113#section-10.5.
	maxUnproductive = 1000
	// maxFrame is the length of the longest frame in bytes (https://www.rfc-editor.org/rfc/rfc9113#section-6.5.2).
	// gRPC's library accepts no longer frames.
	maxFrame = 16 << 10
	// noStream is the number of a stream that never exists, because clients use odd numbers. The library drops frames
	// of this stream, and gives their bytes back to the flow-control window of the connection.
	noStream = 2
)

// errUnproductive ends a connection whose client sends more than maxUnproductive frames without content.
var errUnproductive = errors.New("too many frames without content")

func newInbound(c net.Conn, all *connections) *inbound {
	return &inbound{Conn: c, all: all, r: bufio.NewReaderSize(c, readBuffer), left: len(http2.ClientPreface), held: newHolding(all.uploads.budget),
		opened: map[uint32]int64{}, open: map[uint32]*upload{}}
}

// Read implements net.Conn. One call reads bytes of one frame at most, so that nextFrame sees the next frame before the
// library does.
func (c *inbound) Read(p []byte) (int, error) {
	if c.ahead.Len() == 0 && c.left == 0 {
		if err := c.nextFrame(); err != nil {
			return 0, err
		}
	}
	if c.ahead.Len() > 0 {
		return c.ahead.Read(p)
	}
	n, err := c.r.Read(p[:min(len(p), c.left)])
	c.left -= n
	return n, err
}

// nextFrame inspects the next frame before the library reads it.
func (c *inbound) nextFrame() error {
	head, err := c.r.Peek(frameHeader)
	if err != nil {
		return err
	}
	length := int(head[0])<<16 | int(head[1])<<8 | int(head[2])
	kind, flags, stream := http2.FrameType(head[3]), http2.Flags(head[4]), binary.BigEndian.Uint32(head[5:])&(1<<31-1)
	c.left = frameHeader + length
	if c.unproductive++; c.unproductive > maxUnproductive {
		return errUnproductive
	}
	switch kind {
	case http2.FrameHeaders:
		c.unproductive = 0
		c.headers(stream, length, flags)
	case http2.FrameContinuation:
		if length > 0 {
			c.unproductive = 0
		}
		c.continued(length)
	case http2.FrameData:
		return c.data(dataFrame{stream: stream, flags: flags, length: length})
	case http2.FrameRSTStream:
		c.unproductive = 0 // the library itself limits frames of this type and the next three
		c.end(stream)
	case http2.FrameWindowUpdate, http2.FrameSettings, http2.FramePing:
		c.unproductive = 0
	}
	return nil
}

// headers registers a new stream. It does nothing if the stream is not new, because the library then ends the
// connection.
func (c *inbound) headers(stream uint32, length int, flags http2.Flags) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if stream <= c.last {
		return
	}
	c.last, c.block = stream, length
	if c.begun.stream != 0 {
		c.follow()
	}
	c.begun = begun{}
	if !flags.Has(http2.FlagHeadersEndStream) {
		c.begun.stream = stream
	}
}

// continued adds the length of further headers of the newest stream, which came in a CONTINUATION frame.
func (c *inbound) continued(length int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.block += length
}

// hold reserves memory for the newest stream's headers, until that stream ends. It fails if the budget has no memory
// left. The caller holds c.mu.
func (c *inbound) hold() error {
	n := int64(streamBytes + headerFactor*c.block)
	if err := c.held.tryReserve(n); err != nil {
		return err
	}
	c.opened[c.last] = n
	c.owed += n
	return nil
}

// follow starts to follow the upload of the newest stream. The caller holds c.mu.
func (c *inbound) follow() *upload {
	up := &upload{all: &c.all.uploads, small: c.begun.small, several: c.begun.several}
	if up.small {
		up.left = longMessage
	}
	if c.begun.receipt != nil {
		c.begun.receipt.upload.Store(up)
	}
	c.open[c.begun.stream] = up
	c.begun = begun{}
	return up
}

// A dataFrame is a DATA frame. It consists of its header, the length of its padding if it has padding, the content, and
// the padding.
type dataFrame struct {
	stream  uint32
	flags   http2.Flags
	length  int    // length of the frame in bytes, without the header
	padding []byte // the byte that holds the length of the padding; empty if the frame has no padding
	content int    // length of the content in bytes
	first   []byte // all of the content, or at least its first messageHeader bytes; bytes of the padding may follow
}

// data inspects a DATA frame before the library reads it.
func (c *inbound) data(f dataFrame) error {
	frame, err := c.r.Peek(frameHeader + min(f.length, 1+messageHeader))
	if err != nil {
		return err
	}
	f.content, f.first = f.length, frame[frameHeader:]
	if f.flags.Has(http2.FlagDataPadded) && f.length > 0 {
		f.padding, f.first = f.first[:1], f.first[1:]
		f.content -= 1 + int(f.padding[0])
	}
	if f.content < 0 {
		return nil // the padding is longer than the frame, so the library ends the connection
	}
	if f.content > 0 {
		c.unproductive = 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	up, ends := c.open[f.stream], f.flags.Has(http2.FlagDataEndStream)
	switch {
	case c.closed || up == nil && f.stream != c.begun.stream:
		return nil // the stream has ended, and the library drops its data
	case up == nil && f.content == 0:
		if ends {
			c.begun = begun{}
		}
		return nil
	case up == nil && ends && f.isMessage():
		c.begun = begun{}
		return nil
	case up == nil:
		up = c.follow()
	}
	if up.several {
		return c.messages(up, f)
	}
	c.upload(up, f)
	return nil
}

// messages inspects a DATA frame of an upload of several messages. If a message is refused, the library gets the end of
// the stream instead. The caller holds c.mu.
func (c *inbound) messages(up *upload, f dataFrame) error {
	if f.length > maxFrame {
		return nil // the library accepts no frame of this length and ends the connection
	}
	if up.refusal == nil {
		frame, err := c.r.Peek(frameHeader + f.length)
		if err != nil {
			return err
		}
		content := frame[frameHeader+len(f.padding):][:f.content]
		for len(content) > 0 && up.refusal == nil {
			content = content[up.next(content):]
		}
		if up.refusal == nil {
			return nil
		}
		up.end()
		c.insert(f.stream, http2.FlagDataEndStream, nil)
	}
	c.pass(f, 0, noStream)
	return nil
}

// isMessage reports whether the frame contains exactly one whole message.
func (f *dataFrame) isMessage() bool {
	return f.content >= messageHeader && int(binary.BigEndian.Uint32(f.first[1:])) == f.content-messageHeader
}

// upload inspects a DATA frame of an upload. The library gets the header of a message only when all bytes of the header
// have come. Until then, an empty message can still replace the message. The caller holds c.mu.
func (c *inbound) upload(up *upload, f dataFrame) {
	if up.refusal != nil {
		c.pass(f, 0, noStream)
		return
	}
	had := up.have
	up.arrived(f.first, f.content, c.all.tick.Load())
	k := up.have - had // bytes of the message's header in this frame
	switch {
	case up.refusal != nil:
		up.end()
		// The library gets an empty message and the end of the stream instead of the refused message. If the library
		// already has the beginning of the message, it gets only the end of the stream.
		var instead []byte
		if k > 0 {
			instead = make([]byte, messageHeader)
		}
		c.insert(f.stream, http2.FlagDataEndStream, instead)
		c.pass(f, k, noStream)
	case k > 0 && k < messageHeader:
		if up.have == messageHeader {
			c.insert(f.stream, 0, up.header[:])
		}
		c.pass(f, k, f.stream)
	}
}

// insert makes the library read a DATA frame that the client has not sent.
func (c *inbound) insert(stream uint32, flags http2.Flags, content []byte) {
	c.writeDataHeader(len(content), flags, stream)
	c.ahead.Write(content)
}

// pass makes the library read the frame as a frame of the given stream, without the first k bytes of its content. These
// k bytes belong to a message's header. The caller inserts them in another frame, because the flow control of HTTP/2
// counts all bytes.
func (c *inbound) pass(f dataFrame, k int, stream uint32) {
	c.writeDataHeader(f.length-k, f.flags, stream)
	c.ahead.Write(f.padding)
	c.left = f.length - len(f.padding) - k
	_, _ = c.r.Discard(frameHeader + len(f.padding) + k) // cannot fail, because these bytes were peeked at
}

func (c *inbound) writeDataHeader(length int, flags http2.Flags, stream uint32) {
	c.ahead.Write([]byte{byte(length >> 16), byte(length >> 8), byte(length), byte(http2.FrameData), byte(flags)})
	c.ahead.Write(binary.BigEndian.AppendUint32(nil, stream))
}

// end registers the end of a stream: the client or the library has reset the stream, or the library has answered it.
func (c *inbound) end(stream uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if stream == c.begun.stream {
		c.begun = begun{}
	}
	if up := c.open[stream]; up != nil {
		delete(c.open, stream)
		up.end()
	}
	if n, ok := c.opened[stream]; ok {
		delete(c.opened, stream)
		c.owed -= n
		c.held.release(n)
	}
}

// stalled reports whether the client does not read its replies although memory is short: replies are charged to the
// budget, the budget is short, and no byte of replies was written for listener.ReplyTime. Only watch calls it.
func (c *inbound) stalled(tick int64) bool {
	c.mu.Lock()
	waiting := c.held.isWanted() && c.held.bytes.Load() > c.owed
	c.mu.Unlock()
	if sent := c.sent.Load(); !waiting || sent != c.lastSent || c.lastSentAt == 0 {
		c.lastSent, c.lastSentAt = sent, tick
	}
	return tick-c.lastSentAt > int64(listener.ReplyTime/watchEvery)
}

// behind reports whether an upload of the connection arrives too slowly.
func (c *inbound) behind(tick int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, up := range c.open {
		if up.behind(tick) {
			return true
		}
	}
	return false
}

// Write implements net.Conn.
func (c *inbound) Write(p []byte) (int, error) {
	c.written.look(p, c.end)
	c.sent.Store(c.written.content)
	return c.Conn.Write(p)
}

// Close implements net.Conn.
func (c *inbound) Close() error {
	c.mu.Lock()
	c.closed = true
	for _, up := range c.open {
		up.end()
	}
	clear(c.open)
	c.mu.Unlock()
	c.held.close()
	return c.Conn.Close()
}

// outgoing finds the frames in the bytes that the library writes. One call of Write may have several frames, or a piece
// of one.
type outgoing struct {
	head [frameHeader]byte
	have int // number of bytes in head that the library has written
	left int // bytes of the frame after head that the library has not yet written

	content int64 // bytes of all DATA frames so far
}

// look inspects the written bytes p. For each stream that ends in these bytes, look calls the function ended.
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
		if kind == http2.FrameData {
			o.content += int64(o.left)
		}
		ends := (kind == http2.FrameHeaders || kind == http2.FrameData) && flags.Has(http2.FlagDataEndStream)
		if ends || kind == http2.FrameRSTStream {
			ended(binary.BigEndian.Uint32(o.head[5:]) & (1<<31 - 1))
		}
	}
}
