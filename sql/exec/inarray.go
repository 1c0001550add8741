package exec

import (
	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/sql/plan"
	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/value"
)

// fewElements is the greatest number of elements of an array for which x IN UNNEST(array) compares x with one element
// after the other. For so few elements, comparing takes less time than hashing x.
const fewElements = 8

// elementSet is the set of the elements of an array in "x IN UNNEST(array)", in one run.
type elementSet struct {
	table *hashTable // nil before the first row, and if the array has at most fewElements elements
	few   bool
	empty bool // the array has no elements
	null  bool // an element is NULL
}

// inArray compiles x IN UNNEST(array). If the array is the same for all rows of a run, the first row makes a set of
// its elements, and each row looks x up in the set. For all other arrays, and for types whose values can contain a
// NULL, inArray returns compare, which compares x with every element.
func (c *compiler) inArray(e *tree.Call, compare eval) (eval, error) {
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
			if s.few = list.IsNull() || len(list.AsList()) <= fewElements; !s.few {
				s.fill(list, t)
			}
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

// hasSet reports whether inArray makes a set of the array's elements.
func hasSet(e *tree.Call) bool {
	t := e.Args[0].Type()
	if t.Kind == value.Struct || t.Kind == value.Array || e.Args[1].Type().Elem.Kind != t.Kind {
		return false
	}
	switch e.Args[1].(type) {
	case *plan.Parameter, *tree.Literal:
		return true
	}
	return false
}

// vectorInArray compiles x IN UNNEST(array) so that it is computed for many rows at once.
func (c *compiler) vectorInArray(e *tree.Call, args []vectorEval) vectorEval {
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

// fill fills the set with the elements of list, whose type is t.
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

// holds returns the result of x IN UNNEST(array): FALSE if the array is empty; NULL if x is NULL; TRUE if x is in
// the set; NULL if an element is NULL; and FALSE otherwise.
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
