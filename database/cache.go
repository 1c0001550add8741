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
// of the old generation that is asked for moves to the young one. The zero value
// is ready to use.
type cache[T any] struct {
	mu         sync.RWMutex
	young, old map[string]T
	bytes      int // of young
}

func (c *cache[T]) get(key string) (T, bool) {
	c.mu.RLock()
	v, ok := c.young[key]
	if ok {
		c.mu.RUnlock()
		return v, true
	}
	v, ok = c.old[key]
	c.mu.RUnlock()
	if ok {
		c.put(key, v)
	}
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

func (c *cache[T]) put(key string, v T) {
	c.mu.Lock()
	defer c.mu.Unlock()
	size := entryBytes + entryBytesPer*len(key)
	if c.young == nil || len(c.young) >= cacheEntries || c.bytes+size > cacheBytes {
		c.old, c.young, c.bytes = c.young, make(map[string]T), 0
	}
	c.young[key] = v
	c.bytes += size
}
