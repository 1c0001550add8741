package cache

import "sync"

// Limits of one generation of a cache, and the estimated size of an entry. A cache has two generations.
const (
	Entries  = 2000     // largest number of entries in one generation
	maxBytes = 64 << 20 // largest estimated size of all entries in one generation

	// The size of an entry is estimated as EntryBytes, plus entryBytesPer for each byte of its key. The reason: an
	// entry is usually a prepared statement. It takes about 10 KiB, and if its SQL text is long, a few machine words
	// more for each name and literal in the text.
	EntryBytes    = 8 << 10
	entryBytesPer = 32 // estimated bytes of an entry for each byte of its key
)

// Cache keeps recently used entries in two generations. When the young generation is full, the cache drops the old
// generation and makes the young one the old one. A look-up that finds an entry in the old generation moves it to the
// young one. The cache charges its entries to Budget, unless Budget is nil. The zero value is ready to use.
type Cache[T any] struct {
	Budget *Budget

	mu         sync.RWMutex
	young, old map[string]T
	bytes      [2]int64 // estimated sizes of all entries in the young and in the old generation
	closed     bool
}

// Get returns the entry of a key, if the cache has it.
func (c *Cache[T]) Get(key string) (T, bool) {
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
func (c *Cache[T]) rejuvenate(key string) (T, bool) {
	c.mu.Lock()
	v, ok := c.old[key]
	freed := int64(0)
	if ok {
		delete(c.old, key)
		c.bytes[1] -= entrySize(key)
		freed = c.insert(key, v)
	} else {
		v, ok = c.young[key] // another goroutine may have moved the entry already
	}
	c.mu.Unlock()
	c.Budget.free(freed)
	return v, ok
}

// Find is Get with a key in bytes, which saves the conversion to a string. Unlike Get, it does not move the entry to
// the young generation.
func (c *Cache[T]) Find(key []byte) (T, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	v, ok := c.young[string(key)]
	if !ok {
		v, ok = c.old[string(key)]
	}
	return v, ok
}

// Put adds an entry. If there is not enough memory, or the cache is closed, it does nothing.
func (c *Cache[T]) Put(key string, v T) {
	size := entrySize(key)
	if !c.Budget.reserve(c, size) {
		return
	}
	c.mu.Lock()
	closed, freed := c.closed, size
	if !closed {
		freed = c.remove(key) + c.insert(key, v)
	}
	c.mu.Unlock()
	c.Budget.free(freed)
	if closed {
		c.Budget.leave(c)
	}
}

// Len returns the number of entries in both generations.
func (c *Cache[T]) Len() int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return len(c.young) + len(c.old)
}

func entrySize(key string) int64 { return EntryBytes + entryBytesPer*int64(len(key)) }

// remove removes the entry of a key from both generations, and returns the number of bytes that it took. The caller
// holds c.mu.
func (c *Cache[T]) remove(key string) (dropped int64) {
	for i, entries := range []map[string]T{c.young, c.old} {
		if _, ok := entries[key]; ok {
			delete(entries, key)
			c.bytes[i] -= entrySize(key)
			dropped += entrySize(key)
		}
	}
	return dropped
}

// insert puts an entry into the young generation. If that generation is full, it calls rotate first. It returns the
// number of bytes that rotate has freed. The caller holds c.mu.
func (c *Cache[T]) insert(key string, v T) (dropped int64) {
	size := entrySize(key)
	if c.young == nil || len(c.young) >= Entries || c.bytes[0]+size > maxBytes {
		dropped = c.rotate()
	}
	c.young[key] = v
	c.bytes[0] += size
	return dropped
}

// rotate drops the old generation, makes the young generation the old one, and begins an empty young one. It returns
// the number of bytes that the dropped entries took. The caller holds c.mu.
func (c *Cache[T]) rotate() (dropped int64) {
	dropped = c.bytes[1]
	c.old, c.young = c.young, make(map[string]T)
	c.bytes = [2]int64{0, c.bytes[0]}
	return dropped
}

// age implements aging: it drops the old generation and makes the young generation the old one.
func (c *Cache[T]) age() (dropped int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rotate()
}

// Close drops all entries. The cache keeps no entries from now on.
func (c *Cache[T]) Close() {
	c.mu.Lock()
	dropped := c.bytes[0] + c.bytes[1]
	c.young, c.old, c.bytes, c.closed = nil, nil, [2]int64{}, true
	c.mu.Unlock()
	c.Budget.free(dropped)
	c.Budget.leave(c)
}
