package rest

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/crowfoot-db/crowfoot/usererror"
)

const (
	// answerGrace is how long requests that were cut off may take to send their error.
	answerGrace = 500 * time.Millisecond
	// probeGrace is how long Close waits for running probes, and for connections on which no request has come yet.
	probeGrace = 100 * time.Millisecond
)

// requests holds the running requests of one kind: probes or others.
type requests struct {
	mu      sync.Mutex
	running map[http.ResponseWriter]struct{}
	refused bool          // new requests are refused
	ended   chan struct{} // closed when new requests are refused and the last running one has ended
}

func newRequests() *requests {
	return &requests{running: map[http.ResponseWriter]struct{}{}, ended: make(chan struct{})}
}

// count returns a handler that counts each request as running and passes the request to the parameter handler. After
// the method refuse was called, it passes new requests to the parameter refuse instead.
func (r *requests) count(handler http.Handler, refuse http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if !r.begin(w) {
			refuse(w, request)
			return
		}
		defer r.end(w)
		handler.ServeHTTP(w, request)
	})
}

func (r *requests) begin(w http.ResponseWriter) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refused {
		return false
	}
	r.running[w] = struct{}{}
	return true
}

func (r *requests) end(w http.ResponseWriter) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.running, w)
	if r.refused && len(r.running) == 0 {
		close(r.ended)
	}
}

// refuse makes the handlers that count has returned refuse new requests.
func (r *requests) refuse() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refused = true; len(r.running) == 0 {
		close(r.ended)
	}
}

// endWithin waits until all requests have ended, but not longer than limit. It reports whether they have ended.
func (r *requests) endWithin(limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-r.ended:
		return true
	case <-timer.C:
		return false
	}
}

// interrupt makes the running requests fail when they read from their clients or write to them.
func (r *requests) interrupt() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for w := range r.running {
		control := http.NewResponseController(w)
		_, _ = control.SetReadDeadline(time.Unix(1, 0)), control.SetWriteDeadline(time.Unix(1, 0)) // cannot fail on HTTP/1.1
	}
}

// Drain refuses new requests with UNAVAILABLE, and returns when the last running one has ended. Requests that have not
// ended when the grace time has passed are cut off, and get UNAVAILABLE too. Probes are still answered.
func (s *Server) Drain(grace time.Duration) {
	s.requests.refuse()
	if s.requests.endWithin(grace) {
		return
	}
	s.cutOff(usererror.ServerStopping())
	if !s.requests.endWithin(answerGrace) {
		s.requests.interrupt()
	}
	<-s.requests.ended
}

// Close ends the server, probes included. Call it after Drain.
func (s *Server) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), probeGrace)
	defer cancel()
	err := s.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = s.Server.Close()
	}
	s.probes.refuse()
	<-s.probes.ended
	return err
}

// refuseStopping answers a request that comes while the server stops. The header makes the client use another
// connection for its next request.
func refuseStopping(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Connection", "close")
	Refuse(w, usererror.ServerStopping())
}

// newContexts makes cutOff end the contexts of all requests of the server.
func (s *Server) newContexts() {
	all, cutOff := context.WithCancelCause(context.Background())
	s.cutOff = cutOff
	s.BaseContext = func(net.Listener) context.Context { return all }
}
