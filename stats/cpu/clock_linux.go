package cpu

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// threadCPU returns the CPU time of the calling thread: clock_gettime(2). It makes a raw system call, which does not
// inform Go's scheduler. That is allowed because this call never blocks.
func threadCPU() time.Duration { return clock(unix.CLOCK_THREAD_CPUTIME_ID) }

// thread is the id of a thread of the process. With it other threads can read the thread's clock.
type thread int

func thisThread() thread { return thread(unix.Gettid()) }

// cpu returns the CPU time of the thread. The id of a thread's clock in Linux is computed from the thread's id with
// CPUCLOCK_PERTHREAD and CPUCLOCK_SCHED, as pthread_getcpuclockid(3) does.
func (t thread) cpu() time.Duration { return clock(uintptr(^int(t)<<3 | 6)) }

// processCPU returns the CPU time of the whole process.
func processCPU() time.Duration { return clock(unix.CLOCK_PROCESS_CPUTIME_ID) }

func clock(id uintptr) time.Duration {
	var ts unix.Timespec
	if _, _, errno := unix.RawSyscall(unix.SYS_CLOCK_GETTIME, id, uintptr(unsafe.Pointer(&ts)), 0); errno != 0 {
		return 0 // fails only for an id that does not exist
	}
	return time.Duration(ts.Nano())
}
