package exec

import (
	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/sql/plan"
	"github.com/crowfoot-db/crowfoot/value"
)

// fewElements is up to how many elements x is compared with each of them, which takes less time than hashing x.
const fewElements = 8

// elementSet is the array of "x IN UNNEST(array)" in one run.
type elementSet struct {
	table *hashTable // nil before the first row, and for few elements
	few   bool
	empty bool // there are no elements
	null  bool // an element is NULL
}

// inArray compiles x IN UNNEST(array) for an array that is the same for all rows of a run. The first row makes it a set, in which each
// row looks x up, instead of comparing x with every element. Other arrays, and elements that may contain a NULL, are
// compared one by one by compare.
func (c *compiler) inArray(e *plan.Call, compare eval) (eval, error) {
	if !hasSet(e) {
		return compare, nil
	}
	t := e.Args[0].Type()
	args, err := c.exprs(e.Args)
	if err != nil {
		return nil, err
	}
	at := c.prog.sets
	c.prog.sets++
	return func(r *run, row []value.Value) (value.Value, error) {
		s := &r.sets[at]
		if s.table == nil && !s.few {
			list, err := args[1](r, row)
			if err != nil {
				return value.Value{}, err
			}
			s.build(list, t)
		}
		if s.few {
			return compare(r, row)
		}
		x, err := args[0](r, row)
		if err != nil {
			return value.Value{}, err
		}
		return s.holds(x), nil
	}, nil
}

// hasSet says that the array is made a set.
func hasSet(e *plan.Call) bool {
	t := e.Args[0].Type()
	if t.Kind == value.Struct || t.Kind == value.Array || e.Args[1].Type().Elem.Kind != t.Kind {
		return false
	}
	switch e.Args[1].(type) {
	case *plan.Parameter, *plan.Const:
		return true
	}
	return false
}

// vectorInArray is inArray for many rows at once.
func (c *compiler) vectorInArray(e *plan.Call, args []vectorEval) vectorEval {
	t, at, set := e.Args[0].Type(), c.output(), c.prog.sets
	c.prog.sets++
	return func(r *run, b *batch, places []int32) (fn.Column, bool) {
		out, s := r.output(at), &r.sets[set]
		cols, ok := out.columns(r, b, places, args)
		if !ok {
			return fn.Column{}, false
		}
		if s.table == nil {
			s.fill(cols[1].At(0), t)
		}
		out.sizeValues(b.span())
		for _, i := range places {
			out.values[i] = s.holds(cols[0].Peek(int(i)))
		}
		return fn.Column{Values: out.values, Stride: 1}, true
	}
}

func (s *elementSet) build(list value.Value, t *value.Type) {
	if list.IsNull() || len(list.AsList()) <= fewElements {
		s.few = true
		return
	}
	s.fill(list, t)
}

// fill makes the set of the elements of a list.
func (s *elementSet) fill(list value.Value, t *value.Type) {
	s.table, s.empty = newHashTable([]*value.Type{t}), len(list.AsList()) == 0
	for _, v := range list.AsList() {
		switch {
		case v.IsNull():
			s.null = true
		case !equalsNothing(v):
			s.table.find([]value.Value{v})
		}
	}
}

// holds is TRUE if x is in the set, FALSE if the array is empty, NULL if x or an element it might equal is NULL, else FALSE.
func (s *elementSet) holds(x value.Value) value.Value {
	switch {
	case s.empty:
		return value.OfBool(false)
	case x.IsNull():
		return value.Null(value.Bool)
	}
	if s.table.first([]value.Value{x}) >= 0 {
		return value.OfBool(true)
	}
	if s.null {
		return value.Null(value.Bool)
	}
	return value.OfBool(false)
}
