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

// connections holds the open connections. For gRPC's library it is the transport credentials (without TLS), because
// their handshake is the right moment to count a connection: the library has set the connection's TCP options, but has
// not yet allocated memory for it.
type connections struct {
	credentials.TransportCredentials
	count   *listener.Connections
	uploads uploads
	log     *slog.Logger
	several map[string]bool // the full names of methods that take a stream of requests

	tick atomic.Int64 // number of intervals of watchEvery so far
	mu   sync.Mutex
	open map[*connection]struct{}
}

func newConnections(count *listener.Connections, budget *memory.Budget, log *slog.Logger) *connections {
	return &connections{TransportCredentials: insecure.NewCredentials(), count: count, uploads: uploads{budget: budget}, log: log, open: map[*connection]struct{}{}, several: map[string]bool{}}
}

// ServerHandshake implements credentials.TransportCredentials. If there are too many connections it returns io.EOF, for
// which gRPC's library closes the connection without a line in its log.
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

// sayFull writes a GOAWAY frame with the reason. Official clients show the reason to their users.
func sayFull(to io.Writer, reason string) error {
	framer := http2.NewFramer(to, nil)
	if err := framer.WriteSettings(); err != nil {
		return err
	}
	return framer.WriteGoAway(0, http2.ErrCodeEnhanceYourCalm, []byte(reason))
}

// accepting is the listener for gRPC's library. It limits connections but does not wrap them, because the library sets
// TCP options on them; the handshake wraps and counts them.
type accepting struct {
	net.Listener
	count *listener.Connections
}

// Accept implements net.Listener.
func (a accepting) Accept() (net.Conn, error) { return a.count.Accept(a.Listener) }

// A connection is an open connection with the list of the requests that it is receiving.
type connection struct {
	*inbound
	address address
	gone    sync.Once

	// Guarded by inbound.mu.
	used      bool     // a request has come on the connection
	receiving int      // number of requests that are being received
	oldest    *receipt // first of the list of requests that are being received; newest is the last
	newest    *receipt
}

// address is the remote address of a connection. gRPC's library passes it to requests, so a request can find its
// connection.
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

// watchEvery is the interval between two checks of the connections. Times are counted in ticks of this length.
const watchEvery = listener.ReceiveTime / 30

// watch closes connections whose clients do not finish sending a request, or do not read their replies. It returns when
// closing is closed.
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

// closeOverdue closes connections for one of three reasons: a request has been arriving for longer than
// listener.ReceiveTime, a message for which the budget is already charged comes too slowly, or the client does not read
// replies that are charged to the budget. closeOverdue closes the whole connection, because gRPC's library offers no
// way to end one request. Its argument is the current tick.
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

// which returns the open connections for which the function in its argument returns true.
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

// close closes the open connections for which the function in its argument returns true.
func (c *connections) close(holds func(*connection) bool) {
	for _, conn := range c.which(holds) {
		_ = conn.Close()
	}
}

// A receipt is a request whose headers have come and whose message has not ended. It is also the request's context, in
// which receiptKey finds it.
type receipt struct {
	context.Context
	conn          *connection
	since         int64    // tick at which the request began
	before, after *receipt // neighbours in the list of the connection's requests that are being received
	over          bool
	upload        atomic.Pointer[upload] // nil if the request's message came in one frame
}

type receiptKey struct{}

// Value implements context.Context.
func (r *receipt) Value(key any) any {
	if key == (receiptKey{}) {
		return r
	}
	return r.Context.Value(key)
}

// begin registers a request when its headers have come. several says that the request is a stream of messages. The
// receipt is the request's context; it ends with the request, even if the request is never received completely. begin
// fails if there is no memory for the request.
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

// receiptOf returns the receipt in a request's context, or nil for requests of gRPC's own services.
func receiptOf(ctx context.Context) *receipt {
	r, _ := ctx.Value(receiptKey{}).(*receipt)
	return r
}

// received marks the request as received or refused. If it was refused, received returns the reason.
func (r *receipt) received() (refusal error) {
	r.conn.mu.Lock()
	defer r.conn.mu.Unlock()
	r.conn.remove(r)
	if up := r.upload.Load(); up != nil {
		return up.refusal
	}
	return nil
}

// detachAccount returns the account that was charged for the request's message, or nil if there is none. From then on
// the caller must close it.
func (r *receipt) detachAccount() *memory.Account {
	up := r.upload.Load()
	if up == nil {
		return nil
	}
	r.conn.mu.Lock()
	defer r.conn.mu.Unlock()
	return up.detachAccount()
}

// remove removes a receipt from the connection's list. The caller holds c.mu.
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

// asked reports whether any request has come on the connection.
func (c *connection) asked() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.used
}

// receivingSince returns the tick at which the oldest request that is being received began, or math.MaxInt64 if there
// is none.
func (c *connection) receivingSince() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forgetEnded()
	if c.oldest == nil {
		return math.MaxInt64
	}
	return c.oldest.since
}
