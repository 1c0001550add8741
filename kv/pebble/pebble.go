// Package pebble is the embedded engine: kv on one directory, kept by Pebble.
//
// It owns the layout of the data directory and how Pebble is set up: keys order
// by bytes, bloom filters are built on logical keys (what comes before mvcc's
// version suffix), commits from many goroutines share one sync of the
// write-ahead log. It promises that a directory which is not Crowfoot's, or is
// damaged, is refused and left as it was, and that two processes never share
// one. It leaves out versions, timestamps and locks: they belong to the layers
// above.
//
// A data directory holds, beside Pebble's own files, one named CROWFOOT that
// says which format the rest has (see format.go). The file system is passed in:
// vfs.Default, or a vfs.MemFS for a store in memory or for crash tests.
//
// Imports of this module: kv, memory, stats/cpu.
package pebble

import (
	"fmt"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/crowfoot-db/crowfoot/kv"
	"github.com/crowfoot-db/crowfoot/memory"
)

// Store is a kv.Store in one directory.
type Store struct {
	db     *pebble.DB
	lock   *pebble.Lock
	dir    string
	fs     vfs.FS
	format kv.Format

	// writes counts batches applied; an iterator is worth keeping until it changes.
	writes atomic.Uint64
	idle   iterators
	work   work
}

var _ kv.Store = (*Store)(nil)

// Open opens the store in dir, making the directory and the store if there is none. A store of an older format keeps it until Upgrade.
// It keeps as many blocks in memory as the smallest server does.
func Open(dir string, fs vfs.FS) (*Store, error) {
	return OpenWithCache(dir, fs, memory.Divide(memory.MinBytes).BlockCache)
}

// OpenWithCache is Open with a cache of so many bytes of decompressed blocks.
func OpenWithCache(dir string, fs vfs.FS, cacheBytes int64) (*Store, error) {
	fs = keepNames(fs)
	lock, found, err := claim(dir, fs)
	if err != nil {
		return nil, err
	}
	s := &Store{lock: lock, dir: dir, fs: fs, format: found.format}
	opts := options(fs, cacheBytes, &s.work)
	opts.Lock = lock
	opts.FormatMajorVersion = engineVersions[found.format]
	opts.ErrorIfNotExists = found.store
	opts.ErrorIfExists = !found.store
	db, err := pebble.Open(dir, opts)
	opts.Cache.Unref() // the DB holds its own reference
	if err != nil {
		_ = lock.Close()
		return nil, fmt.Errorf("data directory %s cannot be opened: it is damaged or incomplete; nothing in it was overwritten: %w", dir, err)
	}
	s.db = db
	return s, nil
}

// Close flushes and closes the store. Every iterator and snapshot must have been closed.
func (s *Store) Close() error {
	s.idle.close()
	err := s.db.Close()
	if lockErr := s.lock.Close(); err == nil {
		err = lockErr
	}
	if err != nil {
		return fmt.Errorf("close store: %w", err)
	}
	return nil
}

// NewIter implements kv.Reader.
func (s *Store) NewIter(lower, upper []byte) (kv.Iterator, error) {
	return newIter(s.db, lower, upper)
}

// Snapshot implements kv.Store.
func (s *Store) Snapshot() kv.Snapshot {
	return snapshot{s.db.NewSnapshot()}
}

type snapshot struct{ *pebble.Snapshot }

func (s snapshot) NewIter(lower, upper []byte) (kv.Iterator, error) {
	return newIter(s.Snapshot, lower, upper)
}

// ApproximateSize implements kv.Store. What is still in memory counts too.
func (s *Store) ApproximateSize(lower, upper []byte) (uint64, error) {
	size, err := s.db.EstimateDiskUsage(lower, upper)
	if err != nil {
		return 0, fmt.Errorf("estimate size: %w", err)
	}
	return size, nil
}
