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

// answerGrace is how long requests that are cut off may take to answer that they were.
const answerGrace = 500 * time.Millisecond

// requests are those that a server answers.
type requests struct {
	running sync.WaitGroup
	cutOff  context.CancelCauseFunc // ends their contexts
}

// track makes s the server of the requests: each of its requests counts as one.
func (r *requests) track(s *http.Server) {
	all, cutOff := context.WithCancelCause(context.Background())
	r.cutOff = cutOff
	s.BaseContext = func(net.Listener) context.Context { return all }
	handler := s.Handler
	s.Handler = http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		r.running.Add(1)
		defer r.running.Done()
		handler.ServeHTTP(w, request)
	})
}

// Close ends serving, and returns when the last request has ended. Requests may finish within the grace time; then they are cut off, and
// answered UNAVAILABLE.
func (s *Server) Close(grace time.Duration) error {
	err := s.shutdown(grace)
	if errors.Is(err, context.DeadlineExceeded) {
		s.requests.cutOff(usererror.ServerStopping())
		err = s.shutdown(answerGrace)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = s.Server.Close()
	}
	s.requests.running.Wait()
	return err
}

func (s *Server) shutdown(grace time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	return s.Shutdown(ctx)
}
