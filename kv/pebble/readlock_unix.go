//go:build unix

package pebble

import (
	"io"

	"golang.org/x/sys/unix"
)

// lockForReading takes a lock that several readers can share. It is an fcntl lock, as Pebble's own lock is, so
// lockForReading fails while a server holds Pebble's lock.
func lockForReading(fd uintptr) error {
	return unix.FcntlFlock(fd, unix.F_SETLK, &unix.Flock_t{Type: unix.F_RDLCK, Whence: io.SeekStart})
}
