package server

import (
	"sync"
	"time"
)

// closeGrace is how long requests may go on after Close is called.
const closeGrace = 2 * time.Second

// Close stops serving, and returns when nothing runs any more. Clients are told to go to another connection (GOAWAY). Requests may finish
// within closeGrace; then they are cut off, and their clients see UNAVAILABLE. Operations are left to the next process.
func (s *Server) Close() error {
	s.closing()
	var ending sync.WaitGroup
	ending.Go(func() { s.grpc.Close(closeGrace) })
	err := s.http.Close(closeGrace)
	ending.Wait()
	s.admin.Wait()
	s.tasks.Wait()
	s.data.sessions.sweep(s.cfg.Clock()) // which stores when sessions were last used
	return err
}
