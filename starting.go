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

// starting answers HTTP requests while the data is being opened, which can take long. It answers that the server is
// alive, but not ready.
type starting struct {
	listener *net.TCPListener
	server   http.Server
	ended    chan error
}

// serveStarting serves HTTP on an address until handOver or close is called.
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

// probeLimit is the longest time that a client may take to send the header of a request. It is also the longest time
// for which handOver waits until the accepted requests are answered.
const probeLimit = time.Second

// handOver stops serving and returns the listener for the next server. Requests that were accepted are answered first.
func (s *starting) handOver() (*net.TCPListener, error) {
	if err := s.listener.SetDeadline(time.Unix(1, 0)); err != nil { // makes Accept return at once
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

// close stops serving and closes the listener.
func (s *starting) close() error {
	err := s.listener.Close() // first, because it makes Accept return, for which Close of the server waits
	return errors.Join(err, s.server.Close())
}

// errHandedOver is the error that Accept returns after handOver was called. It ends http.Server.Serve.
var errHandedOver = errors.New("the listener is handed over")

// kept is a listener that stays open when its server closes it.
type kept struct{ net.Listener }

func (k kept) Accept() (net.Conn, error) {
	c, err := k.Listener.Accept()
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, errHandedOver
	}
	return c, err
}

func (kept) Close() error { return nil }
