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
	limit   int64
	open    atomic.Int64
	refused atomic.Uint64
	// arriving has an element for each connection from the call of Accept until Enter has let the connection in or
	// closed it.
	arriving chan struct{}
}

// maxArriving is how many connections can wait for Enter at the same time. Further connections wait in the system's
// queue, where they use no file descriptor of the process.
const maxArriving = 64

// NewConnections returns the counter for a listener with at most limit connections. Besides these, the process must be
// able to open Arriving(limit) files, for connections that are being refused.
func NewConnections(limit int) *Connections {
	return &Connections{limit: int64(limit), arriving: make(chan struct{}, Arriving(limit))}
}

// Arriving returns how many connections a listener may have open beyond its limit, while it refuses them.
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

// Enter lets a connection in and returns true; the caller must then call Leave when the connection ends. If the
// listener is full, Enter closes the connection and returns false. Before it closes the connection, it calls the
// function tell, which writes the reason to the client in the listener's protocol.
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

// refusalTime is how long Enter waits for a refused client to read the reason.
const refusalTime = time.Second

func (c *Connections) refuse(conn net.Conn, tell func(to io.Writer, reason string) error) {
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(refusalTime))
	if tell(conn, fmt.Sprintf("too many connections: the server takes at most %d", c.limit)) != nil {
		return
	}
	// If bytes of the client are unread when the connection is closed, TCP resets the connection, and the client may
	// not get the reason. So read them.
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

// Limits on connections. Where a comment names no source, the limit is Crowfoot's own choice. Cloud Spanner's front end
// has limits too, but documents only one: 100 requests at once on one connection
// (https://cloud.google.com/spanner/docs/sessions#grpc-channels).
const (
	// MaxGRPC and MaxHTTP are how many connections each listener has at most, if the process may open that many files.
	// By default an official client opens four connections. An application that needs more than 400 sessions should
	// configure one for every hundred of them.
	MaxGRPC = 4096
	MaxHTTP = 1024
	// MaxStreams is how many concurrent requests one connection can have. A client queues further requests. The limit
	// is above Cloud Spanner's 100, so that the requests of a client with one connection and a thousand goroutines do
	// not wait for each other.
	MaxStreams = 1000
	// MaxHeaderBytes is the largest size of a request's headers in bytes. Official clients send up to 4 KiB; gRPC's C
	// core refuses larger headers by default (GRPC_ARG_ABSOLUTE_MAX_METADATA_SIZE,
	// https://grpc.github.io/grpc/core/group__grpc__arg__keys.html).
	MaxHeaderBytes = 16 << 10
	// HandshakeTime is how long a client may take for the handshake before its first request, and over HTTP for the
	// headers of each request.
	HandshakeTime = 20 * time.Second
	// ReceiveTime is how long a request may take from its headers to its last byte. The largest request has 100 MiB, so
	// its client must send 350 kB/s.
	ReceiveTime = 5 * time.Minute
	// ReplyTime is how long replies may wait for a client that does not read. Then its connection is closed. The limit
	// applies only if the replies are so large that their memory is charged to the budget, and only while the budget is
	// short of memory. Official clients resume a stream that ends this way.
	ReplyTime = 2 * time.Minute
	// IdleTime is how long a connection may be without requests before it is closed. Official clients open a new one
	// when they need it.
	IdleTime = 15 * time.Minute
)

// Share divides the file descriptors for connections between the two listeners. It returns the maximum number of
// connections of each listener.
func Share(descriptors int) (grpc, http int) {
	part := func(most int) int {
		n := min(most, descriptors*most/(MaxGRPC+MaxHTTP))
		return max(n-Arriving(n), 1)
	}
	return part(MaxGRPC), part(MaxHTTP)
}
