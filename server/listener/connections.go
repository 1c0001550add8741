package listener

import (
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"
)

// Connections counts the open connections of a listener and limits their number.
type Connections struct {
	limit    int64
	open     atomic.Int64
	refused  atomic.Uint64
	arriving chan struct{} // one element for each accepted connection that Enter has neither let in nor closed
}

// maxArriving is the most connections that may arrive at once. Further ones wait in the system's queue, where they use no file
// descriptor of the process.
const maxArriving = 64

// NewConnections returns the counter of a listener with at most limit connections. The process must be able to open
// Arriving(limit) more files.
func NewConnections(limit int) *Connections {
	return &Connections{limit: int64(limit), arriving: make(chan struct{}, Arriving(limit))}
}

// Arriving returns the number of connections beyond its limit that a listener may have while it refuses them.
func Arriving(limit int) int { return max(1, min(maxArriving, limit/8)) }

// Accept waits for the next connection. The caller must then call Enter.
func (c *Connections) Accept(l net.Listener) (net.Conn, error) {
	c.arriving <- struct{}{}
	conn, err := l.Accept()
	if err != nil {
		<-c.arriving
	}
	return conn, err
}

// Enter lets a connection in and returns true; then the caller must call Leave when the connection ends. If the listener is full,
// Enter closes the connection and returns false. Before that, tell writes the reason in the protocol of the listener.
func (c *Connections) Enter(conn net.Conn, tell func(to io.Writer, reason string) error) bool {
	defer func() { <-c.arriving }()
	if c.open.Add(1) <= c.limit {
		return true
	}
	c.open.Add(-1)
	c.refused.Add(1)
	c.refuse(conn, tell)
	return false
}

// refusalTime is how long a client may take to read the reason of its refusal.
const refusalTime = time.Second

func (c *Connections) refuse(conn net.Conn, tell func(to io.Writer, reason string) error) {
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(refusalTime))
	if tell(conn, fmt.Sprintf("too many connections: the server takes at most %d", c.limit)) != nil {
		return
	}
	// If the client's bytes are unread when the connection is closed, TCP resets it, and the reason may be lost on the way.
	if half, ok := conn.(*net.TCPConn); ok && half.CloseWrite() == nil {
		_, _ = io.Copy(io.Discard, io.LimitReader(conn, MaxHeaderBytes))
	}
}

// Leave counts the end of a connection that Enter has let in.
func (c *Connections) Leave() { c.open.Add(-1) }

// Open returns the number of open connections.
func (c *Connections) Open() int { return int(c.open.Load()) }

// Refused returns the number of connections that were closed because the listener was full.
func (c *Connections) Refused() uint64 { return c.refused.Load() }

// Limits on connections. They are our own unless a source is named. The service's front end has limits of its own, of which its
// pages name only the 100 requests at once on one connection (https://cloud.google.com/spanner/docs/sessions#grpc-channels).
const (
	// MaxGRPC and MaxHTTP are the most connections of each listener, if the process may open that many files. An official client
	// opens four, or one for every hundred of its sessions.
	MaxGRPC = 4096
	MaxHTTP = 1024
	// MaxStreams is the most concurrent requests on one connection. A client queues further ones. It is above the service's
	// hundred, so that a client with a single connection and a thousand goroutines does not wait for itself.
	MaxStreams = 1000
	// MaxHeaderBytes is the largest size of a request's headers. Official clients send up to 4 KiB; gRPC's C core refuses larger
	// requests by default (GRPC_ARG_ABSOLUTE_MAX_METADATA_SIZE, https://grpc.github.io/grpc/core/group__grpc__arg__keys.html).
	MaxHeaderBytes = 16 << 10
	// HandshakeTime is how long a client may take for the handshake before its first request, and over HTTP for the headers of
	// each request.
	HandshakeTime = 20 * time.Second
	// ReceiveTime is how long a request may take from its headers to its last byte. The largest request, of 100 MiB, needs 350
	// kB/s.
	ReceiveTime = 5 * time.Minute
	// ReplyTime is how long a client may leave waiting replies unread, if they take more memory than a connection has for free.
	// Official clients resume a stream that ends this way.
	ReplyTime = 2 * time.Minute
	// IdleTime is how long a connection may go without requests. Official clients open a new one when they need it.
	IdleTime = 15 * time.Minute
)

// Share divides the file descriptors for connections among the two listeners.
func Share(descriptors int) (grpc, http int) {
	part := func(most int) int {
		n := min(most, descriptors*most/(MaxGRPC+MaxHTTP))
		return max(n-Arriving(n), 1)
	}
	return part(MaxGRPC), part(MaxHTTP)
}
