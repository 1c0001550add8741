// Package distribution is the histogram that statistics columns contain (LATENCY_DISTRIBUTION,
// TOTAL_LATENCY_DISTRIBUTION). It counts durations, merges distributions, converts them to values and JSON, and
// computes the percentiles of SPANNER_SYS.DISTRIBUTION_PERCENTILE.
//
// Imports of this module: value.
package distribution

import (
	"math"
	"math/big"
	"math/bits"
	"sort"
	"time"
)

// The buckets of every Distribution. The bounds of the finite buckets go from 10 us (scale, in seconds) to 1.46 hours,
// and each bound is 1.25 times the one before. A percentile is wrong by at most the width of one bucket, and
// interpolation usually makes the error much smaller.
const (
	scale         = 1e-5
	growth        = 1.25
	finiteBuckets = 90
	buckets       = finiteBuckets + 2 // also one bucket below scale, and one for overflow
)

// bounds holds the bounds of the finite buckets in seconds: bounds[i] is the end of bucket i and the start of bucket
// i+1.
var bounds = func() (b [finiteBuckets + 1]float64) {
	for i := range b {
		b[i] = scale * math.Pow(growth, float64(i))
	}
	return b
}()

// Distribution counts durations. The zero Distribution is empty. All its fields are integers, so the order of counting
// and merging does not change the result.
type Distribution struct {
	Count int64
	Sum   time.Duration
	// High and Low are the two halves of a number of 128 bits: the sum of the squared durations, in square nanoseconds.
	High, Low uint64
	// Buckets counts durations: element 0 those below scale, element i those in [scale*growth^(i-1), scale*growth^i),
	// and the last element all longer ones.
	Buckets [buckets]int64
}

// Observe counts one duration. A negative duration counts as 0.
func (d *Distribution) Observe(t time.Duration) {
	t = max(t, 0)
	d.Count++
	d.Sum += t
	d.addSquares(bits.Mul64(uint64(t), uint64(t)))
	d.Buckets[bucketOf(t.Seconds())]++
}

func (d *Distribution) addSquares(high, low uint64) {
	var carry uint64
	d.Low, carry = bits.Add64(d.Low, low, 0)
	d.High, _ = bits.Add64(d.High, high, carry)
}

func bucketOf(x float64) int {
	low, high := 0, len(bounds)
	for low < high {
		mid := int(uint(low+high) >> 1)
		if bounds[mid] <= x {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low
}

// Merge adds the counts of o to d.
func (d *Distribution) Merge(o *Distribution) {
	d.Count += o.Count
	d.Sum += o.Sum
	d.addSquares(o.High, o.Low)
	for i, c := range o.Buckets {
		d.Buckets[i] += c
	}
}

// mean returns the mean duration in seconds.
func (d *Distribution) mean() float64 {
	if d.Count == 0 {
		return 0
	}
	return d.Sum.Seconds() / float64(d.Count)
}

// deviation returns the sum of squared deviations from the mean, in square seconds: (count*squares - sum^2) / count.
func (d *Distribution) deviation() float64 {
	if d.Count == 0 {
		return 0
	}
	count, sum := big.NewInt(d.Count), big.NewInt(int64(d.Sum))
	x := new(big.Int).SetUint64(d.High)
	x.Lsh(x, 64).Or(x, new(big.Int).SetUint64(d.Low))
	x.Mul(x, count).Sub(x, sum.Mul(sum, sum))
	f, _ := new(big.Rat).SetFrac(x, count.Mul(count, big.NewInt(1e18))).Float64()
	return f
}

// Histogram is a distribution with any buckets, not only those of Distribution. It is what statistics columns contain.
type Histogram struct {
	Count         int64
	Mean          float64
	Deviation     float64 // sum of squared deviations from Mean
	FiniteBuckets int64
	Growth, Scale float64
	Buckets       []int64 // trailing buckets with 0 may be missing
}

// Histogram returns the distribution as a Histogram.
func (d *Distribution) Histogram() Histogram {
	n := len(d.Buckets)
	for n > 0 && d.Buckets[n-1] == 0 {
		n--
	}
	return Histogram{Count: d.Count, Mean: d.mean(), Deviation: d.deviation(),
		FiniteBuckets: finiteBuckets, Growth: growth, Scale: scale, Buckets: d.Buckets[:n:n]}
}

// Percentile returns the value that p percent (0 to 100) of the counted values do not exceed, interpolated within its
// bucket. It returns false if the distribution is empty or p is not a percentage.
func (h Histogram) Percentile(p float64) (float64, bool) {
	var total float64
	for _, c := range h.Buckets {
		total += float64(max(c, 0))
	}
	if total == 0 || !(p >= 0 && p <= 100) {
		return 0, false
	}
	rank, before := p/100*total, 0.0
	i := sort.Search(len(h.Buckets), func(i int) bool { return h.upTo(i) >= rank && h.upTo(i) > 0 })
	if i > 0 {
		before = h.upTo(i - 1)
	}
	low, high := h.bucket(i)
	return low + (high-low)*(rank-before)/(h.upTo(i)-before), true
}

// upTo returns how many values buckets 0 to i count.
func (h Histogram) upTo(i int) (n float64) {
	for _, c := range h.Buckets[:i+1] {
		n += float64(max(c, 0))
	}
	return n
}

// bucket returns the bounds of bucket i. Counted values are not negative, so bucket 0 starts at 0. The overflow bucket
// has no end, so both results are its start.
func (h Histogram) bucket(i int) (low, high float64) {
	if i > 0 {
		low = h.Scale * math.Pow(h.Growth, float64(i-1))
	}
	if int64(i) > h.FiniteBuckets {
		return low, low
	}
	return low, h.Scale * math.Pow(h.Growth, float64(i))
}
