package stats

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// lanes is how many parts a counter has that all processors count in: a power of two.
var lanes = func() int {
	n := 1
	for n < runtime.GOMAXPROCS(0) && n < maxShards {
		n *= 2
	}
	return n
}()

// lane is the part that this processor has mostly to itself. What another one has counted in is in the other's cache, and to
// fetch it takes longer than to count. An object of a sync.Pool stays with its processor: here it is a number.
func lane() int {
	n := laneNumbers.Get().(*int)
	laneNumbers.Put(n)
	return *n
}

var (
	laneNumbers = sync.Pool{New: func() any {
		n := int(laneLast.Add(1)) & (lanes - 1)
		return &n
	}}
	laneLast atomic.Uint32
)

// cacheLine is how much memory processors take from each other at once.
const cacheLine = 64
