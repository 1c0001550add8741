// Package disktest has a disk for tests: a file system in memory with a limited size and with failures that a test
// chooses. It also has a store that refuses batches.
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

// Disk is a file system of one directory. Crash makes a copy without the data that were not synced.
type Disk struct {
	vfs.FS
	Files *vfs.MemFS // the disk's files; operations on Files meet neither the disk's limit nor its failures
	dir   string
	size  uint64

	mu         sync.Mutex
	otherBytes uint64 // bytes taken by other programs
	fail       func(errorfs.Op) error
}

// New makes a disk for the files of the directory dir. The parameter size is the disk's size in bytes.
func New(dir string, size uint64) *Disk { return newDisk(vfs.NewCrashableMem(), dir, size) }

func newDisk(files *vfs.MemFS, dir string, size uint64) *Disk {
	d := &Disk{Files: files, dir: dir, size: size}
	d.FS = errorfs.Wrap(sized{d.Files, d}, errorfs.InjectorFunc(d.maybeFail))
	return d
}

// Crash returns a disk with the files that d would have after a loss of power. On the new disk, no operation fails and
// other programs use no space.
func (d *Disk) Crash(cfg vfs.CrashCloneCfg) *Disk {
	return newDisk(d.Files.CrashClone(cfg), d.dir, d.size)
}

// Fail makes every operation call f first. The operation fails if f returns an error. Fail(nil) ends that.
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

// Fill makes other programs use all free space, even space that becomes free later, so that files can only shrink.
// Empty frees the space of other programs again.
func (d *Disk) Fill()  { d.setOtherBytes(d.size) }
func (d *Disk) Empty() { d.setOtherBytes(0) }

// Leave makes other programs use all free space except n bytes.
func (d *Disk) Leave(n uint64) { d.setOtherBytes(d.Free() - min(n, d.Free())) }

func (d *Disk) setOtherBytes(n uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.otherBytes = n
}

// Free returns the number of free bytes.
func (d *Disk) Free() uint64 {
	d.mu.Lock()
	used := d.otherBytes
	d.mu.Unlock()
	names, _ := d.Files.List(d.dir)
	for _, name := range names {
		if info, err := d.Files.Stat(d.Files.PathJoin(d.dir, name)); err == nil {
			used += uint64(info.Size())
		}
	}
	return d.size - min(used, d.size)
}

// sized is a file system in memory that refuses writes beyond the disk's size.
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

// Write writes as many bytes as there is space for, as operating systems do, and returns an error if these are not all
// bytes of p.
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
