package server

import (
	"net/http"
	"net/http/pprof"
	"runtime"
	"sync"
)

const (
	// blockRate is how long a goroutine waits, in nanoseconds, for the block profile to have the wait; of shorter waits it has some.
	blockRate = 10_000
	// mutexFraction is of how many waits for a mutex the mutex profile has one.
	mutexFraction = 10
)

// contention answers with a profile of what goroutines wait for during the request. Each wait costs more while such a profile is kept,
// so none is kept at other times.
func contention(profile string, keep, stop func()) http.HandlerFunc {
	var one sync.Mutex // request at a time
	return func(w http.ResponseWriter, r *http.Request) {
		one.Lock()
		defer one.Unlock()
		keep()
		defer stop()
		pprof.Handler(profile).ServeHTTP(w, r)
	}
}

// waits is of all waits: for channels, mutexes, conditions.
func waits() http.HandlerFunc {
	return contention("block", func() { runtime.SetBlockProfileRate(blockRate) }, func() { runtime.SetBlockProfileRate(0) })
}

// mutexWaits is of waits for mutexes, by where these were unlocked.
func mutexWaits() http.HandlerFunc {
	return contention("mutex", func() { runtime.SetMutexProfileFraction(mutexFraction) }, func() { runtime.SetMutexProfileFraction(0) })
}
