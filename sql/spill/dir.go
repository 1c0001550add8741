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
	serial atomic.Int64 // numbers files
	used   atomic.Int64 // bytes that files have claimed
}

// Open makes the directory, and removes the files that a process has left in it. No other process may use it.
func Open(fs vfs.FS, path string) (*Dir, error) {
	if err := fs.RemoveAll(path); err != nil {
		return nil, fmt.Errorf("remove temporary files in %s: %w", path, err)
	}
	if err := fs.MkdirAll(path, 0o755); err != nil {
		return nil, fmt.Errorf("make directory of temporary files %s: %w", path, err)
	}
	return &Dir{fs: fs, path: path}, nil
}

// Used is how many bytes of the disk all files have claimed.
func (d *Dir) Used() int64 { return d.used.Load() }

// Create makes an empty file for one execution of a statement. The file calls check before each block that it writes or reads, and an
// error of check ends that.
func (d *Dir) Create(check func() error) (*File, error) {
	name := d.fs.PathJoin(d.path, strconv.FormatInt(d.serial.Add(1), 10))
	f, err := d.fs.OpenReadWrite(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, d.failed("make", err)
	}
	// An open file needs no name, and without one it ends with the process. Where the system needs the name, Close removes the file.
	named := d.fs.Remove(name) != nil
	return &File{dir: d, file: f, name: name, named: named, check: check}, nil
}

// claim takes n bytes of the disk.
func (d *Dir) claim(n int64) error {
	used := d.used.Add(n)
	disk, err := d.fs.GetDiskUsage(d.path)
	switch {
	case errors.Is(err, vfs.ErrUnsupported):
		return nil
	case err == nil && used > int64(disk.AvailBytes):
		// What has been written is no longer available, so that the files take as much as they leave at most.
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

// failed is the error of a call of the file system.
func (d *Dir) failed(what string, err error) error {
	if vfs.IsNoSpaceError(err) {
		return usererror.NoRoomToSpill()
	}
	return fmt.Errorf("%s a temporary file in %s: %w", what, d.path, err)
}
