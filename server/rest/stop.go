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
	// answerGrace is how long requests that are cut off may take to answer that they were.
	answerGrace = 500 * time.Millisecond
	// probeGrace is how long probes, and connections on which no request has come yet, are waited for at the end.
	probeGrace = 100 * time.Millisecond
)

// requests are those of one kind that a server is answering.
type requests struct {
	mu      sync.Mutex
	running map[http.ResponseWriter]struct{}
	refused bool          // new ones are
	ended   chan struct{} // closed when new ones are refused and the last has ended
}

func newRequests() *requests {
	return &requests{running: map[http.ResponseWriter]struct{}{}, ended: make(chan struct{})}
}

// count has a handler answer requests while they are not refused, and refuse answer the others.
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

// refuse refuses new requests.
func (r *requests) refuse() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refused = true; len(r.running) == 0 {
		close(r.ended)
	}
}

// endWithin waits for the requests to end, and says whether they have within a limit.
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

// interrupt fails what the requests read from their clients and write to them.
func (r *requests) interrupt() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for w := range r.running {
		control := http.NewResponseController(w)
		_, _ = control.SetReadDeadline(time.Unix(1, 0)), control.SetWriteDeadline(time.Unix(1, 0)) // no connection of HTTP/1.1 fails to
	}
}

// Drain refuses new requests with UNAVAILABLE, and returns when the last of the others has ended. They may finish within the grace time; then
// they are cut off, and answered UNAVAILABLE too. Probes are answered as before.
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

// Close ends serving, when Drain has returned.
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

// refuseStopping answers a request that comes when the server stops. The client shall send the next over another connection.
func refuseStopping(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Connection", "close")
	Refuse(w, usererror.ServerStopping())
}

// newContexts has the contexts of the server's requests end when cutOff is called.
func (s *Server) newContexts() {
	all, cutOff := context.WithCancelCause(context.Background())
	s.cutOff = cutOff
	s.BaseContext = func(net.Listener) context.Context { return all }
}
