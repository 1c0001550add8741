package cpu

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// threadCPU is the CPU time of the calling thread: clock_gettime(2). A raw system call, since it never blocks: the
// scheduler need not hear of it.
func threadCPU() time.Duration { return clock(unix.CLOCK_THREAD_CPUTIME_ID) }

// thread is a thread of the process, whose clock other threads can read.
type thread int

func thisThread() thread { return thread(unix.Gettid()) }

// cpu is the CPU time of the thread. Linux makes the number of its clock of its own number: CPUCLOCK_PERTHREAD and CPUCLOCK_SCHED, as
// pthread_getcpuclockid(3) does.
func (t thread) cpu() time.Duration { return clock(uintptr(^int(t)<<3 | 6)) }

// processCPU is the CPU time of the whole process.
func processCPU() time.Duration { return clock(unix.CLOCK_PROCESS_CPUTIME_ID) }

func clock(id uintptr) time.Duration {
	var ts unix.Timespec
	if _, _, errno := unix.RawSyscall(unix.SYS_CLOCK_GETTIME, id, uintptr(unsafe.Pointer(&ts)), 0); errno != 0 {
		return 0 // only an id that does not exist fails
	}
	return time.Duration(ts.Nano())
}
