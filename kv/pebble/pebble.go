// Package pebble is the embedded engine: kv on one directory, kept by Pebble.
//
// It owns the layout of the data directory and the configuration of Pebble. Keys
// order by bytes. Bloom filters are built on logical keys, without mvcc's version
// suffix. Each table file records the timestamp of its newest version. Commits
// from many goroutines share one sync of the write-ahead log. The package keeps
// space on the disk free and refuses batches for which there is no room (see
// disk.go). It reports errors after which the store can keep nothing more (see
// guard.go). It promises that a directory which is not Crowfoot's, or is damaged,
// is refused and left as it was, and that two processes never share one. It leaves
// out versions, timestamps and locks: they belong to the layers above.
//
// A data directory holds two files beside Pebble's own. CROWFOOT records the
// format of the rest (see format.go). CROWFOOT.synced records how much of the
// write-ahead logs and the manifest was synced (see synced.go), so that damage is
// not taken for their end. The caller passes the file system: vfs.Default, or a
// vfs.MemFS for a store in memory or for crash tests.
//
// This package knows more of Pebble's files than Pebble's API promises.
// TestAssumptions checks each such thing against the version in go.mod.
//
// Imports of this module: kv, memory, stats/cpu.
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
	// recovered is true if the store was not closed in order before it was opened.
	recovered bool

	// writes counts the batches applied. Idle iterators are kept until it changes.
	writes atomic.Uint64
	idle   iterators
	work   work

	freeing freeing
}

var _ kv.Store = (*Store)(nil)

// Open opens the store in dir. It makes the directory and the store if there is none. A store of an older format keeps its format until
// Upgrade. The block cache is as large as that of the smallest server.
func Open(dir string, fs vfs.FS) (*Store, error) {
	return OpenWithCache(dir, fs, memory.Divide(memory.MinBytes).BlockCache)
}

// OpenWithCache is Open with a block cache of cacheBytes.
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

// open opens the engine. exists tells whether the directory has a store already.
func (s *Store) open(exists bool, cacheBytes int64) (err error) {
	if !exists {
		if err := makeNotes(s.dir, s.fs); err != nil {
			return err
		}
		// The first log of a store has no synced offsets, since Pebble begins it before it knows the version of its files. So the store is
		// closed, and opened again with a second log.
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
			_ = s.db.Close() // after the failure, all its writes go to memory
		}
		return failed.Cause
	}
	if details := errors.GetAllDetails(err); len(details) > 0 {
		// The details name, for example, the log and the offset that was read.
		err = fmt.Errorf("%w (%s)", err, strings.Join(details, "; "))
	}
	return err
}

// openPebble opens the engine and returns a panic as an error. Pebble panics after errors that it cannot go on after.
func openPebble(dir string, opts *pebble.Options) (db *pebble.DB, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	return pebble.Open(dir, opts)
}

// Close closes the store. It does not flush memtables, since their data is in the log. Every iterator and snapshot must have been closed.
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

// Recovered reports whether the store was not closed in order before it was opened: its process was killed, or it is a checkpoint.
func (s *Store) Recovered() bool { return s.recovered }

// OnFailure sets a function that is called once if the store fails. A failed store can no longer promise to keep what it writes, and all
// its methods return an error. The goroutine that calls f may hold locks of the engine, so f must not use the store.
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
