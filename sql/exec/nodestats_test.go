package exec_test

import (
	"testing"
	"time"

	"github.com/crowfoot-db/crowfoot/sql/exec"
)

// TestOperatorCPU checks that the CPU time of an operator does not come from the run's clock, as its latency does. The
// clock of the test jumps an hour at each reading, so the CPU time must be less than the latency. The test also checks
// that the CPU time of the root is the sum of SelfCPU of all operators.
func TestOperatorCPU(t *testing.T) {
	db := newTestDB(t)
	p, program, env := db.spillingProgram(t, spillingQueries["sort"])
	now := time.Now()
	env.Profile, env.Clock = true, func() time.Time {
		now = now.Add(time.Hour)
		return now
	}
	_, stats, err := db.collect(t.Context(), p, program, env)
	if err != nil {
		t.Fatal(err)
	}
	var sum time.Duration
	var root *exec.NodeStats
	for n, s := range stats.Nodes {
		if s.CPU <= 0 || s.SelfCPU < 0 || s.SelfCPU > s.CPU || s.CPU >= s.Latency {
			t.Errorf("%T: CPU %v, %v of it its own, latency %v", n, s.CPU, s.SelfCPU, s.Latency)
		}
		if root == nil || s.CPU > root.CPU {
			root = s
		}
		sum += s.SelfCPU
	}
	if sum != root.CPU {
		t.Errorf("the operators used %v, the root has %v", sum, root.CPU)
	}
}
