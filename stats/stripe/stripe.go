// Package stripe says which part of a striped counter a goroutine should use. A
// counter that every request changes is kept as several stripes, one for each
// processor, so that processors do not take its cache line from each other; a reader sums the stripes.
//
// Imports of this module: nothing.
package stripe

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// Max is how many stripes a counter has at most.
const Max = 8

// CacheLine is how many bytes of memory processors take from each other at once: the padding between stripes.
const CacheLine = 64

// Count is how many stripes a counter needs in this process: a power of two, at most Max.
var Count = func() int {
	n := 1
	for n < runtime.GOMAXPROCS(0) && n < Max {
		n *= 2
	}
	return n
}()

// Current is the number of the stripe, from 0 to Count-1, that belongs to the current processor. An object of a sync.Pool
// stays with its processor most of the time, and here that object is the stripe's number.
func Current() int {
	n := numbers.Get().(*int)
	numbers.Put(n)
	return *n
}

var (
	numbers = sync.Pool{New: func() any {
		n := int(last.Add(1)) & (Count - 1)
		return &n
	}}
	last atomic.Uint32
)
