package server

import (
	"sync"
	"time"
)

// closeGrace is how long running requests may continue after the call of Close.
const closeGrace = 2 * time.Second

// Close stops the server, and returns when no request and no task of the server runs any more. It tells clients to use
// another connection (GOAWAY), and health checks report that the server does not serve. Requests that have not ended
// within closeGrace are cut off, and their clients get UNAVAILABLE. Queries of change streams are cut off at once.
// Unfinished operations are left to the next process. The HTTP listener is closed last, so that it answers probes until
// then.
func (s *Server) Close() error {
	s.closing()
	s.registry.EndChangeStreamQueries()
	var ending sync.WaitGroup
	ending.Go(func() { s.grpc.Close(closeGrace) })
	s.http.Drain(closeGrace)
	ending.Wait()
	s.admin.Wait()
	s.data.sessions.sweep(s.cfg.Clock()) // stores when each session was last used
	err := s.http.Close()
	s.tasks.Wait()
	return err
}
