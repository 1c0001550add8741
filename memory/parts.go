package memory

// The parts of a process's memory, beside those that follow from its size.
const (
	// EngineBytes are the storage engine's memtables (four of 16 MiB that wait for a flush and one that is written) and the buffers of
	// its flushes and compactions. They are outside of Go's heap, as its block cache is.
	EngineBytes = 96 << 20

	// A read whose block is not in the cache costs ten times one whose block is, most of it the system call that fetches the block from the
	// operating system. So the cache grows with the memory, but takes less of it than other databases' caches do (PostgreSQL's page suggests a quarter
	// of the machine's). It takes memory only as blocks are read.
	blockCacheShare    = 8
	minBlockCacheBytes = 64 << 20

	// 1/spareShare is left: Go's limit is soft, and its heap is above it for moments while requests allocate faster than garbage is found; the
	// allocator of C keeps some of what was freed.
	spareShare = 10

	// analyzerBytes is what an instance of the library that analyzes SQL takes with a few schemas. Its memory is a slice of bytes in Go's heap. Further
	// instances, for heavy statements, are charged to the budget.
	analyzerBytes = 64 << 20

	// Prepared statements and sessions, which stay when a request has ended, get 1/keptShare of the rest of Go's heap: some thousand statements for
	// each GiB of the process.
	keptShare = 16

	// Requests get 1/requestShare of what is left then. The garbage that they leave, connections and schemas have the other half: Go collects
	// garbage more often as the heap comes near its limit, and half is room enough for that to stay cheap.
	requestShare = 2
)

const (
	// MinBytes is the least that a process may be told to take: below it there is no room for requests beside the fixed parts.
	MinBytes = 512 << 20
	// By default a process takes 1/machineShare of the machine or container, which others use too.
	machineShare = 2
	// unknownBytes is for systems that do not say how much memory there is.
	unknownBytes = 2 << 30
)

// Default is how many bytes a process takes on a machine or in a container with so many, 0 if that is not known.
func Default(machine int64) int64 {
	if machine == 0 {
		return unknownBytes
	}
	return max(machine/machineShare, MinBytes)
}

// Parts are what a process does with its memory, in bytes.
type Parts struct {
	BlockCache int64 // decompressed blocks of the storage engine
	Heap       int64 // Go's heap: debug.SetMemoryLimit
	Kept       int64 // of the heap: the Budget of prepared statements and sessions
	Requests   int64 // of the heap: the Budget of requests
}

// Divide divides what a process may take.
func Divide(total int64) Parts {
	p := Parts{BlockCache: max(total/blockCacheShare, minBlockCacheBytes)}
	p.Heap = total - total/spareShare - EngineBytes - p.BlockCache
	rest := p.Heap - analyzerBytes
	p.Kept = rest / keptShare
	p.Requests = (rest - p.Kept) / requestShare
	return p
}
