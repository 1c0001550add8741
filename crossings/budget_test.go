package crossings

import "testing/synctest"

const budget = "memory budget"

func init() {
	add(feature{name: budget, alone: true})
}

// idle checks that no memory is charged to requests when no request is running.
func (w *world) idle() {
	w.endAll()
	synctest.Wait()
	if u := w.budget.Usage(); u.Reserved != 0 {
		w.fail("no request runs, and %d bytes are charged", u.Reserved)
	}
	w.countAll(budget)
}
