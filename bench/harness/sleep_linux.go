package harness

import (
	"syscall"
	"time"
)

// sleepUntil sleeps with a system call. Go's own timers are up to a millisecond late if no other goroutine runs.
func sleepUntil(due time.Time) {
	for left := time.Until(due); left > 0; left = time.Until(due) {
		t := syscall.NsecToTimespec(left.Nanoseconds())
		syscall.Nanosleep(&t, nil) // a signal may end the sleep early; the loop then continues
	}
}
