package cpu

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// threadCPU returns the CPU time of the calling thread: clock_gettime(2). It is a raw system call, because it never blocks and
// Go's scheduler need not know of it.
func threadCPU() time.Duration { return clock(unix.CLOCK_THREAD_CPUTIME_ID) }

// thread is a thread of the process. Other threads can read its clock.
type thread int

func thisThread() thread { return thread(unix.Gettid()) }

// cpu returns the CPU time of the thread. Linux derives the id of a thread's clock from the thread's id with CPUCLOCK_PERTHREAD
// and CPUCLOCK_SCHED, as pthread_getcpuclockid(3) does.
func (t thread) cpu() time.Duration { return clock(uintptr(^int(t)<<3 | 6)) }

// processCPU returns the CPU time of the whole process.
func processCPU() time.Duration { return clock(unix.CLOCK_PROCESS_CPUTIME_ID) }

func clock(id uintptr) time.Duration {
	var ts unix.Timespec
	if _, _, errno := unix.RawSyscall(unix.SYS_CLOCK_GETTIME, id, uintptr(unsafe.Pointer(&ts)), 0); errno != 0 {
		return 0 // only an id that does not exist fails
	}
	return time.Duration(ts.Nano())
}
