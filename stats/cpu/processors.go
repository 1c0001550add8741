package cpu

import (
	"os"
	"runtime"
)

var processors = runtime.GOMAXPROCS(0)

// Processors returns how many processors the program may use: the number that Go found at the start, or GOMAXPROCS.
func Processors() int { return processors }

// spareThreads is how many more threads than processors may run Go code.
const spareThreads = 2

// SpareThreads lets more threads run Go code than there are processors, unless GOMAXPROCS is set. Call it in a program
// that serves brief requests while long computations run: compactions of the storage engine, index builds, scans.
//
// A Go thread looks at the network when it has nothing else to do; if all threads compute, the scheduler looks every 10
// ms. It also takes 10 ms to interrupt a goroutine that computes (runtime/proc.go: findRunnable, sysmon). A request
// passes through several goroutines, so computations on all threads delay it by many times 10 ms. The operating system,
// in contrast, gives a processor at once to a thread that has slept. With two processors, the p99 of writes during an
// index build fell from 108 ms to 8 ms (crowfoot bench schema).
func SpareThreads() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(processors + spareThreads)
	}
}
