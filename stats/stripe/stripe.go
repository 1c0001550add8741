// Package stripe chooses the part of a striped counter that a goroutine should use. A counter that every request
// changes has several parts (stripes), one for each processor, so that processors do not take its cache line from each
// other. A reader adds the stripes up.
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

// CacheLine is the size in bytes of a processor's cache line. Stripes are padded to it.
const CacheLine = 64

// Count is how many stripes of a counter this process uses: a power of two, at most Max.
var Count = func() int {
	n := 1
	for n < runtime.GOMAXPROCS(0) && n < Max {
		n *= 2
	}
	return n
}()

// Current returns the number of the current processor's stripe, from 0 to Count-1. It takes the number from a
// sync.Pool, whose objects stay with their processor most of the time.
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
