// Package pebble is the embedded engine: kv on one directory, kept by Pebble.
//
// It owns the layout of the data directory and how Pebble is set up: keys order
// by bytes, bloom filters are built on logical keys (what comes before mvcc's
// version suffix), table files say how new their newest version is, commits
// from many goroutines share one sync of the write-ahead log. It leaves space on the disk free and refuses batches for which there
// is no room (see disk.go), and reports errors after which nothing more can be kept
// (see guard.go). It promises that a directory which is not Crowfoot's, or is
// damaged, is refused and left as it was, and that two processes never share
// one. It leaves out versions, timestamps and locks: they belong to the layers
// above.
//
// A data directory holds, beside Pebble's own files, one named CROWFOOT that
// says which format the rest has (see format.go), and one that says how much of the
// write-ahead logs and the manifest was synced (see synced.go), so that damage is not taken for their end. The file system is passed in:
// vfs.Default, or a vfs.MemFS for a store in memory or for crash tests.
//
// Imports of this module: kv, memory, stats/cpu, usererror.
package pebble

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/cockroachdb/errors"
	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/crowfoot-db/crowfoot/kv"
	"github.com/crowfoot-db/crowfoot/memory"
)

// Store is a kv.Store in one directory.
type Store struct {
	db       *pebble.DB
	lock     *pebble.Lock
	dir      string
	fs       vfs.FS
	format   kv.Format
	logs     *syncedFS // nil if the store is only read
	guard    *guardedFS
	disk     *disk
	readOnly bool
	// recovered says that the store was found as after a crash.
	recovered bool

	// writes counts batches applied; an iterator is worth keeping until it changes.
	writes atomic.Uint64
	idle   iterators
	work   work

	freeing freeing
}

var _ kv.Store = (*Store)(nil)

// Open opens the store in dir, making the directory and the store if there is none. A store of an older format keeps it until Upgrade.
// It keeps as many blocks in memory as the smallest server does.
func Open(dir string, fs vfs.FS) (*Store, error) {
	return OpenWithCache(dir, fs, memory.Divide(memory.MinBytes).BlockCache)
}

// OpenWithCache is Open with a cache of so many bytes of decompressed blocks.
func OpenWithCache(dir string, fs vfs.FS, cacheBytes int64) (*Store, error) {
	lock, found, err := claim(dir, keepNames(fs))
	if err != nil {
		return nil, err
	}
	s := &Store{lock: lock, dir: dir, format: found.format, freeing: newFreeing()}
	if s.disk, err = openDisk(dir, fs); err == nil {
		s.guard = guard(dir, fs, s.disk)
		s.fs = keepNames(s.guard)
		err = s.open(found.store, cacheBytes)
	}
	if err != nil {
		if s.logs != nil {
			s.logs.close()
		}
		_ = lock.Close()
		return nil, s.disk.cannotOpen(err)
	}
	return s, nil
}

// open opens the engine. Exists says that the directory has a store already.
func (s *Store) open(exists bool, cacheBytes int64) (err error) {
	if !exists {
		if err := makeNotes(s.dir, s.fs); err != nil {
			return err
		}
		// A store's first log has no synced offsets, as Pebble begins it before it knows the version of its files. So it is closed, and the next begun.
		if err := s.openEngine(false, cacheBytes); err != nil {
			return err
		}
		if err := s.db.Close(); err != nil {
			return err
		}
	}
	closed, err := checkSynced(s.dir, s.fs, s.format)
	if err != nil {
		return err
	}
	s.recovered = exists && !closed
	if s.logs, err = keepSynced(s.dir, s.fs); err != nil {
		return err
	}
	s.fs = s.logs
	if err := s.openEngine(true, cacheBytes); err != nil {
		return err
	}
	s.guard.opened.Store(true)
	s.disk.sublevels = func() int { return int(s.db.Metrics().Levels[0].Sublevels) }
	s.disk.watch()
	return nil
}

func (s *Store) openEngine(exists bool, cacheBytes int64) (err error) {
	opts := options(s.fs, cacheBytes, s.disk.memTable, &s.work, s.guard)
	opts.Lock = s.lock
	opts.FormatMajorVersion = engineVersions[s.format]
	opts.ErrorIfNotExists = exists
	opts.ErrorIfExists = !exists
	opts.ReadOnly = s.readOnly
	scheduler := newScheduler(s.guard)
	opts.Experimental.CompactionScheduler = scheduler
	s.db, err = openPebble(s.dir, opts)
	opts.Cache.Unref() // the DB holds its own reference
	if err != nil {
		scheduler.Unregister()
	}
	if failed := s.guard.failed.Load(); failed != nil {
		if err == nil {
			_ = s.db.Close() // it is in memory
		}
		return failed.cause
	}
	if details := errors.GetAllDetails(err); len(details) > 0 {
		// Such as the log and the offset that was read.
		err = fmt.Errorf("%w (%s)", err, strings.Join(details, "; "))
	}
	return err
}

// openPebble opens the engine. Where that panics, an error that it cannot go on after was reported.
func openPebble(dir string, opts *pebble.Options) (db *pebble.DB, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	return pebble.Open(dir, opts)
}

// Close closes the store. What is in memory is in the log. Every iterator and snapshot must have been closed.
func (s *Store) Close() error {
	close(s.guard.closed)
	s.freeing.close()
	s.disk.close()
	s.idle.close()
	err := s.db.Close()
	if s.logs != nil {
		s.logs.close()
	}
	if lockErr := s.lock.Close(); err == nil {
		err = lockErr
	}
	if failed := s.guard.failure(); failed != nil {
		err = failed
	}
	if err != nil {
		return fmt.Errorf("close store: %w", err)
	}
	return nil
}

// Recovered says that the directory was not closed in order before it was opened: its process was killed, or it is a checkpoint.
func (s *Store) Recovered() bool { return s.recovered }

// OnFailure has f called once if the store fails: it cannot promise any more that what it writes is kept. From then on all its
// methods return an error. The goroutine that calls f may hold locks of the engine, so f must not use the store.
func (s *Store) OnFailure(f func(error)) { s.guard.onFailure(f) }

// Writable implements kv.Store.
func (s *Store) Writable() error {
	if err := s.guard.failure(); err != nil {
		return err
	}
	return s.disk.look(0, false)
}

// NewIter implements kv.Reader.
func (s *Store) NewIter(lower, upper []byte) (kv.Iterator, error) {
	if err := s.guard.failure(); err != nil {
		return nil, err
	}
	return newIter(s.db, lower, upper)
}

// Snapshot implements kv.Store.
func (s *Store) Snapshot() kv.Snapshot {
	return snapshot{s.db.NewSnapshot(), s}
}

type snapshot struct {
	*pebble.Snapshot
	store *Store
}

func (s snapshot) NewIter(lower, upper []byte) (kv.Iterator, error) {
	if err := s.store.guard.failure(); err != nil {
		return nil, err
	}
	return newIter(s.Snapshot, lower, upper)
}

// ApproximateSize implements kv.Store.
func (s *Store) ApproximateSize(lower, upper []byte) (uint64, error) {
	size, err := s.db.EstimateDiskUsage(lower, upper)
	if err != nil {
		return 0, fmt.Errorf("estimate size: %w", readError(err))
	}
	return size, nil
}

// Flush implements kv.Store.
func (s *Store) Flush(ctx context.Context, atLeast uint64) error {
	if s.db.Metrics().WAL.Size < atLeast {
		return nil
	}
	flushed, err := s.db.AsyncFlush()
	if err != nil {
		return fmt.Errorf("flush: %w", err)
	}
	select {
	case <-flushed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
