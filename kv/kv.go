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

import "context"

// Reader reads one consistent state.
type Reader interface {
	// NewIter returns an iterator over keys in [lower, upper); it must be closed.
	// A nil bound means no bound.
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
	// PointIter returns an iterator that may only be used with SeekPrefixGE and Next. It sees every batch whose
	// Commit has returned. Engines may reuse closed ones for the next caller.
	PointIter() (Iterator, error)
	// RecentIter is PointIter for many seeks of keys that were written lately. It may leave out versions below oldest, which is a
	// timestamp as mvcc encodes it in keys. It shows all others.
	RecentIter(oldest uint64) (Iterator, error)
	// ChangedIter is NewIter for a reader that only wants versions at or above since, which is a timestamp as mvcc encodes it in keys. It
	// may leave out older ones, and shows all others. The cost is proportional to the amount of data newer than since, as far as the engine
	// can tell.
	ChangedIter(lower, upper []byte, since uint64) (Iterator, error)
	// Snapshot returns the state as it is now.
	Snapshot() Snapshot
	// NewBatch returns an empty batch.
	NewBatch() Batch
	// ApproximateSize estimates the size in bytes of [lower, upper) in tables on disk. It does not count data that is not yet in tables.
	ApproximateSize(lower, upper []byte) (uint64, error)
	// Flush writes the data that is only in the log and in memory to tables, and waits for it. It does nothing if that is less than
	// atLeast bytes.
	Flush(ctx context.Context, atLeast uint64) error
	// FreeSpace begins to free the disk space of data in [lower, upper) that a committed DeleteRange has deleted, and does not wait for
	// the end. Without the call, the space may stay taken until much more has been written. It does nothing for little data.
	FreeSpace(lower, upper []byte)
	// Format returns the format of the stored data. A new store has LastFormat.
	Format() Format
	// Upgrade takes the store to the next format: it calls run, which rewrites the records, and then stores the format durably. If that
	// is cut short, the store still has its old format, and Upgrade is called again when the store is next opened. So run must accept
	// records that it has already rewritten. From the moment when run begins, a release that does not know the next format refuses the
	// store.
	Upgrade(next Format, run func() error) error
	// Writable returns nil if the store accepts writes. Otherwise the error says why it refuses them for the time being, for example
	// because the disk is full. Reads go on.
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
	// UseReserve marks a small batch that the store must accept while the disk is nearly full: reads need it, or it makes room, or it
	// is a record about a database.
	UseReserve()
	// Commit applies the batch and returns when the batch is durable. The batch must not be used afterwards. After an error that is not
	// ErrRefused, it is unknown what the store has kept, and the store accepts no other batch. Many goroutines may commit at once, and
	// engines sync their batches together.
	Commit() error
	// CommitNoSync applies the batch and does not wait until it is durable. It is for changes that can be repeated, such as garbage
	// collection.
	CommitNoSync() error
	Close() error
}
