// Package randomtest runs tests that take random steps, and compare a package of Crowfoot with a simple model of it.
//
// Imports of this module: nothing.
package randomtest

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// Run runs a test once for each seed from 0 to seeds-1 or, with -short, to few-1. For each seed, it calls begin(seed),
// which makes a model and returns the functions step and end. Run makes as many calls of step() as the parameter steps
// says, and then calls end() once. When one of the three functions fails the test, Run logs the seed and stops.
func Run(t *testing.T, seeds, few uint64, steps int, begin func(seed uint64) (step, end func())) {
	t.Helper()
	if testing.Short() {
		seeds = few
	}
	for seed := uint64(0); seed < seeds && !t.Failed(); seed++ {
		runSeed(t, seed, steps, begin)
	}
}

func runSeed(t *testing.T, seed uint64, steps int, begin func(seed uint64) (step, end func())) {
	t.Helper()
	defer func() { // deferred, so that it also runs after t.Fatal
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	}()
	step, end := begin(seed)
	for range steps {
		if step(); t.Failed() {
			return
		}
	}
	end()
}

// Step is a step that a test can take, with its probability in percent.
type Step struct {
	percent int
	do      func()
}

// Share returns a step that calls do(). Take chooses the step with the given probability in percent.
func Share(percent int, do func()) Step { return Step{percent, do} }

// Take chooses one of the steps at random and takes it. It panics unless the percentages add up to 100.
func Take(rng *rand.Rand, steps ...Step) {
	total := 0
	for _, s := range steps {
		total += s.percent
	}
	if total != 100 {
		panic(fmt.Sprintf("randomtest: the percentages add up to %d", total))
	}
	n := rng.IntN(total)
	for _, s := range steps {
		if n -= s.percent; n < 0 {
			s.do()
			return
		}
	}
}
