package pebble

import (
	"errors"
	"io"
	iofs "io/fs"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// readFS is the file system of a directory that is only read. The process may lack the permission to write to the
// directory.
type readFS struct{ vfs.FS }

// Unwrap implements vfs.FS.
func (fs readFS) Unwrap() vfs.FS { return fs.FS }

// Lock implements vfs.FS. It does not make a lock file: a directory without a lock file is a copy that no server has
// opened. If the process may not write the lock file, Lock locks it for reading. This fails while a server holds its
// own lock on the file.
func (fs readFS) Lock(name string) (io.Closer, error) {
	if _, err := fs.Stat(name); errors.Is(err, iofs.ErrNotExist) {
		return io.NopCloser(nil), nil
	}
	lock, err := fs.FS.Lock(name)
	if !notAllowed(err) {
		return lock, err
	}
	f, err := fs.Open(name)
	if err != nil {
		return nil, err
	}
	if fd := f.Fd(); fd != vfs.InvalidFd { // else the file is in memory
		err = lockForReading(fd)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
