package distribution

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"
)

func TestBuckets(t *testing.T) {
	for i, b := range bounds {
		if got := bucketOf(b); got != i+1 {
			t.Errorf("bound %d (%g) is in bucket %d", i, b, got)
		}
		if got := bucketOf(math.Nextafter(b, 0)); got != i {
			t.Errorf("just below bound %d is in bucket %d", i, got)
		}
	}
	if got := bucketOf(0); got != 0 {
		t.Errorf("0 is in bucket %d", got)
	}
	if got := bucketOf(1e9); got != buckets-1 {
		t.Errorf("1e9 is in bucket %d", got)
	}
}

// TestMerge checks that a distribution that was merged from parts equals one that counted all durations, and that its
// mean and deviation are those of the durations.
func TestMerge(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var whole, merged Distribution
	var all []float64
	for range 20 {
		var part Distribution
		for range rnd.IntN(50) {
			x := time.Duration(rnd.ExpFloat64() * float64(time.Millisecond))
			all = append(all, x.Seconds())
			whole.Observe(x)
			part.Observe(x)
		}
		merged.Merge(&part)
	}
	if whole != merged {
		t.Fatal("the parts do not make the whole")
	}
	var mean, deviation float64
	for _, x := range all {
		mean += x / float64(len(all))
	}
	for _, x := range all {
		deviation += (x - mean) * (x - mean)
	}
	if h := whole.Histogram(); !near(h.Mean, mean, 1e-9) || !near(h.Deviation, deviation, 1e-9) {
		t.Errorf("mean %g deviation %g, want %g %g", h.Mean, h.Deviation, mean, deviation)
	}
}

func near(a, b, share float64) bool { return math.Abs(a-b) <= share*math.Abs(b) }

// TestPercentile compares Percentile with the exact percentile; the two may differ by the width of one bucket.
func TestPercentile(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	var d Distribution
	var all []float64
	for range 5000 {
		x := time.Duration(rnd.ExpFloat64() * float64(20*time.Millisecond))
		all = append(all, x.Seconds())
		d.Observe(x)
	}
	slices.Sort(all)
	for _, p := range []float64{1, 25, 50, 75, 90, 99, 99.9} {
		exact := all[int(p/100*float64(len(all)))]
		got, ok := d.Histogram().Percentile(p)
		if !ok || got < exact/growth || got > exact*growth {
			t.Errorf("p%g: %g, exact %g", p, got, exact)
		}
	}
}

func TestPercentileEdges(t *testing.T) {
	h := Histogram{FiniteBuckets: 2, Growth: 2, Scale: 1, Buckets: []int64{0, 2, 2, 4}} // bounds 1, 2 and 4
	for _, c := range []struct{ p, want float64 }{{0, 1}, {12.5, 1.5}, {25, 2}, {37.5, 3}, {50, 4}, {51, 4}, {100, 4}} {
		if got, ok := h.Percentile(c.p); !ok || got != c.want {
			t.Errorf("p%g: %g %t, want %g", c.p, got, ok, c.want)
		}
	}
	for _, p := range []float64{-1, 100.5, math.NaN()} {
		if _, ok := h.Percentile(p); ok {
			t.Errorf("p%g is no percentile", p)
		}
	}
	if _, ok := (Histogram{}).Percentile(50); ok {
		t.Error("an empty distribution has no median")
	}
}

func TestForms(t *testing.T) {
	var d Distribution
	for _, x := range []time.Duration{time.Millisecond, 3 * time.Millisecond, time.Second} {
		d.Observe(x)
	}
	h := d.Histogram()
	back, ok := FromValue(h.Value().AsList()[0])
	if !ok || !reflect.DeepEqual(back, h) {
		t.Errorf("as a value: %+v, want %+v", back, h)
	}
	back, err := FromJSON(h.JSON())
	if err != nil || !reflect.DeepEqual(back, h) {
		t.Errorf("as JSON: %+v %v, want %+v", back, err, h)
	}
	if _, err := FromJSON("[1]"); err == nil {
		t.Error("[1] is no distribution")
	}
	if _, ok := FromValue(h.Value()); ok {
		t.Error("the array is not its element")
	}
}

func BenchmarkObserve(b *testing.B) {
	var d Distribution
	for i := 0; b.Loop(); i++ {
		d.Observe(time.Duration(i&0xffff) * time.Microsecond)
	}
}
