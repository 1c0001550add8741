package mvcc

import "github.com/crowfoot-db/crowfoot/kv"

// Batch collects versions of the keys of one space. Commit makes all of them visible and durable in one step.
type Batch struct {
	versions *Versions
	b        kv.Batch
	key, val []byte // buffers in which Put and Delete make the stored form of a key and a value
}

// NewBatch returns an empty batch.
func (v *Versions) NewBatch() *Batch {
	return &Batch{versions: v, b: v.store.kv.NewBatch()}
}

// Put adds a version of key to the batch: the value val, written at ts.
func (b *Batch) Put(key, val []byte, ts Timestamp) error {
	b.key = b.versions.appendVersion(b.key[:0], key, ts)
	b.val = append(append(b.val[:0], liveMark), val...)
	return b.b.Put(b.key, b.val)
}

// Delete adds a tombstone of key at ts to the batch.
func (b *Batch) Delete(key []byte, ts Timestamp) error {
	b.key = b.versions.appendVersion(b.key[:0], key, ts)
	return b.b.Put(b.key, nil)
}

// Erase removes all versions of the keys in [start, end), so that reads in the past do not find them either. It serves
// to delete the data of dropped schema objects.
func (b *Batch) Erase(start, end []byte) error {
	return b.b.DeleteRange(b.versions.bound(nil, start), b.versions.end(nil, end))
}

// KV returns the kv.Batch that holds the versions. A caller may add other records to it, which are then committed
// together with the versions.
func (b *Batch) KV() kv.Batch { return b.b }

// Commit applies the batch and returns when it is durable.
func (b *Batch) Commit() error { return b.b.Commit() }

// CommitNoSync applies the batch and returns before it is durable. It is only for changes that can be made again after
// a crash.
func (b *Batch) CommitNoSync() error { return b.b.CommitNoSync() }

// Close must be called once, after Commit or instead of it.
func (b *Batch) Close() error { return b.b.Close() }
