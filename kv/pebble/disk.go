package pebble

import (
	"errors"
	"fmt"
	iofs "io/fs"
	"log/slog"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/crowfoot-db/crowfoot/kv"
)

// reserveFile is the name of a file that takes up disk space, so that other programs cannot use this space. It is
// removed when a write needs the space.
const reserveFile = "RESERVE"

const (
	// A memtable takes at most 1/memTableShare of a small disk. The reserve and the space that must stay free are
	// multiples of a memtable's size, so small memtables leave more of a small disk for data.
	memTableShare    = 32
	minMemTableBytes = 256 << 10
	// The size of the reserve is that of reserveTables memtables. This space suffices for the log of the commits that
	// were already admitted, and for one flush.
	reserveTables = 2
	// In addition to the reserve, space of the size of freeTables memtables must stay free. This space suffices for
	// flushes of all memtables, whose logs are deleted after the flushes, and for ordinary compactions.
	freeTables = memTables
	// spacePerByte is how many bytes on disk each byte of a batch takes until the log is deleted: one in the log and
	// one in a table.
	spacePerByte = 2
	// Normally the reserve and the free space together have at least the size of reserveTables plus freeTables
	// memtables. Even a batch that may use the reserve is refused if it would leave less than 1/reservedShare of this
	// size.
	reservedShare = 4
	// lookEvery is the interval at which the goroutine of watch reads the free space.
	lookEvery = time.Second
	// While compactions fail, level 0 grows. Ordinary batches are refused when level 0 has sublevelsToRefuse sublevels,
	// and all batches when it has sublevelsToRefuseAll. At l0Stop sublevels Pebble makes writers wait. Both limits are
	// lower than l0Stop, because level 0 still grows after a refusal: the memtables, and the batches admitted until the
	// next check, will be flushed to it.
	sublevelsToRefuse    = l0Stop / 2
	sublevelsToRefuseAll = l0Stop - memTables - 1
)

// memTableSize returns the size of a memtable for a disk of total bytes. A total of 0 means a disk without limit.
func memTableSize(total uint64) uint64 {
	if total == 0 {
		return memTableBytes
	}
	return min(max(total/memTableShare, minMemTableBytes), memTableBytes)
}

// disk decides which batches may be committed, by the free space in the file system of a directory, and keeps a reserve
// of that space.
//
// An ordinary batch is refused if it would leave less space than the reserve and the space to keep free (freeTables)
// take together. A batch that may use the reserve is refused only when most of this space is used. Batches that are
// being committed count as written, so that concurrent commits do not count on the same space.
//
// A file system may refuse a write although it reports free space, for example because of a quota. Then the disk
// deletes the reserve file, and refuses batches until it has made the file again.
//
// A file system that does not know its size, such as one in memory, counts as unlimited.
type disk struct {
	fs       vfs.FS
	dir      string
	memTable uint64 // the size of a memtable in bytes
	limited  bool   // whether the file system knows its size

	// sublevels returns the number of sublevels of level 0. These are the sorted runs in level 0, and a read must look
	// into each of them. The function locks Pebble's mutex, so no method that Pebble calls may call it.
	sublevels func() int

	admitted atomic.Int64 // bytes of all batches that were admitted
	applied  atomic.Int64 // bytes of the admitted batches whose commit has ended
	limit    atomic.Int64 // admit accepts batches without reading the free space until admitted reaches limit
	refusals atomic.Int64 // batches that were refused

	// compactionFailed is the failed compaction because of which batches may be refused (see pileUp); nil if there is
	// none. topMerged says whether a compaction has moved tables out of level 0 since that failure.
	compactionFailed atomic.Pointer[failedCompaction]
	topMerged        atomic.Bool

	mu      sync.Mutex // its holder never locks Pebble's mutex
	held    int64      // how many bytes of the reserve are on disk
	filling bool       // the reserve is being made
	refused error      // the error because of which the reserve was given up; nil once the reserve is complete again

	closed  chan struct{}
	watcher sync.WaitGroup
}

// failedCompaction describes a compaction that failed. A later failure in lower levels does not replace one in level
// 0.
type failedCompaction struct {
	move
	err error
}

// openDisk returns the disk of a directory, which must exist. Even if it returns an error, the returned disk can be
// used.
func openDisk(dir string, fs vfs.FS) (d *disk, err error) {
	d = &disk{fs: fs, dir: dir, memTable: memTableBytes, closed: make(chan struct{}), sublevels: func() int { return 0 }}
	usage, err := fs.GetDiskUsage(dir)
	if errors.Is(err, vfs.ErrUnsupported) {
		d.limit.Store(math.MaxInt64)
		return d, nil
	}
	if err != nil {
		return d, fmt.Errorf("read how much space there is: %w", err)
	}
	d.limited, d.memTable = true, memTableSize(usage.TotalBytes)
	if info, err := fs.Stat(d.reservePath()); err == nil {
		d.held = info.Size()
	}
	if usage.AvailBytes < uint64(d.keepFree()) {
		d.giveUpReserve(nil)
	}
	return d, nil
}

func (d *disk) reservePath() string    { return d.fs.PathJoin(d.dir, reserveFile) }
func (d *disk) reserveBytes() int64    { return reserveTables * int64(d.memTable) }
func (d *disk) keepFree() int64        { return freeTables * int64(d.memTable) }
func (d *disk) onTheirWay() int64      { return d.admitted.Load() - d.applied.Load() }
func (d *disk) ended(n int)            { d.applied.Add(int64(n)) }
func (d *disk) lookAtNext()            { d.limit.Store(0) }
func (d *disk) space() (uint64, error) { u, err := d.fs.GetDiskUsage(d.dir); return u.AvailBytes, err }

// freeSize returns the free bytes of the file system; -1 if they are not known.
func (d *disk) freeSize() int64 {
	if !d.limited {
		return -1
	}
	free, err := d.space()
	if err != nil {
		return -1
	}
	return int64(min(free, math.MaxInt64))
}

// admit returns nil if a batch of n bytes may be written, or an error that wraps kv.ErrRefused. The caller must not
// write a refused batch, and must call ended for a batch that was admitted.
func (d *disk) admit(n int, useReserve bool) error {
	for {
		admitted := d.admitted.Load()
		if admitted+int64(n) > d.limit.Load() {
			break
		}
		if d.admitted.CompareAndSwap(admitted, admitted+int64(n)) {
			return nil
		}
	}
	if err := d.look(int64(n), useReserve); err != nil {
		d.refusals.Add(1)
		return fmt.Errorf("%w: %w", kv.ErrRefused, err)
	}
	return nil
}

// look reads the free space and admits n bytes if the disk has space for them. It also sets d.limit, up to which admit
// may accept batches before look is called again.
func (d *disk) look(n int64, useReserve bool) error {
	err := d.pileUp(useReserve)
	if err == nil {
		err = d.tryAdmit(n, useReserve)
	}
	if err != nil {
		d.lookAtNext()
	}
	return err
}

// pileUp returns an error if compactions fail and level 0 has too many sublevels. In this state, each further batch
// would add tables to level 0, and no compaction would move them to lower levels.
func (d *disk) pileUp(useReserve bool) error {
	failed := d.compactionFailed.Load()
	if failed == nil {
		return nil
	}
	switch n := d.sublevels(); {
	case n < sublevelsToRefuse:
		if d.topMerged.Load() {
			d.compactionFailed.CompareAndSwap(failed, nil)
		}
		return nil
	case n < sublevelsToRefuseAll && useReserve:
		return nil
	case isFull(failed.err):
		return &kv.DiskRefusesError{Dir: d.dir, Cause: failed.err}
	}
	return &kv.CompactionError{Dir: d.dir, Cause: failed.err}
}

// tryAdmit counts n bytes as admitted if the disk has space for them, else it returns an error.
func (d *disk) tryAdmit(n int64, useReserve bool) error {
	room := int64(d.memTable)
	if d.limited {
		d.mu.Lock()
		defer d.mu.Unlock()
		// If the free space is unknown, the write itself will show whether there is space.
		if free, err := d.space(); err == nil {
			more, err := d.roomBeside(int64(min(free, math.MaxInt64)), n)
			if err != nil && !(useReserve && d.reserveLasts(int64(min(free, math.MaxInt64)), n)) {
				return err
			}
			room = min(room, more)
		}
	}
	d.limit.Store(d.admitted.Add(n) + room)
	return nil
}

// roomBeside returns how many more bytes may be admitted after a batch of n bytes before the free space must be read
// again. It returns an error if there is no space for the batch, or if the reserve was given up because of an error.
// The caller holds d.mu.
func (d *disk) roomBeside(free, n int64) (int64, error) {
	need := d.keepFree() + d.reserveBytes() - d.held + spacePerByte*(d.onTheirWay()+n)
	switch {
	case free < need:
		return 0, &kv.DiskFullError{Dir: d.dir, Free: free, Need: need}
	case d.refused != nil:
		return 0, &kv.DiskRefusesError{Dir: d.dir, Cause: d.refused}
	}
	return (free - need) / spacePerByte, nil
}

// reserveLasts reports whether there is enough space for a batch of n bytes that may use the reserve. The caller holds
// d.mu.
func (d *disk) reserveLasts(free, n int64) bool {
	return free+d.held-spacePerByte*(d.onTheirWay()+n) >= (d.keepFree()+d.reserveBytes())/reservedShare
}

// giveUpReserve deletes the reserve file to free space for a write that failed with err, and reports whether it deleted
// the file. Ordinary batches are then refused until the reserve is complete again. If err is nil, no write has failed,
// and giveUpReserve does not cause such refusals. The caller may hold Pebble's mutexes, since giveUpReserve calls no
// method of Pebble.
func (d *disk) giveUpReserve(err error) bool {
	d.lookAtNext()
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil && d.limited {
		d.refused = err
	}
	if d.held == 0 && !d.filling {
		return false
	}
	d.held, d.filling = 0, false
	return d.fs.Remove(d.reservePath()) == nil
}

// compactionEnded records the result of a compaction. Pebble calls it with its mutex locked. A failure at level 0
// counts until level 0 has few tables again (see pileUp). A failure at a lower level counts until a compaction from
// that level succeeds.
func (d *disk) compactionEnded(err error, moved move) {
	failed := d.compactionFailed.Load()
	switch {
	case err != nil:
		if failed == nil || failed.from > 0 || moved.from == 0 {
			d.topMerged.Store(false)
			d.compactionFailed.Store(&failedCompaction{moved, err})
		}
		d.lookAtNext()
	case moved.from == 0 && moved.to > 0:
		d.topMerged.Store(true)
	case failed != nil && failed.from > 0 && failed.from == moved.from:
		d.compactionFailed.CompareAndSwap(failed, nil)
		d.lookAtNext()
	}
}

// watch starts a goroutine that reads the free space every second until close, since other programs use and free
// space, too. The goroutine makes the reserve file. It logs when the store begins to refuse writes, and when it
// accepts writes again.
func (d *disk) watch() {
	if !d.limited {
		return
	}
	d.watcher.Go(func() {
		tick := time.NewTicker(lookEvery)
		defer tick.Stop()
		var was error
		for {
			d.makeReserve()
			err := d.look(0, false)
			switch {
			case was == nil && err != nil:
				fullLog.log(slog.LevelWarn, "storage: writes are refused: "+err.Error())
			case was != nil && err == nil:
				fullLog.log(slog.LevelInfo, "storage: there is room again, writes go on: "+d.dir)
			}
			was = err
			select {
			case <-tick.C:
			case <-d.closed:
				return
			}
		}
	})
}

// makeReserve makes the reserve file if there is space both for it and for the space that must stay free.
func (d *disk) makeReserve() {
	free, size, ok := d.beginReserve()
	if !ok {
		return
	}
	err := d.fillReserve(free, size)
	d.mu.Lock()
	defer d.mu.Unlock()
	if err == nil && d.filling {
		d.held, d.filling, d.refused = size, false, nil
		return
	}
	_ = d.fs.Remove(d.reservePath())
	if isFull(err) {
		d.refused = err
	}
	d.held, d.filling = 0, false
}

// beginReserve says in ok whether the reserve file should be made now. It also returns the number of free bytes and
// the size of the reserve.
func (d *disk) beginReserve() (free uint64, size int64, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	size = d.reserveBytes()
	if _, err := d.fs.Stat(d.reservePath()); errors.Is(err, iofs.ErrNotExist) { // an operator has deleted it
		d.held = 0
	}
	free, err := d.space()
	if d.held == size || err != nil || int64(min(free, math.MaxInt64)) < size+d.keepFree() {
		return 0, 0, false
	}
	d.held, d.filling = 0, true
	return free, size, true
}

// fillReserve makes the reserve file with size bytes. If the file system cannot allocate the space in one step,
// fillReserve writes random bytes, which cannot be compressed. It ends early if another goroutine gives up the
// reserve.
func (d *disk) fillReserve(free uint64, size int64) (err error) {
	f, err := d.fs.Create(d.reservePath(), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if whole, err := d.setAside(f, free, size); whole || err != nil {
		return err
	}
	var seed [32]byte
	noise, chunk := rand.NewChaCha8(seed), make([]byte, 1<<20)
	for at := int64(0); at < size; at += int64(len(chunk)) {
		n := min(int64(len(chunk)), size-at)
		if !d.hold(n) {
			return nil
		}
		_, _ = noise.Read(chunk) // never fails
		if _, err := f.Write(chunk[:n]); err != nil {
			return err
		}
	}
	return nil
}

// setAside asks the file system to allocate the whole reserve in one step. whole reports whether it did.
func (d *disk) setAside(f vfs.File, free uint64, size int64) (whole bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := f.Preallocate(0, size); isFull(err) {
		return false, err
	}
	if left, err := d.space(); err != nil || left+uint64(size)/2 > free {
		return false, nil
	}
	d.held = size
	_, err = f.WriteAt([]byte{1}, size-1) // one byte at the end, so that the file has its size
	return true, err
}

// hold counts n bytes that are about to be written to the reserve file. It returns false if the reserve was given up.
func (d *disk) hold(n int64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.filling {
		d.held += n
	}
	return d.filling
}

func (d *disk) close() {
	close(d.closed)
	d.watcher.Wait()
}

// cannotOpen wraps err, the error of a store that could not be opened. It says what to do if the disk is full or the
// process may not access the files.
func (d *disk) cannotOpen(err error) error {
	why := "it is damaged or incomplete; nothing in it was overwritten"
	switch {
	case isFull(err):
		why = "its disk is full, make room on it"
		if free, err := d.space(); err == nil {
			why = fmt.Sprintf("its disk is full (%d MiB are free), make room on it", free>>20)
		}
	case notAllowed(err):
		return errNotAllowed(d.dir, err)
	}
	return fmt.Errorf("data directory %s cannot be opened: %s: %w", d.dir, why, err)
}
