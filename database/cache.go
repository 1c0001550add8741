package database

import "sync"

// Bounds of one generation of a cache. A cache has two generations.
const (
	cacheEntries = 2000
	cacheBytes   = 64 << 20

	// An entry is estimated to take entryBytes and entryBytesPer for each byte of its key. A prepared statement takes
	// about 10 KiB, and a few words for each name and literal of a long text.
	entryBytes    = 8 << 10
	entryBytesPer = 32 // bytes for each byte of the key
)

// cache keeps recently used entries in two generations. When the young generation is full, the cache drops the old
// generation and makes the young one the old one. A look-up that finds an entry in the old generation moves it to the
// young one. The cache charges its entries to memory, unless memory is nil. The zero value is ready to use.
type cache[T any] struct {
	memory *cacheBudget

	mu         sync.RWMutex
	young, old map[string]T
	bytes      [2]int64 // of young and old
	closed     bool
}

func (c *cache[T]) get(key string) (T, bool) {
	c.mu.RLock()
	v, ok := c.young[key]
	if ok {
		c.mu.RUnlock()
		return v, true
	}
	_, ok = c.old[key]
	c.mu.RUnlock()
	if !ok {
		return v, false
	}
	return c.rejuvenate(key)
}

// rejuvenate moves an entry of the old generation to the young one.
func (c *cache[T]) rejuvenate(key string) (T, bool) {
	c.mu.Lock()
	v, ok := c.old[key]
	freed := int64(0)
	if ok {
		delete(c.old, key)
		c.bytes[1] -= entrySize(key)
		freed = c.insert(key, v)
	} else {
		v, ok = c.young[key] // another goroutine was faster
	}
	c.mu.Unlock()
	c.memory.free(freed)
	return v, ok
}

// find is get with a key in bytes, which saves the conversion to a string. It does not move entries between
// generations.
func (c *cache[T]) find(key []byte) (T, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	v, ok := c.young[string(key)]
	if !ok {
		v, ok = c.old[string(key)]
	}
	return v, ok
}

// put adds an entry, unless there is no memory for it.
func (c *cache[T]) put(key string, v T) {
	size := entrySize(key)
	if !c.memory.reserve(c, size) {
		return
	}
	c.mu.Lock()
	closed, freed := c.closed, size
	if !closed {
		freed = c.remove(key) + c.insert(key, v)
	}
	c.mu.Unlock()
	c.memory.free(freed)
	if closed {
		c.memory.leave(c)
	}
}

func entrySize(key string) int64 { return entryBytes + entryBytesPer*int64(len(key)) }

// remove removes an entry from both generations, and returns the bytes that it has freed. The caller holds c.mu.
func (c *cache[T]) remove(key string) (dropped int64) {
	for i, entries := range []map[string]T{c.young, c.old} {
		if _, ok := entries[key]; ok {
			delete(entries, key)
			c.bytes[i] -= entrySize(key)
			dropped += entrySize(key)
		}
	}
	return dropped
}

// insert puts an entry into the young generation, and returns the bytes that it has freed by dropping the old one. The
// caller holds c.mu.
func (c *cache[T]) insert(key string, v T) (dropped int64) {
	size := entrySize(key)
	if c.young == nil || len(c.young) >= cacheEntries || c.bytes[0]+size > cacheBytes {
		dropped = c.rotate()
	}
	c.young[key] = v
	c.bytes[0] += size
	return dropped
}

// rotate drops the old generation, begins a new young one, and returns the bytes that it has freed. The caller holds
// c.mu.
func (c *cache[T]) rotate() (dropped int64) {
	dropped = c.bytes[1]
	c.old, c.young = c.young, make(map[string]T)
	c.bytes = [2]int64{0, c.bytes[0]}
	return dropped
}

// age implements aging: it drops the entries that were not used since the last call.
func (c *cache[T]) age() (dropped int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rotate()
}

// close drops all entries. The cache keeps no entries from now on.
func (c *cache[T]) close() {
	c.mu.Lock()
	dropped := c.bytes[0] + c.bytes[1]
	c.young, c.old, c.bytes, c.closed = nil, nil, [2]int64{}, true
	c.mu.Unlock()
	c.memory.free(dropped)
	c.memory.leave(c)
}
