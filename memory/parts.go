package memory

// The constants by which Divide divides the memory of a process.
const (
	// EngineBytes is the memory of the storage engine's memtables and of the buffers of its flushes and compactions.
	// There are up to five memtables of 16 MiB: four wait for a flush, and one is being written. This memory is outside
	// of Go's heap, as the engine's block cache is.
	EngineBytes = 96 << 20

	// The block cache gets 1/blockCacheShare of the memory, but at least minBlockCacheBytes. Reading a block that is
	// not in the cache costs ten times as much as reading a cached block, mostly because of the system call that reads
	// the block from the operating system's cache. As the operating system caches blocks too, the share is smaller than
	// in other databases (PostgreSQL's manual suggests a quarter of the machine's memory). The cache takes memory only
	// as blocks are read.
	blockCacheShare    = 8
	minBlockCacheBytes = 64 << 20

	// 1/spareShare of the memory stays in reserve, because Go's memory limit is soft: for moments the heap exceeds the
	// limit, when requests allocate faster than the garbage collector frees. The reserve is also for memory that C's
	// allocator still holds after C code has freed it.
	spareShare = 10

	// analyzerBytes is the memory of one instance of the library that analyzes SQL, with a few schemas. It is a slice
	// of bytes in Go's heap. Heavy statements use further instances; their memory is part of Parts.Requests.
	analyzerBytes = 64 << 20

	// Prepared statements and sessions, which outlive requests, get 1/keptShare of the rest: Go's heap minus
	// analyzerBytes. That is enough for a few thousand statements for each GiB of the process's memory.
	keptShare = 16

	// Requests get 1/requestShare, that is half, of what remains of Go's heap after analyzerBytes and the share of
	// prepared statements and sessions are subtracted. The other half is for garbage, connections and schemas. Go
	// collects garbage more often as the heap comes near its limit; with half of the heap free, this takes little CPU
	// time.
	requestShare = 2
)

const (
	// MinBytes is the least memory in bytes that a process can be configured to use. With less, nothing would be left
	// for requests after the parts of fixed size.
	MinBytes = 512 << 20
	// By default a process uses 1/machineShare of the memory of the machine or container, because other processes need
	// memory too.
	machineShare = 2
	// unknownBytes is the memory in bytes that a process uses by default if the memory of the machine is not known.
	unknownBytes = 2 << 30
)

// Default returns how many bytes of memory a process may use if the user gives no number. machine is the memory of the
// machine or container in bytes, or 0 if that is not known.
func Default(machine int64) int64 {
	if machine == 0 {
		return unknownBytes
	}
	return max(machine/machineShare, MinBytes)
}

// Parts says how much memory in bytes each use within a process gets.
type Parts struct {
	BlockCache int64 // decompressed blocks that the storage engine caches
	Heap       int64 // all of Go's heap: the argument of debug.SetMemoryLimit
	Kept       int64 // part of Heap: the Budget of prepared statements and sessions
	Requests   int64 // part of Heap: the Budget of requests
}

// Divide divides the memory of a process, total bytes, among its uses.
func Divide(total int64) Parts {
	p := Parts{BlockCache: max(total/blockCacheShare, minBlockCacheBytes)}
	p.Heap = total - total/spareShare - EngineBytes - p.BlockCache
	rest := p.Heap - analyzerBytes
	p.Kept = rest / keptShare
	p.Requests = (rest - p.Kept) / requestShare
	return p
}
