package cpu

import (
	"os"
	"runtime"
)

var processors = runtime.GOMAXPROCS(0)

// Processors is how many processors the program may use: what Go found, or GOMAXPROCS said, when it began.
func Processors() int { return processors }

// spareThreads may run Go code beside one thread for each processor.
const spareThreads = 2

// SpareThreads lets more threads run Go code than there are processors, unless GOMAXPROCS says how many. It is for a program that serves brief
// requests beside long computations: compactions of the storage engine, index builds, scans.
//
// Go's scheduler looks at the network when a thread has nothing else to do, and every 10 ms otherwise, and takes as long to interrupt a goroutine
// that computes (runtime/proc.go: findRunnable, sysmon). A request passes through several goroutines, so that computations on all threads
// cost it many times 10 ms. The operating system gives a processor at once to a thread that has slept. With two processors, the p99 of writes beside
// an index build fell from 108 ms to 8 ms (crowfoot bench schema).
func SpareThreads() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(processors + spareThreads)
	}
}
