package stats

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// stripes is how many parts a counter has that all processors count in: a power of two.
var stripes = func() int {
	n := 1
	for n < runtime.GOMAXPROCS(0) && n < maxShards {
		n *= 2
	}
	return n
}()

// stripe is the part that this processor has mostly to itself. What another one has counted in is in the other's cache, and to
// fetch it takes longer than to count. An object of a sync.Pool stays with its processor: here it is a number.
func stripe() int {
	n := stripeNumbers.Get().(*int)
	stripeNumbers.Put(n)
	return *n
}

var (
	stripeNumbers = sync.Pool{New: func() any {
		n := int(stripeLast.Add(1)) & (stripes - 1)
		return &n
	}}
	stripeLast atomic.Uint32
)

// cacheLine is how much memory processors take from each other at once.
const cacheLine = 64
