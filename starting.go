package crowfoot

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/crowfoot-db/crowfoot/server"
)

// starting answers HTTP while the data is opened, which may take a while. It answers that the server is alive and not
// ready.
type starting struct {
	listener *net.TCPListener
	server   http.Server
	ended    chan error
}

// serveStarting serves HTTP on an address until handOver or close.
func serveStarting(address string) (*starting, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	s := &starting{listener: l.(*net.TCPListener), ended: make(chan error, 1)}
	s.server.ReadHeaderTimeout = probeLimit
	s.server.SetKeepAlivesEnabled(false)
	s.server.Handler = http.HandlerFunc(server.Starting)
	go func() { s.ended <- s.server.Serve(kept{l}) }()
	return s, nil
}

// probeLimit bounds the time that a client may take for a request whether the server is ready.
const probeLimit = time.Second

// handOver ends serving and returns the listener, for the next server. It answers the requests that it has accepted.
func (s *starting) handOver() (*net.TCPListener, error) {
	if err := s.listener.SetDeadline(time.Unix(1, 0)); err != nil { // interrupts Accept
		return nil, err
	}
	if err := <-s.ended; !errors.Is(err, errHandedOver) {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), probeLimit)
	defer cancel()
	if err := s.server.Shutdown(ctx); err != nil {
		s.server.Close()
	}
	return s.listener, s.listener.SetDeadline(time.Time{})
}

// close ends serving and closes the listener.
func (s *starting) close() error {
	err := s.listener.Close() // first: the server waits for its Accept to return
	return errors.Join(err, s.server.Close())
}

// errHandedOver ends the loop that accepts connections.
var errHandedOver = errors.New("the listener is handed over")

// kept is a listener that its server does not close.
type kept struct{ net.Listener }

func (k kept) Accept() (net.Conn, error) {
	c, err := k.Listener.Accept()
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, errHandedOver
	}
	return c, err
}

func (kept) Close() error { return nil }
