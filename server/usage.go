package server

import (
	"sync/atomic"
	"time"
)

// A usage says when a session or a transaction was last used. A request that runs longer than the limit of idleness uses it until it ends.
type usage struct {
	running atomic.Int32 // requests
	last    atomic.Int64 // Unix seconds
}

// at notes a use. Reading comes first: many requests in one second share the memory without writing to it.
func (u *usage) at(now time.Time) {
	if seconds := now.Unix(); u.last.Load() != seconds {
		u.last.Store(seconds)
	}
}

// begin notes that a request runs; end must follow.
func (u *usage) begin() { u.running.Add(1) }

func (u *usage) end() { u.running.Add(-1) }

// idle is how long there has been no request. What is running now is used now.
func (u *usage) idle(now time.Time) time.Duration {
	if u.running.Load() > 0 {
		u.at(now)
		return 0
	}
	return now.Sub(time.Unix(u.last.Load(), 0))
}
