package fn

import (
	"slices"

	"github.com/crowfoot-db/crowfoot/value"
)

// Groups are an aggregate of many groups, which have numbers from 0 on.
type Groups interface {
	// Grow begins groups, so that there are n.
	Grow(n int)
	// Add adds the rows that rows names: the arguments of row i, args[0].At(i) and so on, to group groups[i]. A row with a
	// NULL argument does not count if the aggregate IgnoresNulls. After an error the groups must not be used any more.
	Add(rows, groups []int32, args []Column) error
	// Result is the aggregate of a group.
	Result(group int) (value.Value, error)
	// Keep forgets all groups but one, which is group 0 from then on.
	Keep(group int)
	// Clear forgets all groups.
	Clear()
}

// stateList keeps the states of groups side by side.
type stateList[S any] struct {
	states []S
	one    [1]S // room for a single group
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

// stateGroups are groups of which each has a State.
type stateGroups struct {
	start  func() State
	states []State
	args   []value.Value // room for those of one row
}

func (g *stateGroups) Grow(n int) {
	g.states = slices.Grow(g.states, n-len(g.states))
	for len(g.states) < n {
		g.states = append(g.states, g.start())
	}
}

func (g *stateGroups) Add(rows, groups []int32, args []Column) error {
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
