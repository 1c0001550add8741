package pebble

// A read whose block is not in the cache costs ten times one whose block is, most of it the system call
// that fetches the block from the operating system. So the cache grows with the machine, as databases' caches do
// (PostgreSQL's page suggests a quarter of memory, CockroachDB takes an eighth), but less,
// since this server shares laptops and CI containers with others. It takes memory only as blocks are read.
const (
	cacheShare    = 16
	minCacheBytes = 64 << 20
	// unknownCacheBytes is for systems that do not say how much memory there is.
	unknownCacheBytes = 320 << 20
)

// cacheBytes is how much memory decompressed blocks may take on a machine, or in a container, with so much memory.
func cacheBytes(memory uint64) int64 {
	if memory == 0 {
		return unknownCacheBytes
	}
	return max(int64(memory/cacheShare), minCacheBytes)
}
