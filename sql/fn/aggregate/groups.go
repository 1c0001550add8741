package aggregate

import (
	"slices"

	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/value"
)

// stateList keeps the states of groups in one slice.
type stateList[S any] struct {
	states []S
	one    [1]S // memory for the slice states if there is only one group
	result func(*S) (value.Value, error)
}

func (g *stateList[S]) Grow(n int) {
	if g.states == nil {
		g.states = g.one[:0]
	}
	g.states = append(g.states, make([]S, n-len(g.states))...)
}

func (g *stateList[S]) Result(group int) (value.Value, error) { return g.result(&g.states[group]) }

func (g *stateList[S]) Keep(group int) {
	g.states[0] = g.states[group]
	g.states = g.states[:1]
}

func (g *stateList[S]) Clear() { g.states = g.states[:0] }

// stateGroups computes many groups with one State for each.
type stateGroups struct {
	start  func() fn.State
	states []fn.State
	args   []value.Value // buffer for the arguments of one row
}

func (g *stateGroups) Grow(n int) {
	g.states = slices.Grow(g.states, n-len(g.states))
	for len(g.states) < n {
		g.states = append(g.states, g.start())
	}
}

func (g *stateGroups) Add(rows, groups []int32, args []fn.Column) error {
	for _, i := range rows {
		g.args = g.args[:0]
		for j := range args {
			g.args = append(g.args, args[j].At(int(i)))
		}
		if err := g.states[groups[i]].Add(g.args); err != nil {
			return err
		}
	}
	return nil
}

func (g *stateGroups) Result(group int) (value.Value, error) { return g.states[group].Result() }

func (g *stateGroups) Keep(group int) {
	g.states[0] = g.states[group]
	clear(g.states[1:])
	g.states = g.states[:1]
}

func (g *stateGroups) Clear() {
	clear(g.states)
	g.states = g.states[:0]
}
