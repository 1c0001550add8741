package listener

import (
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"
)

// Connections counts the open connections of a listener, and holds their number within a limit.
type Connections struct {
	limit    int64
	open     atomic.Int64
	refused  atomic.Uint64
	arriving chan struct{} // holds one for each that has been accepted, and is neither let in nor closed yet
}

// maxArriving is how many connections may arrive at once. Further ones wait in the system's queue, where they take no file of the process.
const maxArriving = 64

// NewConnections returns the count of a listener that holds at most limit connections. The process must be able to open Arriving(limit) more
// files.
func NewConnections(limit int) *Connections {
	return &Connections{limit: int64(limit), arriving: make(chan struct{}, Arriving(limit))}
}

// Arriving is how many connections beyond its limit a listener may have, which it is refusing.
func Arriving(limit int) int { return max(1, min(maxArriving, limit/8)) }

// Accept waits for the next connection. Enter must follow, by which it is let in or refused.
func (c *Connections) Accept(l net.Listener) (net.Conn, error) {
	c.arriving <- struct{}{}
	conn, err := l.Accept()
	if err != nil {
		<-c.arriving
	}
	return conn, err
}

// Enter lets a connection in, whose end Leave must follow; or it finds the listener full, closes the connection and returns false. Before it
// closes it, tell writes the reason in the words of the protocol.
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

// refusalTime is how long a client may take to read why it is refused.
const refusalTime = time.Second

func (c *Connections) refuse(conn net.Conn, tell func(to io.Writer, reason string) error) {
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(refusalTime))
	if tell(conn, fmt.Sprintf("too many connections: the server takes at most %d", c.limit)) != nil {
		return
	}
	// If bytes of the client are unread when the connection is closed, TCP resets it, and what was written may be lost on the way.
	if half, ok := conn.(*net.TCPConn); ok && half.CloseWrite() == nil {
		_, _ = io.Copy(io.Discard, io.LimitReader(conn, MaxHeaderBytes))
	}
}

// Leave counts the end of a connection that Enter has let in.
func (c *Connections) Leave() { c.open.Add(-1) }

// Open is how many connections there are.
func (c *Connections) Open() int { return int(c.open.Load()) }

// Refused is how many connections have been closed since the listener was full.
func (c *Connections) Refused() uint64 { return c.refused.Load() }

// Limits on connections, ours unless a source is named. The service's front end has limits of its own, of which its pages name
// only the 100 requests at once on one connection (https://cloud.google.com/spanner/docs/sessions#grpc-channels).
const (
	// MaxGRPC and MaxHTTP are how many connections a listener takes at most, if the process may open so many files. An official
	// client opens four, or one for every hundred of its sessions.
	MaxGRPC = 4096
	MaxHTTP = 1024
	// MaxStreams are the requests at once on one connection. A client lets further ones wait. It is above the service's hundred,
	// so that a client with a single connection and a thousand goroutines does not wait for itself.
	MaxStreams = 1000
	// MaxHeaderBytes is the size of a request's headers. Official clients send up to 4 KiB; gRPC's C core refuses requests above this by default
	// (GRPC_ARG_ABSOLUTE_MAX_METADATA_SIZE, https://grpc.github.io/grpc/core/group__grpc__arg__keys.html).
	MaxHeaderBytes = 16 << 10
	// HandshakeTime is how long a client may take for what precedes its first request on a connection, and over HTTP for the headers of
	// each.
	HandshakeTime = 20 * time.Second
	// ReceiveTime is how long a request may take from its headers to its last byte: the largest, of 100 MiB, comes in time at 350
	// kB/s.
	ReceiveTime = 5 * time.Minute
	// ReplyTime is how long a client may take nothing of replies that wait for it, if they take more memory than a connection has free.
	// Official clients resume a stream that ends so.
	ReplyTime = 2 * time.Minute
	// IdleTime is how long a connection may be without requests. Official clients open a new one when they need it.
	IdleTime = 15 * time.Minute
)

// Share divides the connections that a process can hold, descriptors of files, among the two listeners.
func Share(descriptors int) (grpc, http int) {
	part := func(most int) int {
		n := min(most, descriptors*most/(MaxGRPC+MaxHTTP))
		return max(n-Arriving(n), 1)
	}
	return part(MaxGRPC), part(MaxHTTP)
}
