//go:build unix

package pebble

import (
	"io"

	"golang.org/x/sys/unix"
)

// lockHolder returns the id of the process that has locked the file fd; 0 if it is unknown. This process must not hold
// a lock on the file itself, because it would lose that lock when it closes fd.
func lockHolder(fd uintptr) int32 {
	lock := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart}
	if err := unix.FcntlFlock(fd, unix.F_GETLK, &lock); err != nil || lock.Type == unix.F_UNLCK {
		return 0
	}
	return lock.Pid
}
