//go:build unix

package watch

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// lockFile waits until no other process has the file locked.
func lockFile(f *os.File) error {
	for {
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != unix.EINTR {
			return err
		}
	}
}

// syncDir has a file's new name survive a crash of the machine.
func syncDir(name string) error {
	dir, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
