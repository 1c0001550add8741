// Package pebble is the embedded storage engine. It implements package kv on one directory with the Pebble library.
//
// It owns the layout of the data directory and the configuration of Pebble. Keys are in the order of their bytes. Bloom
// filters are built on logical keys, without mvcc's version suffix. Each table file records the timestamp of its newest
// version. Commits from many goroutines share one sync of the write-ahead log. The package keeps disk space free and
// refuses batches for which there is no space (see disk.go). It reports errors after which the store can keep no
// further writes (see guard.go). It promises that Open refuses and does not change a directory that is damaged or not
// Crowfoot's, and that two processes never have the same directory open. Versions, timestamps and locks are the task of
// other packages (mvcc, txn).
//
// A data directory holds two files beside Pebble's own. CROWFOOT records the format of the other files (see format.go).
// CROWFOOT.synced records how much of the write-ahead logs and the manifest was synced (see synced.go), so that Open
// does not take damage for the end of such a file. The caller passes the file system: vfs.Default, or a vfs.MemFS for a
// store in memory or for crash tests.
//
// This package relies on facts about Pebble's files that Pebble's API does not promise. TestAssumptions checks each of
// these facts against the version in go.mod.
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
	logs     *syncedFS // notes how far logs and manifests are synced; nil if the store was opened only for reading
	guard    *guardedFS
	disk     *disk
	readOnly bool
	// recovered is true if the last process did not close the store in an orderly way.
	recovered bool

	// writes counts the batches applied. An idle iterator is not used again if writes has changed since the iterator
	// was made.
	writes atomic.Uint64
	idle   iterators
	work   work

	freeing freeing
}

var _ kv.Store = (*Store)(nil)

// Open opens the store in dir. It makes the directory and the store if they do not exist. A store of an older format
// keeps its format until Upgrade. The block cache has the size that the smallest server uses.
func Open(dir string, fs vfs.FS) (*Store, error) {
	return OpenWithCache(dir, fs, memory.Divide(memory.MinBytes).BlockCache)
}

// OpenWithCache opens a store as Open does, with a block cache of cacheBytes bytes.
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

// open opens the engine. exists says whether the directory already has a store.
func (s *Store) open(exists bool, cacheBytes int64) (err error) {
	if !exists {
		if err := makeNotes(s.dir, s.fs); err != nil {
			return err
		}
		// The first log of a store has no synced offsets, because Pebble begins this log before it knows the version
		// of its files. So the store is closed at once, and opened again with a second log.
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
	opts.Cache.Unref() // the DB holds its own reference to the cache
	if err != nil {
		scheduler.Unregister()
	}
	if failed := s.guard.failed.Load(); failed != nil {
		if err == nil {
			_ = s.db.Close() // the store has failed, so all writes of Close go to memory
		}
		return failed.Cause
	}
	if details := errors.GetAllDetails(err); len(details) > 0 {
		// The details say, for example, which log was read and at which offset.
		err = fmt.Errorf("%w (%s)", err, strings.Join(details, "; "))
	}
	return err
}

// openPebble opens the engine. If Pebble meets an error and cannot continue, it panics. openPebble returns such a panic
// as an error.
func openPebble(dir string, opts *pebble.Options) (db *pebble.DB, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	return pebble.Open(dir, opts)
}

// Close closes the store. It does not flush memtables, because their data is in the log. The caller must have closed
// every iterator and snapshot.
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

// Recovered reports whether the store was not closed in an orderly way before this Open, because its process was
// killed or because it is a checkpoint.
func (s *Store) Recovered() bool { return s.recovered }

// OnFailure sets a function that is called once if the store fails. A failed store can no longer promise to keep what
// it writes, and all its methods return an error. f may be called while locks of the engine are held, so f must not
// use the store.
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
