package sequence

import (
	"math/bits"

	"github.com/crowfoot-db/crowfoot/schema"
)

// valueBits is the number of bits of a value, without the sign bit.
const valueBits = 63

// reverse reverses the order of the low 63 bits of n. It turns a counter into its value, and a value into its counter.
func reverse(n int64) int64 { return int64(bits.Reverse64(uint64(n)) >> 1) }

// following returns the smallest counter whose value the generator does not skip, among the counters that are at least
// as large as the parameter from. ok is false if there is none.
//
// The values that are not skipped are those below SkipMin and those above SkipMax. Each of these two ranges is a union
// of at most 63 smaller ranges, in each of which all values have the same first p bits, for some p. So the counters of
// a smaller range have the same last p bits, and it is easy to compute the smallest of them that is at least as large
// as the parameter from.
func following(g *schema.Generator, from int64) (to int64, ok bool) {
	if !g.Skips(reverse(from)) {
		return from, from < lastCounter
	}
	best := uint64(lastCounter)
	prefix := func(first uint64, free int) { // considers the counters of the values [first, first + 1<<free)
		last := uint64(1)<<(valueBits-free) - 1 // mask of the bits that are the same in all these counters
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
