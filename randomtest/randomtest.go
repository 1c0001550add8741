// Package randomtest runs tests that take random steps, and compare a package of Crowfoot with a simple model of it.
//
// Imports of this module: nothing.
package randomtest

import (
	"math/rand/v2"
	"testing"
)

// Run runs a test with each seed from 0 to seeds-1; with -short, it runs only the first few seeds. For each seed it
// calls begin, which makes a model and returns the functions step and end. Run calls step as often as the parameter
// steps says, and then end once. When a step fails the test, Run names the seed and stops.
func Run(t *testing.T, seeds, few uint64, steps int, begin func(seed uint64) (step, end func())) {
	t.Helper()
	if testing.Short() {
		seeds = few
	}
	for seed := range seeds {
		step, end := begin(seed)
		for range steps {
			step()
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		}
		end()
	}
}

// Step is a step that a test can take, with its probability in percent.
type Step struct {
	percent int
	do      func()
}

// Share returns a step that calls do. Take chooses the step with the given probability in percent.
func Share(percent int, do func()) Step { return Step{percent, do} }

// Take chooses one of the steps at random and takes it.
func Take(rng *rand.Rand, steps ...Step) {
	n := rng.IntN(100)
	for _, s := range steps {
		if n -= s.percent; n < 0 {
			s.do()
			return
		}
	}
}
