package pebble

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/crowfoot-db/crowfoot/kv"
)

const (
	// fullPatience is how long a write of an essential file (roleEssential) waits for free space on a full disk after
	// the reserve file was deleted. fullPoll is the interval at which the write is tried again.
	fullPatience = 2 * time.Second
	fullPoll     = 100 * time.Millisecond
	// Pebble retries a failed flush or compaction at once. So guardedFS delays the retry: a flush before it writes its
	// first file, and a compaction before it begins. The delay begins at firstRetryDelay, and doubles with each failure
	// up to lastRetryDelay.
	firstRetryDelay = 10 * time.Millisecond
	lastRetryDelay  = time.Second
	// The store fails after flushAttempts failed flushes in a row, which take a little more than a second. Pebble
	// would retry for ever, but has memory for only a limited amount of writes. If the disk is full, more flushes may
	// fail before the store fails, as long as no commit waits for a flush.
	flushAttempts = 8
	// The store fails when compactionAttempts compactions from level 0 fail in a row while a commit waits for such a
	// compaction.
	compactionAttempts = 8
)

// A stallReason says why Pebble makes commits wait.
type stallReason int32

const (
	stallNone       stallReason = iota
	stallFlush                  // too many memtables wait for a flush
	stallCompaction             // level 0 has too many tables
)

// Categories of the files that Pebble writes, under the names that Pebble uses.
const (
	categoryFlush       vfs.DiskWriteCategory = "pebble-memtable-flush"
	categoryCompaction  vfs.DiskWriteCategory = "pebble-compaction"
	categoryBlobRewrite vfs.DiskWriteCategory = "pebble-blob-file-rewrite"
)

// role says how guardedFS treats an error of a file.
type role int

const (
	roleCopy       role = iota // part of a checkpoint, outside of the data directory: the caller gets the error
	roleOther                  // another file, such as the mark: the caller gets the error
	roleEssential              // a log, a manifest, a marker or the data directory: Pebble cannot go on after an error
	roleFlush                  // a table that a flush writes: Pebble retries the flush
	roleCompaction             // a table that a compaction writes: Pebble retries the compaction
)

// guardedFS wraps the file system of the data directory for Pebble, and hides errors after which Pebble cannot
// continue.
//
// If the disk has no space for a write, the guard gives up the reserve (see disk) and repeats the write. So Pebble
// does not see a full disk where it could not continue.
//
// After some other errors Pebble cannot continue: it panics with its mutexes locked, and its callers hang. So the
// guard reports the failure of the store and returns success to Pebble. From then on the guard writes nothing to the
// directory, as if the process had ended, and keeps new files in memory. Running requests end, and the Store
// acknowledges no further commit. The guard never repeats a failed sync: a second one may succeed although the first
// has lost data (https://wiki.postgresql.org/wiki/Fsync_Errors).
type guardedFS struct {
	vfs.FS
	dir    string // the data directory, in the form that PathDir returns
	disk   *disk
	memory *vfs.MemFS    // holds the files that are made after the failure
	closed chan struct{} // closed when the store closes, which ends all pauses

	failed   atomic.Pointer[kv.FailedError] // nil until the store fails
	report   sync.Once
	reporter atomic.Pointer[func(error)] // called once, when the store has failed
	opened   atomic.Bool                 // whether Open has opened the engine
	stall    atomic.Int32                // a stallReason that says why commits wait now

	copying atomic.Pointer[context.Context] // context of the running Checkpoint; nil if none runs

	flushFailures, compactionFailures atomic.Int32 // how many of the last flushes, or compactions, failed in a row
	// stalledFailures is how many compactions from level 0 failed in a row since commits began to wait for such a
	// compaction.
	stalledFailures atomic.Int32
	holdCompactions atomic.Pointer[time.Time] // no compaction may begin before this time; nil if none has to wait
	compactions     compactions
}

func guard(dir string, fs vfs.FS, d *disk) *guardedFS {
	g := &guardedFS{FS: fs, dir: clean(dir, fs), disk: d, memory: vfs.NewMem(), closed: make(chan struct{})}
	_ = g.memory.MkdirAll(g.dir, 0o755) // does not fail in an empty MemFS
	return g
}

// clean returns the name of a directory in the form in which PathDir returns it for files in the directory.
func clean(dir string, fs vfs.FS) string { return fs.PathDir(fs.PathJoin(dir, lockFile)) }

// fail makes the store fail and reports it. Only the first call has an effect.
func (fs *guardedFS) fail(cause error) {
	if fs.failed.CompareAndSwap(nil, &kv.FailedError{Cause: cause}) {
		fs.reportFailure()
	}
}

func (fs *guardedFS) onFailure(f func(error)) {
	fs.reporter.Store(&f)
	fs.reportFailure()
}

// reportFailure calls the reporter once, as soon as both a reporter and a failure are set.
func (fs *guardedFS) reportFailure() {
	if f, report := fs.failed.Load(), fs.reporter.Load(); f != nil && report != nil {
		fs.report.Do(func() { (*report)(f.Cause) })
	}
}

// failure returns the *kv.FailedError if the store has failed, else nil.
func (fs *guardedFS) failure() error {
	if f := fs.failed.Load(); f != nil {
		return f
	}
	return nil
}

func (fs *guardedFS) roleOf(name string, category vfs.DiskWriteCategory) role {
	base := fs.PathBase(name)
	switch {
	case fs.PathDir(name) != fs.dir:
		return roleCopy
	case category == categoryFlush:
		return roleFlush
	case category == categoryCompaction || category == categoryBlobRewrite:
		return roleCompaction
	case strings.HasSuffix(base, ".log") || strings.HasPrefix(base, "MANIFEST-") || strings.HasPrefix(base, "marker."):
		return roleEssential
	}
	return roleOther
}

// try calls the function do. While the disk is full, try frees space or waits for free space and calls the function
// again, as far as the role allows. It returns the error of the last call. If there is an error and the role is
// roleEssential, the store fails.
func (fs *guardedFS) try(r role, what, name string, do func() error) error {
	err := do()
	for waited := time.Duration(0); isFull(err); waited += fullPoll {
		// Pebble tries compactions again itself. A checkpoint may be written to another disk, where the reserve does
		// not help.
		if r == roleCompaction || r == roleCopy {
			return err
		}
		if !fs.disk.giveUpReserve(err) {
			if r != roleEssential || waited >= fullPatience || !fs.pause(fullPoll) {
				break
			}
		}
		err = do()
	}
	if err != nil && r == roleEssential {
		fs.fail(fmt.Errorf("%s %s: %w", what, name, err))
	}
	return err
}

// isFull reports whether err says that the disk is full or a quota is used up.
func isFull(err error) bool {
	return err != nil && (vfs.IsNoSpaceError(err) || errors.Is(err, syscall.EDQUOT))
}

// pause waits for the duration d and returns true. If the store is closed during the wait, pause returns false at once.
func (fs *guardedFS) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-fs.closed:
		return false
	}
}

// retryDelay returns the delay before the next flush or compaction after this many failures in a row.
func retryDelay(failures int32) time.Duration {
	return min(firstRetryDelay<<min(failures-1, 16), lastRetryDelay)
}

// holdUpFlush delays a flush if the flushes just before it failed.
func (fs *guardedFS) holdUpFlush() {
	if failures := fs.flushFailures.Load(); failures > 0 {
		fs.pause(retryDelay(failures))
	}
}

// compactionsHeld reports whether the next compaction must still wait, because the last one failed.
func (fs *guardedFS) compactionsHeld() bool {
	until := fs.holdCompactions.Load()
	return until != nil && time.Now().Before(*until)
}

// stallBegan records that from now on commits wait for this reason.
func (fs *guardedFS) stallBegan(reason stallReason) {
	fs.stalledFailures.Store(0)
	fs.stall.Store(int32(reason))
}

func (fs *guardedFS) stallEnded() { fs.stall.Store(int32(stallNone)) }

func (fs *guardedFS) isStalled(reason stallReason) bool {
	return stallReason(fs.stall.Load()) == reason
}

// flushEnded counts failed flushes. Pebble calls it with its mutex locked. If commits waited for a flush and still
// wait after the flush has ended, they wait for a compaction. Pebble does not report this change of the reason, so
// flushEnded records it.
func (fs *guardedFS) flushEnded(err error) {
	if err == nil {
		fs.flushFailures.Store(0)
		if fs.isStalled(stallFlush) {
			fs.stallBegan(stallCompaction)
		}
		return
	}
	n := fs.flushFailures.Add(1)
	fs.disk.lookAtNext()
	if n >= flushAttempts && (!isFull(err) || fs.isStalled(stallFlush) || !fs.opened.Load()) {
		fs.fail(fmt.Errorf("flush: %w", err))
	}
}

// compactionEnded counts failed compactions. Pebble calls it with its mutex locked.
func (fs *guardedFS) compactionEnded(err error, moved move) {
	fs.disk.compactionEnded(err, moved)
	if err == nil {
		fs.compactionFailures.Store(0)
		fs.holdCompactions.Store(nil)
	} else {
		until := time.Now().Add(retryDelay(fs.compactionFailures.Add(1)))
		fs.holdCompactions.Store(&until)
	}
	switch {
	case moved.from > 0: // a compaction of lower levels does not end a stall
	case err == nil:
		fs.stalledFailures.Store(0)
	case fs.isStalled(stallCompaction) && fs.stalledFailures.Add(1) >= compactionAttempts:
		fs.fail(fmt.Errorf("compaction: %w", err))
	}
}

// Create implements vfs.FS.
func (fs *guardedFS) Create(name string, category vfs.DiskWriteCategory) (f vfs.File, err error) {
	r := fs.roleOf(name, category)
	if err := fs.copyEnded(r); err != nil {
		return nil, err
	}
	if r == roleFlush {
		fs.holdUpFlush()
	}
	return fs.make(r, "create", name, func() (vfs.File, error) { return fs.FS.Create(name, category) })
}

// ReuseForWrite implements vfs.FS.
func (fs *guardedFS) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return fs.make(fs.roleOf(newname, category), "rename to", newname, func() (vfs.File, error) {
		return fs.FS.ReuseForWrite(oldname, newname, category)
	})
}

func (fs *guardedFS) make(r role, what, name string, create func() (vfs.File, error)) (f vfs.File, err error) {
	if fs.failure() == nil {
		err = fs.try(r, what, name, func() (err error) {
			f, err = create()
			return err
		})
		if err == nil {
			return &guardedFile{File: f, fs: fs, role: r, name: name}, nil
		}
	}
	if failure := fs.failure(); failure != nil {
		if r == roleOther || r == roleCopy {
			return nil, failure
		}
		return fs.memory.Create(name, vfs.WriteCategoryUnspecified)
	}
	return nil, err
}

// OpenReadWrite implements vfs.FS.
func (fs *guardedFS) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	f, err := fs.FS.OpenReadWrite(name, category, opts...)
	if err != nil {
		return nil, err
	}
	return &guardedFile{File: f, fs: fs, role: fs.roleOf(name, category), name: name}, nil
}

// Open implements vfs.FS.
func (fs *guardedFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	if fs.failure() != nil {
		if f, err := fs.memory.Open(name, opts...); err == nil {
			return f, nil
		}
	}
	f, err := fs.FS.Open(name, opts...)
	if base := fs.PathBase(name); err == nil && strings.HasSuffix(base, ".sst") && fs.PathDir(name) == fs.dir {
		return &inputFile{f, base, &fs.compactions}, nil
	}
	return f, err
}

// OpenDir implements vfs.FS. Pebble opens a directory only to sync it.
func (fs *guardedFS) OpenDir(name string) (vfs.File, error) {
	if clean(name, fs) != fs.dir {
		return fs.FS.OpenDir(name)
	}
	if fs.failure() == nil {
		f, err := fs.FS.OpenDir(name)
		if err == nil {
			return &guardedFile{File: f, fs: fs, role: roleEssential, name: name}, nil
		}
		fs.fail(fmt.Errorf("open directory %s: %w", name, err))
	}
	return fs.memory.OpenDir(fs.dir)
}

// Remove implements vfs.FS.
func (fs *guardedFS) Remove(name string) error {
	if fs.failure() != nil {
		_ = fs.memory.Remove(name) // files on disk stay
		return nil
	}
	return fs.FS.Remove(name)
}

// Rename implements vfs.FS.
func (fs *guardedFS) Rename(oldname, newname string) error {
	if failure := fs.failure(); failure != nil {
		return failure
	}
	return fs.FS.Rename(oldname, newname)
}

// Link implements vfs.FS.
func (fs *guardedFS) Link(oldname, newname string) error {
	if failure := fs.failure(); failure != nil {
		return failure
	}
	if err := fs.copyEnded(fs.roleOf(newname, vfs.WriteCategoryUnspecified)); err != nil {
		return err
	}
	return fs.FS.Link(oldname, newname)
}

// MkdirAll implements vfs.FS. Pebble calls it only to make the directories of checkpoints; only the server's user may
// access them.
func (fs *guardedFS) MkdirAll(dir string, _ os.FileMode) error { return fs.FS.MkdirAll(dir, dirMode) }

// copyEnded returns an error if a file belongs to a checkpoint and the context of Checkpoint has ended. Then
// Checkpoint removes the copy.
func (fs *guardedFS) copyEnded(r role) error {
	if ctx := fs.copying.Load(); r == roleCopy && ctx != nil {
		return (*ctx).Err()
	}
	return nil
}

// Stat implements vfs.FS.
func (fs *guardedFS) Stat(name string) (vfs.FileInfo, error) {
	if fs.failure() != nil {
		if info, err := fs.memory.Stat(name); err == nil {
			return info, nil
		}
	}
	return fs.FS.Stat(name)
}

// Unwrap implements vfs.FS.
func (fs *guardedFS) Unwrap() vfs.FS { return fs.FS }

// guardedFile is a file of a guardedFS that was opened before the store failed.
type guardedFile struct {
	vfs.File
	fs   *guardedFS
	role role
	name string
}

func (f *guardedFile) Write(p []byte) (n int, err error) {
	if failure := f.fs.failure(); failure != nil {
		return f.afterFailure(len(p), failure)
	}
	if err := f.fs.copyEnded(f.role); err != nil {
		return 0, err
	}
	err = f.fs.try(f.role, "write", f.name, func() error {
		m, err := f.File.Write(p[n:])
		n += m
		return err
	})
	if err != nil && f.role == roleEssential {
		return len(p), nil
	}
	return n, err
}

// WriteAt returns an error after the store has failed. After the failure, the guard leaves out every sync of a log and
// still returns success. syncedFS would then call WriteAt to note in syncedFile that the log was synced. The error of
// WriteAt prevents this false note. Pebble itself does not call WriteAt.
func (f *guardedFile) WriteAt(p []byte, at int64) (int, error) {
	if failure := f.fs.failure(); failure != nil {
		return 0, failure
	}
	return f.File.WriteAt(p, at)
}

// afterFailure returns the result of a write or sync of n bytes that was left out because the store has failed. For an
// essential file the result is success. For a table it is an error, so that Pebble makes the table again, this time in
// memory.
func (f *guardedFile) afterFailure(n int, failure error) (int, error) {
	if f.role == roleEssential {
		return n, nil
	}
	return 0, failure
}

func (f *guardedFile) Sync() error     { return f.settle("sync", f.File.Sync) }
func (f *guardedFile) SyncData() error { return f.settle("sync", f.File.SyncData) }
func (f *guardedFile) Close() error    { return f.settled("close", f.File.Close()) }

func (f *guardedFile) SyncTo(length int64) (full bool, err error) {
	err = f.settle("sync", func() (err error) {
		full, err = f.File.SyncTo(length)
		return err
	})
	return full, err
}

func (f *guardedFile) settle(what string, do func() error) error {
	if failure := f.fs.failure(); failure != nil {
		_, err := f.afterFailure(0, failure)
		return err
	}
	if f.role == roleCompaction {
		if err := f.fs.compactions.inputError(f.fs.PathBase(f.name)); err != nil {
			return err
		}
	}
	return f.settled(what, do())
}

func (f *guardedFile) settled(what string, err error) error {
	switch {
	case err == nil:
	case f.role == roleEssential:
		f.fs.fail(fmt.Errorf("%s %s: %w", what, f.name, err))
		return nil
	case isFull(err) && f.role != roleCompaction && f.role != roleCopy:
		f.fs.disk.giveUpReserve(err)
	}
	return err
}

// Stat implements vfs.File. Pebble calls it to learn the size of a log that it reuses, and cannot continue after an
// error.
func (f *guardedFile) Stat() (vfs.FileInfo, error) {
	info, err := f.File.Stat()
	if err == nil || f.role != roleEssential {
		return info, err
	}
	f.fs.fail(fmt.Errorf("stat %s: %w", f.name, err))
	return noInfo{name: f.fs.PathBase(f.name)}, nil
}

// noInfo describes a file whose Stat failed. Its size is 0.
type noInfo struct {
	os.FileInfo
	name string
}

func (i noInfo) Name() string         { return i.name }
func (i noInfo) Size() int64          { return 0 }
func (noInfo) DeviceID() vfs.DeviceID { return vfs.DeviceID{} }
