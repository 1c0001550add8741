package pebble

import "testing"

func TestCacheGrowsWithTheMachine(t *testing.T) {
	for _, c := range []struct {
		memory uint64
		want   int64
	}{
		{0, unknownCacheBytes},
		{512 << 20, minCacheBytes},
		{8 << 30, 512 << 20},
		{24 << 30, 1536 << 20},
	} {
		if got := cacheBytes(c.memory); got != c.want {
			t.Errorf("a machine with %d bytes has a cache of %d, want %d", c.memory, got, c.want)
		}
	}
}
