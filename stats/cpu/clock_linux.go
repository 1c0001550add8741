package cpu

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// threadCPU is the CPU time of the calling thread: clock_gettime(2). A raw system call, since it never blocks: the
// scheduler need not hear of it.
func threadCPU() time.Duration { return clock(unix.CLOCK_THREAD_CPUTIME_ID) }

// processCPU is the CPU time of the whole process.
func processCPU() time.Duration { return clock(unix.CLOCK_PROCESS_CPUTIME_ID) }

func clock(id uintptr) time.Duration {
	var ts unix.Timespec
	if _, _, errno := unix.RawSyscall(unix.SYS_CLOCK_GETTIME, id, uintptr(unsafe.Pointer(&ts)), 0); errno != 0 {
		return 0 // only an id that does not exist fails
	}
	return time.Duration(ts.Nano())
}
