package soak

import (
	"strings"
	"testing"
)

// TestSoakGrowth checks that grown names each quantity (memory, goroutines, connections) that is too large in the last
// life of the server, compared with its lowest value in the earlier lives. The first life must not count as an earlier
// one, because the server warms up in it.
func TestSoakGrowth(t *testing.T) {
	lived := func(memory int64, goroutines, connections int) life {
		return life{last: state{memory: memory << 20, goroutines: goroutines, connections: connections}}
	}
	for _, c := range []struct {
		lives []life
		want  string // names of the quantities that have grown
	}{
		{[]life{lived(100, 50, 10), lived(300, 60, 12), lived(320, 55, 12)}, ""},
		{[]life{lived(100, 50, 10), lived(500, 400, 300), lived(300, 60, 12), lived(330, 60, 12)}, ""},
		{[]life{lived(100, 50, 10), lived(300, 60, 12), lived(300, 60, 12), lived(460, 60, 12)}, "memory"},
		{[]life{lived(100, 50, 10), lived(300, 60, 12), lived(300, 180, 400)}, "goroutines connections"},
	} {
		k := soak{ended: c.lives}
		var names []string
		for _, err := range k.grown() {
			names = append(names, strings.Fields(err.Error())[0])
		}
		if got := strings.Join(names, " "); got != c.want {
			t.Errorf("%v: %q has grown, want %q", c.lives, got, c.want)
		}
	}
}
