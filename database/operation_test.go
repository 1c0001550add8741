package database

import (
	"testing"
	"time"
)

// TestOperationsAreForgotten checks that operations are deleted after seven days, and not before.
func TestOperationsAreForgotten(t *testing.T) {
	a := newAged(t)
	for _, name := range []string{"i/operations/a", "i/databases/d/operations/a", "i/databases/d/operations/b"} {
		if err := a.PutOperation(Operation{Name: name, Ended: a.clock(), Proto: []byte{1}}); err != nil {
			t.Fatal(err)
		}
		a.now.Add((24 * time.Hour).Microseconds())
	}
	for step, want := range []int{3, 3, 3, 3, 3, 2, 1, 0} {
		if err := a.sweepOperations(); err != nil {
			t.Fatal(err)
		}
		left := 0
		for _, err := range a.Operations("i/", "") {
			if err != nil {
				t.Fatal(err)
			}
			left++
		}
		if left != want {
			t.Errorf("day %d: %d left; want %d", step+3, left, want)
		}
		a.now.Add((24 * time.Hour).Microseconds())
	}
}
