package memory

// These constants determine how Divide divides the memory of a process.
const (
	// EngineBytes are the storage engine's memtables (four of 16 MiB that wait for a flush and one that is written) and the buffers of
	// its flushes and compactions. They are outside of Go's heap, as its block cache is.
	EngineBytes = 96 << 20

	// A read whose block is not in the cache costs ten times as much as one whose block is. Most of that is the system call that reads the block
	// from the operating system. So the cache is 1/blockCacheShare of the memory. That is less than in other databases (PostgreSQL's manual suggests
	// a quarter of the machine's memory). The cache takes memory only as blocks are read.
	blockCacheShare    = 8
	minBlockCacheBytes = 64 << 20

	// 1/spareShare of the memory is not used. Go's memory limit is soft: its heap exceeds it for moments when requests allocate faster than the
	// garbage collector frees. And C's allocator keeps some memory that was freed.
	spareShare = 10

	// analyzerBytes is the size of one instance of the library that analyzes SQL, with a few schemas. Its memory is a slice of bytes in Go's heap.
	// Further instances, for heavy statements, are charged to the budget.
	analyzerBytes = 64 << 20

	// Prepared statements and sessions, which outlive requests, get 1/keptShare of the rest of Go's heap: some thousand statements for each GiB of
	// the process.
	keptShare = 16

	// Requests get 1/requestShare of the rest after that. The other half is for garbage, connections and schemas. Go collects garbage more often as
	// the heap comes near its limit, and with half of it free, that stays cheap.
	requestShare = 2
)

const (
	// MinBytes is the least memory that a process may be configured to use. With less there is no room for requests beside the fixed parts.
	MinBytes = 512 << 20
	// By default a process uses 1/machineShare of the memory of the machine or container, since other processes use it, too.
	machineShare = 2
	// unknownBytes is the default if the memory of the machine is not known.
	unknownBytes = 2 << 30
)

// Default returns how many bytes a process uses by default. machine is the memory of the machine or container in bytes, or 0 if it is not known.
func Default(machine int64) int64 {
	if machine == 0 {
		return unknownBytes
	}
	return max(machine/machineShare, MinBytes)
}

// Parts are the parts of a process's memory, in bytes.
type Parts struct {
	BlockCache int64 // decompressed blocks of the storage engine
	Heap       int64 // Go's heap: debug.SetMemoryLimit
	Kept       int64 // part of the heap: the Budget of prepared statements and sessions
	Requests   int64 // part of the heap: the Budget of requests
}

// Divide divides the memory that a process may use, in bytes.
func Divide(total int64) Parts {
	p := Parts{BlockCache: max(total/blockCacheShare, minBlockCacheBytes)}
	p.Heap = total - total/spareShare - EngineBytes - p.BlockCache
	rest := p.Heap - analyzerBytes
	p.Kept = rest / keptShare
	p.Requests = (rest - p.Kept) / requestShare
	return p
}
