package server

import (
	"net/http"
	"net/http/pprof"
	"runtime"
	"sync"
)

const (
	// blockRate is the sampling rate of the block profile in nanoseconds. The profile has every longer wait, and samples shorter
	// ones.
	blockRate = 10_000
	// mutexFraction: the mutex profile samples one in mutexFraction waits for a mutex.
	mutexFraction = 10
)

// contention returns a handler that replies with a profile of goroutines' waits during the request. It profiles only then,
// because profiling makes each wait more expensive.
func contention(profile string, keep, stop func()) http.HandlerFunc {
	var one sync.Mutex // one request at a time
	return func(w http.ResponseWriter, r *http.Request) {
		one.Lock()
		defer one.Unlock()
		keep()
		defer stop()
		pprof.Handler(profile).ServeHTTP(w, r)
	}
}

// waits profiles all waits: for channels, mutexes, conditions.
func waits() http.HandlerFunc {
	return contention("block", func() { runtime.SetBlockProfileRate(blockRate) }, func() { runtime.SetBlockProfileRate(0) })
}

// mutexWaits profiles waits for mutexes, by the place that unlocked them.
func mutexWaits() http.HandlerFunc {
	return contention("mutex", func() { runtime.SetMutexProfileFraction(mutexFraction) }, func() { runtime.SetMutexProfileFraction(0) })
}
