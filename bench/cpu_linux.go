package bench

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// cpu is the CPU time, user and system, that the process has used, to the nanosecond: its CPU clock, whose
// number is made from the process's as in clock_getcpuclockid(3). /proc/PID/stat counts in hundredths of a
// second, too coarse for a turn of a quarter of a second.
func (p pid) cpu() (time.Duration, error) {
	const scheduled = 2 // CPUCLOCK_SCHED of Linux: time on a core
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^p)<<3|scheduled, &t); err != nil {
		return 0, fmt.Errorf("read the CPU time of process %d: %w", p, err)
	}
	return time.Duration(t.Nano()), nil
}
