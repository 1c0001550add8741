package server

import (
	"sync"
	"time"
)

// closeGrace is how long requests may go on after Close is called.
const closeGrace = 2 * time.Second

// Close stops serving, and returns when nothing runs any more. Clients are told to go to another connection (GOAWAY), and those who ask for the
// server's health, that it does not serve. Requests may finish within closeGrace; then they are cut off, and their clients see
// UNAVAILABLE; those that read change streams see that at once. Operations are left to the next process. HTTP answers probes until all this has ended.
func (s *Server) Close() error {
	s.closing()
	s.registry.EndChangeStreamQueries()
	var ending sync.WaitGroup
	ending.Go(func() { s.grpc.Close(closeGrace) })
	s.http.Drain(closeGrace)
	ending.Wait()
	s.admin.Wait()
	s.data.sessions.sweep(s.cfg.Clock()) // which stores when sessions were last used
	err := s.http.Close()
	s.tasks.Wait()
	return err
}
