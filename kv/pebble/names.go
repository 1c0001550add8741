package pebble

import (
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// namesFS makes the names of files durable in an order that Pebble relies on and POSIX does not promise. Once a file
// has been synced, its name in the directory is durable, too. No file is removed before all names that were made
// earlier are durable. For example, Pebble syncs a new manifest, makes the marker file that points to it, removes the
// old marker, and only then syncs the directory. Without namesFS, a crash of the machine before that sync could leave
// neither of the two markers.
//
// This costs one sync of the directory for each new file, and none while a log is written.
type namesFS struct {
	vfs.FS

	mu   sync.Mutex
	dirs map[string]names
}

// names counts the file names that were made in a directory, and how many of these are durable.
type names struct{ made, durable int }

func keepNames(fs vfs.FS) vfs.FS { return &namesFS{FS: fs, dirs: map[string]names{}} }

// Unwrap implements vfs.FS.
func (fs *namesFS) Unwrap() vfs.FS { return fs.FS }

func (fs *namesFS) mark(name string) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	dir := fs.PathDir(name)
	n := fs.dirs[dir]
	n.made++
	fs.dirs[dir] = n
}

func (fs *namesFS) names(dir string) names {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	return fs.dirs[dir]
}

// settle makes all names in a directory durable.
func (fs *namesFS) settle(dir string) error {
	if n := fs.names(dir); n.made == n.durable {
		return nil
	}
	return fs.sync(dir, func() error { return syncDir(dir, fs.FS) })
}

// sync calls the given function, which syncs a directory. If the function succeeds, sync records that all names made
// before the call are durable.
func (fs *namesFS) sync(dir string, sync func() error) error {
	made := fs.names(dir).made
	if err := sync(); err != nil {
		return err
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	n := fs.dirs[dir]
	n.durable = max(n.durable, made)
	fs.dirs[dir] = n
	return nil
}

// Create implements vfs.FS.
func (fs *namesFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := fs.FS.Create(name, category)
	return fs.made(name, f, err)
}

// ReuseForWrite implements vfs.FS.
func (fs *namesFS) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := fs.FS.ReuseForWrite(oldname, newname, category)
	return fs.made(newname, f, err)
}

func (fs *namesFS) made(name string, f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	fs.mark(name)
	return &newFile{File: f, fs: fs, dir: fs.PathDir(name)}, nil
}

// Link implements vfs.FS.
func (fs *namesFS) Link(oldname, newname string) error {
	defer fs.mark(newname)
	return fs.FS.Link(oldname, newname)
}

// Rename implements vfs.FS.
func (fs *namesFS) Rename(oldname, newname string) error {
	defer fs.mark(newname)
	return fs.FS.Rename(oldname, newname)
}

// Remove implements vfs.FS.
func (fs *namesFS) Remove(name string) error {
	if err := fs.settle(fs.PathDir(name)); err != nil {
		return err
	}
	return fs.FS.Remove(name)
}

// OpenDir implements vfs.FS.
func (fs *namesFS) OpenDir(name string) (vfs.File, error) {
	f, err := fs.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return &openDir{File: f, fs: fs, name: name}, nil
}

// openDir is an open directory. Its Sync records that the names in the directory are durable.
type openDir struct {
	vfs.File
	fs   *namesFS
	name string
}

func (d *openDir) Sync() error { return d.fs.sync(d.name, d.File.Sync) }

// newFile is a file whose first sync also makes its name durable. Only one goroutine at a time may sync the file.
// Pebble never syncs a file from two goroutines at once.
type newFile struct {
	vfs.File
	fs    *namesFS
	dir   string
	named bool
}

func (f *newFile) Sync() error     { return f.name(f.File.Sync()) }
func (f *newFile) SyncData() error { return f.name(f.File.SyncData()) }

func (f *newFile) name(err error) error {
	if err != nil || f.named {
		return err
	}
	err = f.fs.sync(f.dir, func() error { return syncDir(f.dir, f.fs.FS) })
	f.named = err == nil
	return err
}
