package database

import "sync"

// cacheEntries is how many entries one generation of a cache holds. A prepared statement is some
// 10 to 100 KiB, so a full cache of them is some hundred MiB at the very most.
const cacheEntries = 2000

// cache keeps what was used lately, in two generations: when the young one is
// full it becomes the old one, and what nobody asked for meanwhile is dropped.
// Its zero value is ready to use.
type cache[T any] struct {
	mu         sync.RWMutex
	young, old map[string]T
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

// find is get with a key that need not be a string yet; it leaves the generations as they are.
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
	if c.young == nil || len(c.young) >= cacheEntries {
		c.old, c.young = c.young, make(map[string]T)
	}
	c.young[key] = v
}
