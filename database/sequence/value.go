package sequence

import (
	"math/bits"

	"github.com/crowfoot-db/crowfoot/schema"
)

// valueBits is how many bits a value has: the sign is not among them.
const valueBits = 63

// reverse is the value of a counter, and the counter of a value: its low 63 bits in the opposite order.
func reverse(n int64) int64 { return int64(bits.Reverse64(uint64(n)) >> 1) }

// following is the first counter at or after from whose value the generator does not pass over; ok is false if there is none.
//
// The values that are wanted are those below SkipMin and those above SkipMax. Both are unions of at most 63 ranges that have their first p bits in common, for
// some p; so the counters of such a range are those with certain last p bits, of which it is easy to say which one follows.
func following(g *schema.Generator, from int64) (to int64, ok bool) {
	if !g.Skips(reverse(from)) {
		return from, from < lastCounter
	}
	best := uint64(lastCounter)
	prefix := func(first uint64, free int) { // the range of values [first, first + 1<<free)
		last := uint64(1)<<(valueBits-free) - 1 // mask of the bits that its counters have in common
		c := uint64(from)&^last | uint64(reverse(int64(first)))
		if c < uint64(from) {
			c += last + 1
		}
		best = min(best, c)
	}
	for at, end := uint64(0), uint64(max(*g.SkipMin, 0)); at < end; {
		free := min(bits.TrailingZeros64(at), bits.Len64(end-at)-1, valueBits)
		prefix(at, free)
		at += 1 << free
	}
	for at, end := uint64(*g.SkipMax)+1, uint64(1)<<valueBits; at < end; {
		free := min(bits.TrailingZeros64(at), bits.Len64(end-at)-1, valueBits)
		prefix(at, free)
		at += 1 << free
	}
	return int64(best), best < lastCounter
}
