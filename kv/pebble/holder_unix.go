//go:build unix

package pebble

import (
	"io"

	"golang.org/x/sys/unix"
)

// lockHolder is the process that has locked a file; 0 if it cannot be told. This process must have no lock on it, since it would lose that.
func lockHolder(fd uintptr) int32 {
	lock := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart}
	if err := unix.FcntlFlock(fd, unix.F_GETLK, &lock); err != nil || lock.Type == unix.F_UNLCK {
		return 0
	}
	return lock.Pid
}
