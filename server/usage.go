package server

import (
	"sync/atomic"
	"time"
)

// A usage records when a session or a transaction was last used. A running request counts as use until it ends.
type usage struct {
	running atomic.Int32 // number of running requests
	last    atomic.Int64 // the last use, in Unix seconds
}

// at records a use. It writes only once per second, so that many requests do not contend for the memory.
func (u *usage) at(now time.Time) {
	if seconds := now.Unix(); u.last.Load() != seconds {
		u.last.Store(seconds)
	}
}

// begin records that a request runs; the caller must call end.
func (u *usage) begin() { u.running.Add(1) }

func (u *usage) end() { u.running.Add(-1) }

// idle returns the time since the last request. It is 0 while a request runs.
func (u *usage) idle(now time.Time) time.Duration {
	if u.running.Load() > 0 {
		u.at(now)
		return 0
	}
	return now.Sub(time.Unix(u.last.Load(), 0))
}
