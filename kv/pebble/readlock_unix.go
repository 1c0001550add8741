//go:build unix

package pebble

import (
	"io"

	"golang.org/x/sys/unix"
)

// lockForReading takes a lock that other readers may have too. It is of the kind of Pebble's own lock, whose holder excludes it.
func lockForReading(fd uintptr) error {
	return unix.FcntlFlock(fd, unix.F_SETLK, &unix.Flock_t{Type: unix.F_RDLCK, Whence: io.SeekStart})
}
