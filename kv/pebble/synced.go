package pebble

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	iofs "io/fs"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/wal"
)

// syncedFile says up to which offset the newest log has been synced, in 20 bytes that are overwritten after every sync and before
// the commits that wait for it are acknowledged:
//
//	log number (8 bytes, big-endian), offset (8), CRC-32C of both (4)
//
// It is not synced itself. After the death of the process it is exact, since the operating system has it; after the machine's
// it may be old, or gone, and what it says is true all the same: so much of the log was synced.
const syncedFile = "CROWFOOT.synced"

const syncedBytes = 20

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// syncedLog is what syncedFile says.
type syncedLog struct {
	log    wal.NumWAL
	offset int64
}

func (s syncedLog) append(dst []byte) []byte {
	start := len(dst)
	dst = binary.BigEndian.AppendUint64(dst, uint64(s.log))
	dst = binary.BigEndian.AppendUint64(dst, uint64(s.offset))
	return binary.BigEndian.AppendUint32(dst, crc32.Checksum(dst[start:], castagnoli))
}

// readSynced reads syncedFile. If there is none, or a machine that went down left half of it, nothing is known to be synced.
func readSynced(dir string, fs vfs.FS) (syncedLog, error) {
	f, err := fs.Open(fs.PathJoin(dir, syncedFile))
	if errors.Is(err, iofs.ErrNotExist) {
		return syncedLog{}, nil
	}
	if err != nil {
		return syncedLog{}, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, syncedBytes))
	if err != nil {
		return syncedLog{}, err
	}
	if len(data) < syncedBytes || crc32.Checksum(data[:16], castagnoli) != binary.BigEndian.Uint32(data[16:]) {
		return syncedLog{}, nil
	}
	return syncedLog{log: wal.NumWAL(binary.BigEndian.Uint64(data)), offset: int64(binary.BigEndian.Uint64(data[8:]))}, nil
}

// logsFS keeps syncedFile up to date while Pebble writes logs.
type logsFS struct {
	vfs.FS
	dir string // as PathDir gives it

	mu     sync.Mutex
	synced vfs.File
	newest syncedLog // of the logs that were made here
}

// keepSynced opens syncedFile, and leaves what it says about the last log until the next one is synced.
func keepSynced(dir string, fs vfs.FS) (*logsFS, error) {
	f, err := fs.OpenReadWrite(fs.PathJoin(dir, syncedFile), vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, err
	}
	return &logsFS{FS: fs, dir: clean(dir, fs), synced: f}, nil
}

// Unwrap implements vfs.FS.
func (fs *logsFS) Unwrap() vfs.FS { return fs.FS }

// Create implements vfs.FS.
func (fs *logsFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := fs.FS.Create(name, category)
	return fs.made(name, f, err)
}

// ReuseForWrite implements vfs.FS.
func (fs *logsFS) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := fs.FS.ReuseForWrite(oldname, newname, category)
	return fs.made(newname, f, err)
}

func (fs *logsFS) made(name string, f vfs.File, err error) (vfs.File, error) {
	num, ok := fs.logNumber(name)
	if err != nil || !ok {
		return f, err
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.newest = syncedLog{log: num}
	return &logFile{File: f, fs: fs, at: fs.newest}, nil
}

// logNumber is the number of a log of the store. The logs of a copy are not the store's.
func (fs *logsFS) logNumber(name string) (wal.NumWAL, bool) {
	if fs.PathDir(name) != fs.dir || !strings.HasSuffix(name, ".log") {
		return 0, false
	}
	num, _, ok := wal.ParseLogFilename(fs.PathBase(name))
	return num, ok
}

// Open implements vfs.FS. Of the log that is being written, which a checkpoint copies meanwhile, it shows what is synced: what is behind
// that may change while it is copied, and in a file that is used again it is an older log's.
func (fs *logsFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	f, err := fs.FS.Open(name, opts...)
	num, ok := fs.logNumber(name)
	if err != nil || !ok {
		return f, err
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if num != fs.newest.log {
		return f, nil
	}
	return &syncedPart{File: f, left: fs.newest.offset}, nil
}

// syncedPart is a log as far as it is synced, read from its beginning.
type syncedPart struct {
	vfs.File
	left int64
}

func (f *syncedPart) Read(p []byte) (int, error) {
	if f.left == 0 {
		return 0, io.EOF
	}
	n, err := f.File.Read(p[:min(int64(len(p)), f.left)])
	f.left -= int64(n)
	return n, err
}

// close ends it. Nothing is lost if it fails.
func (fs *logsFS) close() { _ = fs.synced.Close() }

// logFile is a log that Pebble writes, from its beginning. One goroutine writes and syncs it at a time.
type logFile struct {
	vfs.File
	fs   *logsFS
	at   syncedLog // the offset is of what has been written
	note [syncedBytes]byte
}

func (f *logFile) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	f.at.offset += int64(n)
	return n, err
}

func (f *logFile) Sync() error     { return f.synced(f.File.Sync()) }
func (f *logFile) SyncData() error { return f.synced(f.File.SyncData()) }

// synced notes that all that has been written is synced. If the note cannot be written, the older one stays true.
func (f *logFile) synced(err error) error {
	if err != nil {
		return err
	}
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if f.at.log == f.fs.newest.log {
		f.fs.newest = f.at
	}
	_, _ = f.fs.synced.WriteAt(f.at.append(f.note[:0]), 0)
	return nil
}

// checkLastLog refuses the last log of a directory if it is damaged before the last offset that is known to have been synced.
// Pebble checks those before it by itself: they end in a trailer.
func checkLastLog(dir string, fs vfs.FS) error {
	logs, err := wal.Scan(wal.Dir{FS: fs, Dirname: dir})
	if err != nil || len(logs) == 0 {
		return err
	}
	last := logs[len(logs)-1]
	_, name := last.SegmentLocation(0)
	synced, err := readSynced(dir, fs)
	if err != nil {
		return err
	}
	if synced.log != last.Num {
		synced = syncedLog{log: last.Num}
	}
	f, err := fs.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	end, proof, err := scanLog(f, last.Num)
	if err != nil {
		return err
	}
	if end < max(synced.offset, proof) {
		return fmt.Errorf("%s: %w at offset %d, before offset %d up to which it was synced", name, errLogDamaged, end, max(synced.offset, proof))
	}
	return nil
}
