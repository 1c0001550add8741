package database

import "sync"

// Bounds of one generation of a cache, of which there are two.
const (
	cacheEntries = 2000
	cacheBytes   = 64 << 20

	// An estimate of an entry's memory. A prepared statement takes about 10 KiB, and a few words for each name and literal of a long text.
	entryBytes    = 8 << 10
	entryBytesPer = 32 // byte of its key
)

// cache keeps entries that were used lately, in two generations. When the young
// generation is full it becomes the old one, and the old one is dropped; an entry
// of the old generation that is asked for moves to the young one. What it keeps
// is charged to memory, unless that is nil. The zero value is ready to use.
type cache[T any] struct {
	memory *keeper

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

// find is get for a key that is not a string yet. It does not move entries between generations.
func (c *cache[T]) find(key []byte) (T, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	v, ok := c.young[string(key)]
	if !ok {
		v, ok = c.old[string(key)]
	}
	return v, ok
}

// put keeps an entry, if there is memory for it.
func (c *cache[T]) put(key string, v T) {
	size := entrySize(key)
	if !c.memory.take(c, size) {
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

// remove removes an entry of either generation. Its result is the size of what was dropped; c.mu is held.
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

// insert puts an entry into the young generation. Its result is the size of what was dropped; c.mu is held.
func (c *cache[T]) insert(key string, v T) (dropped int64) {
	size := entrySize(key)
	if c.young == nil || len(c.young) >= cacheEntries || c.bytes[0]+size > cacheBytes {
		dropped = c.turn()
	}
	c.young[key] = v
	c.bytes[0] += size
	return dropped
}

// turn begins a generation. Its result is the size of what was dropped; c.mu is held.
func (c *cache[T]) turn() (dropped int64) {
	dropped = c.bytes[1]
	c.old, c.young = c.young, make(map[string]T)
	c.bytes = [2]int64{0, c.bytes[0]}
	return dropped
}

// age implements aging: it drops what was not used since it was called last.
func (c *cache[T]) age() (dropped int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.turn()
}

// close drops all entries; none is kept from now on.
func (c *cache[T]) close() {
	c.mu.Lock()
	dropped := c.bytes[0] + c.bytes[1]
	c.young, c.old, c.bytes, c.closed = nil, nil, [2]int64{}, true
	c.mu.Unlock()
	c.memory.free(dropped)
	c.memory.leave(c)
}
