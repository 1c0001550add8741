// Package kv is the interface to the storage engine: an ordered map from bytes to bytes with atomic durable batches and
// consistent snapshots. Package kv/pebble implements it on a local directory; kv/tikv will be a distributed engine.
//
// Keys are in the order of bytes.Compare. Engines may use the form that package mvcc gives to keys, where the last byte
// tells the length of the version suffix. They use it to build bloom filters on the bytes before the suffix, and to
// find out how old versions are. The order of keys must not depend on this form.
//
// Imports of this module: nothing.
package kv

import "context"

// Reader makes iterators. Each iterator reads one consistent state of the store.
type Reader interface {
	// NewIter returns an iterator over keys in [lower, upper); it must be closed.
	// A nil bound means no bound.
	NewIter(lower, upper []byte) (Iterator, error)
}

// Iterator walks over keys. SeekGE, SeekPrefixGE, SeekLT, First or Last positions it. Key and Value are valid until
// the next move.
type Iterator interface {
	SeekGE(key []byte) bool
	// SeekPrefixGE moves like SeekGE, for a reader that only wants the versions of one logical key. The logical key is
	// the parameter key without its version suffix. SeekPrefixGE may use bloom filters, so it may miss keys with other
	// logical keys.
	SeekPrefixGE(key []byte) bool
	SeekLT(key []byte) bool
	First() bool
	Last() bool
	Next() bool
	// NextPrefix moves to the first key with another logical key. It must not be called after SeekPrefixGE or after a
	// move backwards.
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
	// PointIter returns an iterator that may only be used with SeekPrefixGE and Next. It sees every batch whose Commit
	// has returned. An engine may hand out a closed iterator again to a later caller.
	PointIter() (Iterator, error)
	// RecentIter returns an iterator as PointIter does, for a reader that seeks many keys which were written lately.
	// The parameter oldest is a timestamp of package mvcc. The iterator may leave out versions with lower timestamps.
	// It shows all other versions.
	RecentIter(oldest uint64) (Iterator, error)
	// ChangedIter returns an iterator as NewIter does, for a reader that only wants new versions. The parameter since
	// is a timestamp of package mvcc. The iterator may leave out versions with lower timestamps. It shows all other
	// versions. An engine skips old data where it can, so the cost is roughly proportional to the amount of new data.
	ChangedIter(lower, upper []byte, since uint64) (Iterator, error)
	// Snapshot returns a view of the store as it is at this moment.
	Snapshot() Snapshot
	// NewBatch returns an empty batch.
	NewBatch() Batch
	// ApproximateSize estimates the size in bytes of the keys and values in [lower, upper) in table files on disk. It
	// does not count data that is not yet in table files.
	ApproximateSize(lower, upper []byte) (uint64, error)
	// Flush writes the data that is only in the log and in memory to table files, and returns when that is done. It
	// does nothing if there are fewer than atLeast bytes of such data.
	Flush(ctx context.Context, atLeast uint64) error
	// FreeSpace begins to free the disk space of data in [lower, upper) that a committed DeleteRange has deleted, and
	// returns at once. Without this call, the data may stay on disk until much more has been written. FreeSpace does
	// nothing if there is little data.
	FreeSpace(lower, upper []byte)
	// Format returns the format of the stored data. The format of a new store is LastFormat.
	Format() Format
	// Upgrade converts the store to the next format: it calls the function run, which rewrites the records, and then
	// stores the format durably. If the process ends in between, the store keeps its old format, and the caller must
	// call Upgrade again after the next Open. So the function must accept records that were already rewritten. From
	// the moment when Upgrade calls it, a release that does not know the next format refuses the store.
	Upgrade(next Format, run func() error) error
	// Writable returns nil if the store accepts writes. Otherwise it returns an error that says why the store refuses
	// writes for the time being, for example because the disk is full. Reads still work then.
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
	// Len returns the size of the batch in bytes.
	Len() int
	// UseReserve marks a small batch that the store must accept even while the disk is nearly full. It is for batches
	// that reads need, that free disk space, or that hold a record about a database.
	UseReserve()
	// Commit applies the batch and returns when the batch is durable. The batch must not be used afterwards. After an
	// error other than ErrRefused, it is unknown whether the batch was written, and the store accepts no other batch.
	// Many goroutines may commit at once, and engines sync their batches together.
	Commit() error
	// CommitNoSync applies the batch and returns before it is durable. It is only for changes that can be made again
	// after a crash, such as garbage collection. A crash may lose only the last of such batches: if a batch is there,
	// each one whose commit returned before it began is there, too. A later Commit makes all of them durable.
	CommitNoSync() error
	Close() error
}
