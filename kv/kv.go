// Package kv is the lowest interface: an ordered map from bytes to bytes with
// atomic durable batches and consistent snapshots. kv/pebble is the embedded
// engine; kv/tikv will be the distributed one.
//
// Keys order by bytes.Compare. Engines may know the form mvcc gives to keys
// (see mvcc: the last byte of a key tells the length of its version suffix) to
// build bloom filters on what comes before, and to know which versions are old;
// they must not depend on it for order.
//
// Imports of this module: nothing.
package kv

import (
	"context"
	"errors"
)

// ErrRefused is in the chain of the error of a Commit that the store does not let in for the time being: the disk is full, say. Nothing of
// the batch was written, and later ones may be let in.
var ErrRefused = errors.New("the store takes no batch")

// Reader reads one consistent state.
type Reader interface {
	// NewIter returns an iterator over keys in [lower, upper); it must be closed.
	// A nil bound is none.
	NewIter(lower, upper []byte) (Iterator, error)
}

// Iterator walks over keys. It is positioned by one of the Seeks or First or Last;
// Key and Value are good until the next move.
type Iterator interface {
	SeekGE(key []byte) bool
	// SeekPrefixGE is SeekGE for a reader that only wants keys with key's logical key; it may use bloom filters.
	SeekPrefixGE(key []byte) bool
	SeekLT(key []byte) bool
	First() bool
	Last() bool
	Next() bool
	// NextPrefix moves to the first key with another logical key. Not after SeekPrefixGE or a move backwards.
	NextPrefix() bool
	Prev() bool
	Valid() bool
	Key() []byte
	Value() ([]byte, error)
	Error() error
	Close() error
}

// Store is an open store.
type Store interface {
	Reader
	// PointIter returns an iterator that is only used with SeekPrefixGE and Next. It sees every batch whose
	// Commit has returned. Engines keep closed ones for the next caller.
	PointIter() (Iterator, error)
	// RecentIter is PointIter for many seeks of keys that were written lately: it may leave out keys whose version is below oldest, a timestamp as mvcc
	// puts it into keys. Of the others it shows what PointIter does.
	RecentIter(oldest uint64) (Iterator, error)
	// ChangedIter is NewIter for a reader that wants keys with a version at or above since alone, a timestamp as mvcc puts it into keys. It may leave
	// out others; of those that are wanted it shows what NewIter does. It costs in proportion to what is newer than since, as far as the engine knows that.
	ChangedIter(lower, upper []byte, since uint64) (Iterator, error)
	// Snapshot returns the state as it is now.
	Snapshot() Snapshot
	// NewBatch returns an empty batch.
	NewBatch() Batch
	// ApproximateSize estimates the bytes in [lower, upper), as they lie in tables on disk. What has not been written to tables does not count.
	ApproximateSize(lower, upper []byte) (uint64, error)
	// Flush writes to tables what is in the log and in memory only, if that is atLeast bytes or more, and waits for it.
	Flush(ctx context.Context, atLeast uint64) error
	// FreeSpace begins to give the file system back what a committed DeleteRange has deleted in [lower, upper), and does not wait for the end of that.
	// Otherwise that may last until much more has been written. It does nothing for little data.
	FreeSpace(lower, upper []byte)
	// Format is the form that what is stored has. A new store has the last.
	Format() Format
	// Upgrade takes the store to the next format: it runs what turns the records into that format's, and then stores the format, durably.
	// If that is cut short, the store has its old format still, and Upgrade is run again when it is next opened: run must be able
	// to find its own work half done. A release that does not know the next format refuses the store from the moment when run begins.
	Upgrade(next Format, run func() error) error
	// Writable says why the store takes no writes for the time being, while reads go on: the disk is full, say. It is nil if the store
	// takes them.
	Writable() error
	Close() error
}

// Snapshot is a Reader that must be closed.
type Snapshot interface {
	Reader
	Close() error
}

// Batch collects writes that become visible, and durable, together.
type Batch interface {
	Put(key, value []byte) error
	Delete(key []byte) error
	DeleteRange(lower, upper []byte) error
	// Len is the number of bytes collected.
	Len() int
	// UseReserve says that the batch is small and must be let in while the disk is nearly full: reads need it, or it makes room, or it
	// is a record about a database.
	UseReserve()
	// Commit applies the batch; it returns when the batch is durable. The batch may not be used afterwards. If
	// the error is not ErrRefused, it is unknown what was kept, and the store takes no other batch.
	// Many goroutines may commit at once: engines sync them together.
	Commit() error
	// CommitNoSync applies it without waiting for durability: for what can be done again, such as garbage collection.
	CommitNoSync() error
	Close() error
}
