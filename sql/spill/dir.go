package spill

import (
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/crowfoot-db/crowfoot/usererror"
)

// Dir is the directory of temporary files. Several goroutines may use it at once.
type Dir struct {
	fs     vfs.FS
	path   string
	serial atomic.Int64 // the number of the file that was made last; a file's number is also its name
	used   atomic.Int64 // bytes of disk space that all open files together have reserved
}

// Open makes the directory path, and removes the files that an earlier process has left there. No other process may
// use the directory.
func Open(fs vfs.FS, path string) (*Dir, error) {
	if err := fs.RemoveAll(path); err != nil {
		return nil, fmt.Errorf("remove temporary files in %s: %w", path, err)
	}
	if err := fs.MkdirAll(path, 0o755); err != nil {
		return nil, fmt.Errorf("make directory of temporary files %s: %w", path, err)
	}
	return &Dir{fs: fs, path: path}, nil
}

// Used returns how many bytes of disk space all files together have reserved.
func (d *Dir) Used() int64 { return d.used.Load() }

// Create makes an empty file for one execution of a statement. The file calls check before it writes or reads a
// block. If check returns an error, that write or read fails with the error.
func (d *Dir) Create(check func() error) (*File, error) {
	name := d.fs.PathJoin(d.path, strconv.FormatInt(d.serial.Add(1), 10))
	f, err := d.fs.OpenReadWrite(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, d.failed("make", err)
	}
	// An open file needs no name, and a file without a name disappears when the process ends. So the name is removed
	// now. If the system does not allow that for an open file, Close removes the file.
	named := d.fs.Remove(name) != nil
	return &File{dir: d, file: f, name: name, named: named, check: check}, nil
}

// claim reserves n bytes of disk space for a file. It fails if all files together would then have reserved more bytes
// than are free on the disk.
func (d *Dir) claim(n int64) error {
	used := d.used.Add(n)
	disk, err := d.fs.GetDiskUsage(d.path)
	switch {
	case errors.Is(err, vfs.ErrUnsupported):
		return nil
	case err == nil && used > int64(disk.AvailBytes):
		// AvailBytes does not include the blocks that are already written, but used does. So all files together can
		// take at most half of the space that is free without them.
		err = usererror.NoRoomToSpill()
	case err != nil:
		err = d.failed("look for room for", err)
	}
	if err != nil {
		d.release(n)
	}
	return err
}

func (d *Dir) release(n int64) { d.used.Add(-n) }

// failed returns the error for a call of the file system that has failed with err. The parameter what is the verb that
// names the call in the message, such as "read".
func (d *Dir) failed(what string, err error) error {
	if vfs.IsNoSpaceError(err) {
		return usererror.NoRoomToSpill()
	}
	return fmt.Errorf("%s a temporary file in %s: %w", what, d.path, err)
}
