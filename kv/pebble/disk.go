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
	"github.com/crowfoot-db/crowfoot/usererror"
)

// reserveFile takes space on the disk that other programs cannot take.
const reserveFile = "RESERVE"

const (
	// memTableShare is the share of a small disk that a table in memory may be as large as. What is kept free is counted in such tables.
	memTableShare    = 32
	minMemTableBytes = 256 << 10
	// reserveTables is the reserve: the log that commits on their way still need, and a flush.
	reserveTables = 2
	// freeTables must stay free beside the reserve: all that is in memory can then be flushed, which takes the place of its log, and
	// the usual compactions have room.
	freeTables = memTables
	// spacePerByte is what a commit takes on disk at first: it is in the log and in a table.
	spacePerByte = 2
	// reservedShare is the part of reserve and free space below which also writes that may use the reserve are refused.
	reservedShare = 4
	// lookEvery is how often the free space is looked at while nothing is committed.
	lookEvery = time.Second
	// sublevelsToRefuse at the top of the store are too many while compactions fail, for ordinary batches. Pebble lets writers wait at l0Stop,
	// so from sublevelsToRefuseAll on no batch is let in: what is in memory, and what a look lets in, will still be flushed.
	sublevelsToRefuse    = l0Stop / 2
	sublevelsToRefuseAll = l0Stop - memTables - 1
)

// memTableSize is for a disk of so many bytes; 0 is one without limit.
func memTableSize(total uint64) uint64 {
	if total == 0 {
		return memTableBytes
	}
	return min(max(total/memTableShare, minMemTableBytes), memTableBytes)
}

// disk says which batches may be committed, by the space that is left in the file system of a directory, and keeps a reserve of it.
//
// Free space counts together with the reserve. Ordinary batches leave both whole: refused are those that would not. Batches that may use
// the reserve go on until most of it has gone. What is on its way has been counted, so that many commits at once
// do not take the same space.
//
// A file system may refuse space that it seems to have: because of a quota, say. Then the reserve is given up, and batches are refused
// until it could be made again.
//
// A file system that does not say how large it is, such as one in memory, is taken to be without limit.
type disk struct {
	fs       vfs.FS
	dir      string
	memTable uint64
	limited  bool

	// sublevels is how many sorted runs a read at the top of the store looks into. It locks Pebble's mutex, which no method that Pebble
	// calls may do.
	sublevels func() int

	admitted atomic.Int64 // bytes of all batches that were let in
	applied  atomic.Int64 // of those whose commit has ended
	limit    atomic.Int64 // admitted may get so far without another look
	refusals atomic.Int64 // batches that were not let in

	compactionFailed atomic.Pointer[failedCompaction] // nil once others have gone well that do what it would have done
	topMerged        atomic.Bool                      // since then a compaction has moved tables from the top to a lower level

	mu      sync.Mutex // never locked while Pebble's is wanted
	held    int64      // bytes of the reserve that are on disk
	filling bool       // the reserve is being made
	refused error      // what the file system answered when the reserve was given up; nil once it is whole again

	closed  chan struct{}
	watcher sync.WaitGroup
}

// failedCompaction is the last compaction that failed. One of lower levels does not take the place of one from the top.
type failedCompaction struct {
	move
	err error
}

// openDisk looks at the file system of a directory, which exists.
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

// freeSize is the space that the file system has left; -1 if it does not say.
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

// admit lets a batch of n bytes in, or says why not: then nothing of it may be written. ended must be called for one that was let in.
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

// look admits n bytes if there is room for them, and decides how much may follow.
func (d *disk) look(n int64, useReserve bool) error {
	err := d.pileUp(useReserve)
	if err == nil {
		err = d.take(n, useReserve)
	}
	if err != nil {
		d.lookAtNext()
	}
	return err
}

// pileUp is the error of a batch that would pile up more tables at the top of the store, which compactions do not take away.
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
		return usererror.DiskRefuses(d.dir, failed.err)
	}
	return usererror.CompactionFails(d.dir, failed.err)
}

// take admits n bytes if the disk has room for them.
func (d *disk) take(n int64, useReserve bool) error {
	room := int64(d.memTable)
	if d.limited {
		d.mu.Lock()
		defer d.mu.Unlock()
		if free, err := d.space(); err == nil { // otherwise nothing is known; the write itself will tell
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

// roomBeside is how many bytes may be admitted beside n more before the next look, or why those may not. mu is locked.
func (d *disk) roomBeside(free, n int64) (int64, error) {
	need := d.keepFree() + d.reserveBytes() - d.held + spacePerByte*(d.onTheirWay()+n)
	switch {
	case free < need:
		return 0, usererror.DiskFull(d.dir, free, need)
	case d.refused != nil:
		return 0, usererror.DiskRefuses(d.dir, d.refused)
	}
	return (free - need) / spacePerByte, nil
}

// reserveLasts says whether a batch of n bytes that may use the reserve may be committed. mu is locked.
func (d *disk) reserveLasts(free, n int64) bool {
	return free+d.held-spacePerByte*(d.onTheirWay()+n) >= (d.keepFree()+d.reserveBytes())/reservedShare
}

// giveUpReserve makes room for a write that got err, and says whether it could. Ordinary batches are refused from now on. Pebble may have locked its
// mutexes.
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

// compactionEnded notes whether a compaction went well. Pebble calls it with its mutex locked. What a failure from the top leaves there is gone once few
// tables are left (see pileUp); a failure of lower levels is over once those tables, or others of their level, have moved.
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

// watch looks at the disk again and again until close: other programs fill it, and make room. It makes the reserve, and logs the changes.
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

// makeReserve makes the reserve if there is room for it and for the writes that it is to protect.
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

// beginReserve says whether the reserve is to be made, how large, and how much was free before.
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

// fillReserve has the file system set size bytes aside; where it cannot, they are written, and cannot be compressed. It ends early if the
// reserve is given up meanwhile.
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

// setAside says whether the file system could set all of it aside at once.
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
	_, err = f.WriteAt([]byte{1}, size-1) // so that its size can be seen
	return true, err
}

// hold counts bytes that are about to be written to the reserve, unless it was given up.
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

// cannotOpen says why the store could not be opened, in other words than the operating system's where there are better ones.
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
