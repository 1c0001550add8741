package rest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"

	"github.com/rs/cors"

	"github.com/crowfoot-db/crowfoot/server/listener"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// A Server serves two kinds of HTTP requests: those for a gateway, and probes, which ask for the health of the server.
type Server struct {
	*http.Server
	count            *listener.Connections
	requests, probes *requests
	cutOff           context.CancelCauseFunc // ends the contexts of requests
}

// NewServer returns a server; Serve starts it. probes holds, by path, handlers that answer until Close, also while the
// server drains. The server counts its connections in count. It refuses requests if origins does not allow their host
// or their origin.
func NewServer(g *Gateway, probes map[string]http.HandlerFunc, count *listener.Connections, origins *listener.Origins, log *slog.Logger) *Server {
	s := &Server{count: count, requests: newRequests(), probes: newRequests(), Server: &http.Server{
		ReadHeaderTimeout: listener.HandshakeTime,
		IdleTimeout:       listener.IdleTime,
		MaxHeaderBytes:    listener.MaxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug), // gets the errors of single connections
	}}
	s.Handler = admit(s.handler(g, probes), origins)
	s.newContexts()
	return s
}

// handler returns a handler that counts probes and other requests separately, because Drain waits only for the other
// requests.
func (s *Server) handler(g *Gateway, probes map[string]http.HandlerFunc) http.Handler {
	others := s.requests.count(g, refuseStopping)
	probing := s.probes.count(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { probes[r.URL.Path](w, r) }), refuseStopping)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if probes[r.URL.Path] != nil {
			probing.ServeHTTP(w, r)
			return
		}
		others.ServeHTTP(w, r)
	})
}

// Serve serves connections until the server is closed. It returns an error if it ends for another reason.
func (s *Server) Serve(l net.Listener) error {
	if err := s.Server.Serve(accepting{l, s.count}); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// admit returns a handler that asks origins whether it allows a request. If so, it passes the request to handler, and
// otherwise refuses it. It also sends the headers that make browsers let pages of allowed origins read replies
// (https://fetch.spec.whatwg.org/#http-cors-protocol).
func admit(handler http.Handler, origins *listener.Origins) http.Handler {
	allowed := cors.New(cors.Options{
		AllowOriginFunc: origins.Allows,
		AllowedMethods:  []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete},
		AllowedHeaders:  []string{"*"},
		ExposedHeaders:  []string{"Server-Timing"},
	}).Handler(handler)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := origins.Check(r.Host, r.Header.Get("Origin"), r.Header.Get("Sec-Fetch-Site")); err != nil {
			Refuse(w, err)
			return
		}
		allowed.ServeHTTP(w, r)
	})
}

// accepting is a listener whose connections are counted.
type accepting struct {
	net.Listener
	count *listener.Connections
}

// Accept implements net.Listener.
func (a accepting) Accept() (net.Conn, error) {
	conn, err := a.count.Accept(a.Listener)
	if err != nil {
		return nil, err
	}
	return &connection{Conn: conn, count: a.count}, nil
}

// A connection calls count.Enter at its first read, in the goroutine that serves the connection. Enter can take a
// second to refuse the connection, so Accept must not wait for it.
type connection struct {
	net.Conn
	count    *listener.Connections
	entering sync.Once
	entered  bool
	leaving  sync.Once
}

// Read implements net.Conn.
func (c *connection) Read(p []byte) (int, error) {
	if !c.enter() {
		return 0, net.ErrClosed
	}
	return c.Conn.Read(p)
}

func (c *connection) enter() bool {
	c.entering.Do(func() { c.entered = c.count.Enter(c.Conn, sayFull) })
	return c.entered
}

// Close implements net.Conn.
func (c *connection) Close() error {
	if c.enter() {
		c.leaving.Do(c.count.Leave)
	}
	return c.Conn.Close()
}

// sayFull writes a reply that gives the reason why the server takes no more connections. It does not read the request.
func sayFull(to io.Writer, reason string) error {
	body := errorBody(usererror.TooManyConnections(reason))
	_, err := fmt.Fprintf(to, "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json; charset=UTF-8\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	return err
}
