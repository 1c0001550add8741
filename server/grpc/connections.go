package grpc

import (
	"context"
	"io"
	"log/slog"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/crowfoot-db/crowfoot/memory"
	"github.com/crowfoot-db/crowfoot/server/listener"
)

// connections holds the open connections. It plays the part of the transport credentials of gRPC's library (without TLS), because
// the handshake is the right moment to count a connection: the library has set its TCP options and not yet allocated memory for
// it.
type connections struct {
	credentials.TransportCredentials
	count   *listener.Connections
	uploads uploads
	log     *slog.Logger
	several map[string]bool // the full names of methods that take a stream of requests

	tick atomic.Int64 // counts watchEvery
	mu   sync.Mutex
	open map[*connection]struct{}
}

func newConnections(count *listener.Connections, budget *memory.Budget, log *slog.Logger) *connections {
	return &connections{TransportCredentials: insecure.NewCredentials(), count: count, uploads: uploads{budget: budget}, log: log, open: map[*connection]struct{}{}, several: map[string]bool{}}
}

// ServerHandshake implements credentials.TransportCredentials. For io.EOF gRPC's library closes the connection without a line in
// its log.
func (c *connections) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	if !c.count.Enter(raw, sayFull) {
		return nil, nil, io.EOF
	}
	conn := &connection{inbound: newInbound(raw, c)}
	conn.address = address{raw.RemoteAddr(), conn}
	c.mu.Lock()
	c.open[conn] = struct{}{}
	c.mu.Unlock()
	return c.TransportCredentials.ServerHandshake(conn)
}

// sayFull writes a GOAWAY frame. Official clients show its text to their users.
func sayFull(to io.Writer, reason string) error {
	framer := http2.NewFramer(to, nil)
	if err := framer.WriteSettings(); err != nil {
		return err
	}
	return framer.WriteGoAway(0, http2.ErrCodeEnhanceYourCalm, []byte(reason))
}

// accepting is a listener whose connections the handshake counts. It does not wrap them, because gRPC's library sets TCP options
// on them.
type accepting struct {
	net.Listener
	count *listener.Connections
}

// Accept implements net.Listener.
func (a accepting) Accept() (net.Conn, error) { return a.count.Accept(a.Listener) }

// A connection tracks the requests that it is receiving.
type connection struct {
	*inbound
	address address
	gone    sync.Once

	// Guarded by the inbound's mutex.
	used      bool     // a request has come
	receiving int      // number of requests in receipt
	oldest    *receipt // the list of requests in receipt
	newest    *receipt
}

// address is the remote address of a connection. A request finds its connection by it.
type address struct {
	net.Addr
	conn *connection
}

// RemoteAddr implements net.Conn.
func (c *connection) RemoteAddr() net.Addr { return c.address }

// Close implements net.Conn.
func (c *connection) Close() error {
	c.gone.Do(func() {
		c.all.mu.Lock()
		delete(c.all.open, c)
		c.all.mu.Unlock()
		c.all.count.Leave()
	})
	return c.inbound.Close()
}

// watchEvery is the interval between two checks of the connections. Its ticks date the requests in receipt.
const watchEvery = listener.ReceiveTime / 30

// watch closes connections whose clients do not finish sending, or do not read their replies, until closing is closed.
func (c *connections) watch(closing <-chan struct{}) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			c.closeOverdue(c.tick.Add(1))
		case <-closing:
			return
		}
	}
}

// closeOverdue closes connections at a tick for one of three reasons. A request has been in receipt for listener.ReceiveTime, a
// message that has room in the budget comes too slowly, or the client does not read replies that are charged to the budget. It
// closes the whole connection, because gRPC's library offers no way to end one request.
func (c *connections) closeOverdue(now int64) {
	before := now - int64(listener.ReceiveTime/watchEvery)
	for _, conn := range c.which(func(conn *connection) bool { return conn.receivingSince() < before || conn.behind(now) }) {
		c.log.Warn("connection closed: a request did not arrive in time", slog.String("client", conn.RemoteAddr().String()), slog.Duration("limit", listener.ReceiveTime))
		_ = conn.Close()
	}
	for _, conn := range c.which(func(conn *connection) bool { return conn.stalled(now) }) {
		c.log.Warn("connection closed: the client does not take its replies", slog.String("client", conn.RemoteAddr().String()), slog.Duration("limit", listener.ReplyTime))
		_ = conn.Close()
	}
}

// which returns the open connections for which holds returns true.
func (c *connections) which(holds func(*connection) bool) (found []*connection) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.open {
		if holds(conn) {
			found = append(found, conn)
		}
	}
	return found
}

// close closes the open connections for which holds returns true.
func (c *connections) close(holds func(*connection) bool) {
	for _, conn := range c.which(holds) {
		_ = conn.Close()
	}
}

// A receipt is a request between its headers and the end of its message. It is also the request's context, in which receiptKey
// finds it.
type receipt struct {
	context.Context
	conn          *connection
	since         int64    // tick at which the request began
	before, after *receipt // in the connection's list
	over          bool
	upload        atomic.Pointer[upload] // nil if its message came in one frame
}

type receiptKey struct{}

// Value implements context.Context.
func (r *receipt) Value(key any) any {
	if key == (receiptKey{}) {
		return r
	}
	return r.Context.Value(key)
}

// begin registers a request, or a stream of several, that has begun. The receipt is the request's context and ends with the
// request, received or not. begin fails if there is no room for the request.
func (c *connection) begin(ctx context.Context, several bool) (*receipt, error) {
	r := &receipt{Context: ctx, conn: c, since: c.all.tick.Load()}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.used = true
	if err := c.hold(); err != nil {
		return nil, err
	}
	if c.receiving++; c.receiving > listener.MaxStreams {
		c.forgetEnded()
	}
	r.before = c.newest
	if c.newest == nil {
		c.oldest = r
	} else {
		c.newest.after = r
	}
	c.newest = r
	c.begun.receipt, c.begun.several = r, several
	return r, nil
}

// receiptOf returns the receipt in a request's context; nil for requests of the library's own services.
func receiptOf(ctx context.Context) *receipt {
	r, _ := ctx.Value(receiptKey{}).(*receipt)
	return r
}

// received marks the request as received, or refused. It returns the refusal if there is one.
func (r *receipt) received() (refusal error) {
	r.conn.mu.Lock()
	defer r.conn.mu.Unlock()
	r.conn.remove(r)
	if up := r.upload.Load(); up != nil {
		return up.refusal
	}
	return nil
}

// detachAccount returns the account that was charged while the request was received; nil if there is none. The caller owns it.
func (r *receipt) detachAccount() *memory.Account {
	up := r.upload.Load()
	if up == nil {
		return nil
	}
	r.conn.mu.Lock()
	defer r.conn.mu.Unlock()
	return up.detachAccount()
}

// remove removes a receipt from the list. The caller holds c.mu.
func (c *connection) remove(r *receipt) {
	if r.over {
		return
	}
	r.over = true
	c.receiving--
	if r.before == nil {
		c.oldest = r.after
	} else {
		r.before.after = r.after
	}
	if r.after == nil {
		c.newest = r.before
	} else {
		r.after.before = r.before
	}
}

// forgetEnded removes requests that their clients have cancelled. The caller holds c.mu.
func (c *connection) forgetEnded() {
	for r := c.oldest; r != nil; {
		next := r.after
		if r.Err() != nil {
			c.remove(r)
		}
		r = next
	}
}

// asked reports whether a request has come on the connection.
func (c *connection) asked() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.used
}

// receivingSince returns the tick at which the oldest request in receipt began, or math.MaxInt64 if there is none.
func (c *connection) receivingSince() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forgetEnded()
	if c.oldest == nil {
		return math.MaxInt64
	}
	return c.oldest.since
}
