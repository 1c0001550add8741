package exec

import (
	"slices"

	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/value"
)

// aggStates holds the states of an aggregate for many groups. Groups are numbered from 0.
type aggStates interface {
	// grow begins new groups until there are n.
	resize(n int)
	// add adds the rows of b at places to their groups. The row at place i belongs to group groups[i].
	add(r *run, b *batch, places, groups []int32) error
	result(r *run, group int) (value.Value, error)
	// failure returns the error that the aggregate has kept for a group, NULL if there was none. Only an aggregate that defers errors has it.
	failure(group int) value.Value
	// keep forgets all groups but one, which becomes group 0.
	keep(r *run, group int)
	// clear forgets all groups.
	clear(r *run)
}

// states makes the states of all aggregates. many says that there are many groups at once, whose rows come in any order.
func (c *aggregateCode) states(many bool) []aggStates {
	all, byColumn := make([]aggStates, len(c.aggs)), make([]columnStates, len(c.aggs))
	cols := make([]fn.Column, c.args)
	for i, a := range c.aggs {
		n := len(a.args)
		switch {
		case !a.collects() && !a.selective() && !a.defers:
			byColumn[i] = columnStates{aggCode: a, groups: a.fn.NewGroups(), args: vectors{exprs: a.vectors, cols: cols[:n:n], strict: a.skipNulls}}
			all[i], cols = &byColumn[i], cols[n:]
		case many:
			all[i] = &rowStates{start: a.startMany}
		default:
			all[i] = &rowStates{start: a.start}
		}
	}
	return all
}

// columnStates adds whole batches, argument by argument, without building rows.
type columnStates struct {
	*aggCode
	groups  fn.Groups
	args    vectors
	counted chosen // the places of the rows for which where is TRUE
}

func (s *columnStates) resize(n int) { s.groups.Grow(n) }

func (s *columnStates) add(r *run, b *batch, places, groups []int32) error {
	if s.where != nil {
		var err error
		if places, err = s.counted.choose(r, b, places, s.where); err != nil {
			return err
		}
	}
	for len(places) > 0 {
		n, err := s.args.compute(r, b, places)
		if err != nil {
			return err
		}
		if err := s.groups.Add(s.withoutNulls(places[:n]), groups, s.args.cols); err != nil {
			return err
		}
		places = places[n:]
	}
	return nil
}

// withoutNulls removes the rows whose first argument is NULL, if the call says IGNORE NULLS and the function itself would count them.
func (s *columnStates) withoutNulls(places []int32) []int32 {
	if !s.skipNulls || s.fn.IgnoresNulls {
		return places
	}
	var counted []int32
	for _, i := range places {
		if !s.args.cols[0].IsNull(int(i)) {
			counted = append(counted, i)
		}
	}
	return counted
}

func (s *columnStates) result(_ *run, group int) (value.Value, error) { return s.groups.Result(group) }

func (s *columnStates) failure(int) value.Value { return value.Null(value.Bytes) }

func (s *columnStates) keep(_ *run, group int) { s.groups.Keep(group) }

func (s *columnStates) clear(*run) { s.groups.Clear() }

// rowStates adds row by row to a state of each group. It serves aggregates that keep values of each row, choose among rows, or keep errors.
type rowStates struct {
	start func() aggState
	list  []aggState
}

func (s *rowStates) resize(n int) {
	s.list = slices.Grow(s.list, n-len(s.list))
	for len(s.list) < n {
		s.list = append(s.list, s.start())
	}
}

func (s *rowStates) add(r *run, b *batch, places, groups []int32) error {
	for _, i := range places {
		if err := s.list[groups[i]].add(r, b.row(int(i))); err != nil {
			return err
		}
	}
	return nil
}

func (s *rowStates) result(r *run, group int) (value.Value, error) { return s.list[group].result(r) }

func (s *rowStates) failure(group int) value.Value { return s.list[group].(*deferredState).failure() }

// collector returns the state of a group. The aggregate must be one that collects.
func (s *rowStates) collector(group int) collector { return s.list[group].(collector) }

func (s *rowStates) keep(r *run, group int) {
	for i, state := range s.list {
		if i != group {
			state.release(r)
		}
	}
	s.list[0] = s.list[group]
	clear(s.list[1:])
	s.list = s.list[:1]
}

func (s *rowStates) clear(r *run) {
	for _, state := range s.list {
		state.release(r)
	}
	clear(s.list)
	s.list = s.list[:0]
}
