// Package disktest is a disk for tests: a file system in memory that has a size, so that it can be full, and that fails where a test wants
// it to; and a store that refuses batches.
//
// Imports of this module: kv.
package disktest

import (
	"os"
	"sync"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// Disk is a file system of one directory, which forgets what was not synced when it is cloned.
type Disk struct {
	vfs.FS
	Files *vfs.MemFS // without the size and without failures
	dir   string
	size  uint64

	mu    sync.Mutex
	taken uint64 // by others
	fail  func(errorfs.Op) error
}

// New makes a disk of so many bytes, for the files of dir.
func New(dir string, size uint64) *Disk { return newDisk(vfs.NewCrashableMem(), dir, size) }

func newDisk(files *vfs.MemFS, dir string, size uint64) *Disk {
	d := &Disk{Files: files, dir: dir, size: size}
	d.FS = errorfs.Wrap(sized{d.Files, d}, errorfs.InjectorFunc(d.maybeFail))
	return d
}

// Crash makes a disk of what is on this one after a loss of power. It neither fails nor has files of others.
func (d *Disk) Crash(cfg vfs.CrashCloneCfg) *Disk {
	return newDisk(d.Files.CrashClone(cfg), d.dir, d.size)
}

// Fail has every operation call f first: its error, if it is not nil, is that of the operation. nil ends that.
func (d *Disk) Fail(f func(errorfs.Op) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fail = f
}

func (d *Disk) maybeFail(op errorfs.Op) error {
	d.mu.Lock()
	f := d.fail
	d.mu.Unlock()
	if f == nil {
		return nil
	}
	return f(op)
}

// Fill has others take what is free, and more as soon as it is: all files together can only become smaller. Empty takes it back.
func (d *Disk) Fill()  { d.take(d.size) }
func (d *Disk) Empty() { d.take(0) }

// Leave has others take what is free but n bytes.
func (d *Disk) Leave(n uint64) { d.take(d.Free() - min(n, d.Free())) }

func (d *Disk) take(n uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.taken = n
}

// Free is how many bytes are free.
func (d *Disk) Free() uint64 {
	d.mu.Lock()
	used := d.taken
	d.mu.Unlock()
	names, _ := d.Files.List(d.dir)
	for _, name := range names {
		if info, err := d.Files.Stat(d.Files.PathJoin(d.dir, name)); err == nil {
			used += uint64(info.Size())
		}
	}
	return d.size - min(used, d.size)
}

// sized is the file system with its size.
type sized struct {
	*vfs.MemFS
	disk *Disk
}

// GetDiskUsage implements vfs.FS.
func (s sized) GetDiskUsage(string) (vfs.DiskUsage, error) {
	free := s.disk.Free()
	return vfs.DiskUsage{AvailBytes: free, TotalBytes: s.disk.size, UsedBytes: s.disk.size - free}, nil
}

// Create implements vfs.FS.
func (s sized) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return s.sized(s.MemFS.Create(name, category))
}

// ReuseForWrite implements vfs.FS.
func (s sized) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return s.sized(s.MemFS.ReuseForWrite(oldname, newname, category))
}

func (s sized) sized(f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return sizedFile{f, s.disk}, nil
}

type sizedFile struct {
	vfs.File
	disk *Disk
}

// Write writes what there is room for, as operating systems do.
func (f sizedFile) Write(p []byte) (n int, err error) {
	if free := f.disk.Free(); free < uint64(len(p)) {
		n, _ = f.File.Write(p[:free])
		return n, &os.PathError{Op: "write", Path: f.disk.dir, Err: syscall.ENOSPC}
	}
	return f.File.Write(p)
}

// Preallocate makes the file longer.
func (f sizedFile) Preallocate(offset, length int64) error {
	if f.disk.Free() < uint64(length) {
		return syscall.ENOSPC
	}
	_, err := f.WriteAt([]byte{0}, offset+length-1)
	return err
}
