//go:build !linux

package cpu

import "time"

// threadCPU returns the wall-clock time, because threads have no CPU clock on this system. So meters measure how long
// work took.
func threadCPU() time.Duration { return time.Since(epoch) }

// thread takes the place of a thread's id. It holds nothing, because threads have no clocks here.
type thread struct{}

func thisThread() thread { return thread{} }

func (thread) cpu() time.Duration { return threadCPU() }

// processCPU returns 0, because the CPU time of the process is unknown on this system. So executions are charged only
// for measured time.
func processCPU() time.Duration { return 0 }
