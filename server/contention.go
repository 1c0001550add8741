package server

import (
	"net/http"
	"net/http/pprof"
	"runtime"
	"sync"
)

const (
	// blockRate is the sampling rate of the block profile in nanoseconds. The profile has every wait that is longer
	// than blockRate, and a sample of the shorter waits.
	blockRate = 10_000
	// mutexFraction says that the mutex profile samples one of every mutexFraction waits for a mutex.
	mutexFraction = 10
)

// contention returns a handler that replies with a profile of goroutines' waits during the request. The function keep
// switches profiling on, and stop switches it off. Profiling is on only during such a request, because it makes each
// wait more expensive.
func contention(profile string, keep, stop func()) http.HandlerFunc {
	var one sync.Mutex // held by the request that profiles, because the settings of profiling are those of the process
	return func(w http.ResponseWriter, r *http.Request) {
		one.Lock()
		defer one.Unlock()
		keep()
		defer stop()
		pprof.Handler(profile).ServeHTTP(w, r)
	}
}

// waits returns a handler that profiles all waits of goroutines: for channels, mutexes and conditions.
func waits() http.HandlerFunc {
	return contention("block", func() { runtime.SetBlockProfileRate(blockRate) }, func() { runtime.SetBlockProfileRate(0) })
}

// mutexWaits returns a handler that profiles waits for mutexes, by the line of code that unlocked the mutex.
func mutexWaits() http.HandlerFunc {
	return contention("mutex", func() { runtime.SetMutexProfileFraction(mutexFraction) }, func() { runtime.SetMutexProfileFraction(0) })
}
