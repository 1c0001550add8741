package cpu

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
)

// TestTurns: at most the given number of executions compute at the same time, and the others follow in the order of
// their arrival.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := NewTurns(2)
		var order []int
		next := make(chan struct{})
		for i := range 6 {
			go func() {
				_, end, err := turns.Acquire(t.Context())
				if err != nil {
					t.Error(err)
				}
				order = append(order, i)
				<-next
				end()
			}()
			synctest.Wait()
		}
		for running := 2; running < 6; running++ {
			if len(order) != running {
				t.Fatalf("%v have had a turn", order)
			}
			next <- struct{}{}
			synctest.Wait()
		}
		close(next)
		synctest.Wait()
		if !slices.Equal(order, []int{0, 1, 2, 3, 4, 5}) || turns.free != 2 {
			t.Errorf("order %v, %d turns are left", order, turns.free)
		}
	})
}

// TestTurnsOfWaiting: while an execution with a turn waits, another execution uses the turn. After its wait, the first
// one gets a turn before executions that had none.
func TestTurnsOfWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := NewTurns(1)
		ctx, endFirst, err := turns.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		over := Waiting(ctx)
		_, endSecond, err := turns.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var order []string
		go func() {
			_, end, _ := turns.Acquire(t.Context())
			order = append(order, "third")
			end()
		}()
		synctest.Wait()
		go func() {
			over()
			order = append(order, "first")
			endFirst()
		}()
		synctest.Wait()
		if len(order) > 0 {
			t.Errorf("%v went on while the second had the turn", order)
		}
		endSecond()
		synctest.Wait()
		if !slices.Equal(order, []string{"first", "third"}) || turns.free != 1 || turns.again != 0 {
			t.Errorf("order %v, %d turns are left", order, turns.free)
		}
	})
}

// TestTurnsCancelled checks that no turn is lost if an execution is cancelled while it waits for a turn. Acquire must
// return ctx.Err(), and not the cause of the cancellation: a commit that gets ctx.Err() knows that its transaction
// stays open.
func TestTurnsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := NewTurns(1)
		_, end, err := turns.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		failed := make(chan error, 1)
		go func() {
			_, _, err := turns.Acquire(ctx)
			failed <- err
		}()
		synctest.Wait()
		cancel(errors.New("the server stops"))
		if err := <-failed; err != context.Canceled {
			t.Errorf("Take: %v", err)
		}
		end()
		if len(turns.waiting) != 0 || turns.free != 1 {
			t.Errorf("%d wait, %d turns are left", len(turns.waiting), turns.free)
		}
	})
}
