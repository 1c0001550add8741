// Package randomtest runs tests that take random steps and compare a part of Crowfoot with a plain model of it.
//
// Imports of this module: nothing.
package randomtest

import (
	"math/rand/v2"
	"testing"
)

// Run takes steps with each seed from 0 on. There are seeds of them, or few with -short. begin makes a model from a seed, and returns functions
// that take one step and that end the test of this seed. A seed that fails is named and is the last one.
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

// Step is a step that a test may take.
type Step struct {
	percent int
	do      func()
}

// Share returns a step that makes up so many percent of all steps.
func Share(percent int, do func()) Step { return Step{percent, do} }

// Take takes one of the steps.
func Take(rng *rand.Rand, steps ...Step) {
	n := rng.IntN(100)
	for _, s := range steps {
		if n -= s.percent; n < 0 {
			s.do()
			return
		}
	}
}
