//go:build unix

package pebble

import (
	"io"

	"golang.org/x/sys/unix"
)

// lockHolder returns the id of the process that has locked a file; 0 if it is not known. This process must not hold a lock on the file: it would
// lose the lock when it closes fd.
func lockHolder(fd uintptr) int32 {
	lock := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart}
	if err := unix.FcntlFlock(fd, unix.F_GETLK, &lock); err != nil || lock.Type == unix.F_UNLCK {
		return 0
	}
	return lock.Pid
}
