//go:build unix

package watch

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// lockFile waits until no other process holds the lock, and takes it.
func lockFile(f *os.File) error {
	for {
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != unix.EINTR {
			return err
		}
	}
}

// syncDir syncs a directory, so that a renamed file survives a crash of the machine.
func syncDir(name string) error {
	dir, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
