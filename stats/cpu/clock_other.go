//go:build !linux

package cpu

import "time"

// threadCPU is the time, for want of a clock of the thread: what is measured is how long work took.
func threadCPU() time.Duration { return time.Since(epoch) }

// thread stands for any thread.
type thread struct{}

func thisThread() thread { return thread{} }

func (thread) cpu() time.Duration { return threadCPU() }

// processCPU is not known: nothing is charged beyond what is measured.
func processCPU() time.Duration { return 0 }
