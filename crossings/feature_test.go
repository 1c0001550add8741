package crossings

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
)

// A feature is something that the test combines with every other feature, such as a kind of index, a way to read, or a
// restart. Most features have functions by which they take part in a run. A feature without functions takes part
// through others; for example, a kind of index takes part in the readings that use such an index.
type feature struct {
	name string
	// change returns a random schema change that adds, changes or removes the feature; nil if none is possible at the
	// moment.
	change func(w *world) *change
	// write returns a random write that uses the feature; nil if none is possible at the moment.
	write func(w *world) *write
	// read returns a random reading of the state s that uses the feature; nil if none is possible. A reading is a
	// request for rows with the expected answer.
	read func(w *world, s *state) *reading
	// happen causes the event that the feature is about, such as a restart or a full disk.
	happen func(w *world)
	// alone says that the feature never occurs together with another feature whose alone is true. Such features are
	// ways to read, of which a reading uses only one, or checks of the whole database.
	alone bool
}

var features []feature

// add adds a feature to the test.
func add(f feature) { features = append(features, f) }

// A set is a set of features, with one bit for each feature.
type set [2]uint64

func bit(name string) int {
	i := slices.IndexFunc(features, func(f feature) bool { return f.name == name })
	if i < 0 || i >= 128 {
		panic("there is no feature " + name)
	}
	return i
}

// of returns the set of the features with these names.
func of(names ...string) (s set) {
	for _, name := range names {
		i := bit(name)
		s[i/64] |= 1 << (i % 64)
	}
	return s
}

func (s set) with(o set) set          { return set{s[0] | o[0], s[1] | o[1]} }
func (s set) and(names ...string) set { return s.with(of(names...)) }

// all returns the numbers of the features in a set.
func (s set) all() (list []int) {
	for word, b := range s {
		for ; b != 0; b &= b - 1 {
			list = append(list, word*64+bits.TrailingZeros64(b))
		}
	}
	return list
}

func (s set) String() string {
	var names []string
	for _, i := range s.all() {
		names = append(names, features[i].name)
	}
	return strings.Join(names, ", ")
}

// pairs counts, for each pair of features, the readings in which both took part.
type pairs map[[2]int]int

func (p pairs) count(s set) {
	list := s.all()
	for i, a := range list {
		for _, b := range list[i+1:] {
			p[[2]int{a, b}]++
		}
	}
}

// report returns a table of the counts, and a list of the pairs that never took part in the same reading.
func (p pairs) report() string {
	var out, never strings.Builder
	met, total := 0, 0
	for i, a := range features {
		fmt.Fprintf(&out, "%2d %-26s", i, a.name)
		var missing []string
		for k := range i {
			n := p[[2]int{k, i}]
			switch {
			case n > 0:
				met, total = met+1, total+1
			case !a.alone || !features[k].alone:
				missing, total = append(missing, features[k].name), total+1
			}
			fmt.Fprintf(&out, "%5s", short(n))
		}
		out.WriteByte('\n')
		if len(missing) > 0 {
			fmt.Fprintf(&never, "%s: %s\n", a.name, strings.Join(missing, ", "))
		}
	}
	return fmt.Sprintf("%d of %d pairs of %d features have met: how many readings both took part in\n%s\nnever met:\n%s", met, total, len(features), out.String(), never.String())
}

// short formats a number with at most four characters.
func short(n int) string {
	switch {
	case n == 0:
		return "."
	case n < 10_000:
		return fmt.Sprint(n)
	}
	return fmt.Sprint(n/1000, "k")
}
