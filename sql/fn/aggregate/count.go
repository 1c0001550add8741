package aggregate

import (
	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/value"
)

var counting = []aggregateRecord{
	{name: "$count_star", doc: "COUNT(*): the number of rows.", keepNulls: true,
		overloads: []aggregateOverload{{"-> INT64", simple(func() fn.State { return new(count) }), simple(countsOf)}}},
	{name: "count", doc: "The number of rows whose argument is not NULL.",
		overloads: []aggregateOverload{{"ANY -> INT64", simple(func() fn.State { return new(count) }), simple(countsOf)}}},
	{name: "countif", doc: "The number of rows whose argument is TRUE.",
		overloads: []aggregateOverload{{"BOOL -> INT64", simple(func() fn.State { return new(countIf) }), simple(countIfsOf)}}},
	{name: "logical_and", doc: "Whether all arguments that are not NULL are TRUE; NULL if there are none.",
		overloads: []aggregateOverload{{"BOOL -> BOOL", simple(func() fn.State { return &logical{decides: false} }), nil}}},
	{name: "logical_or", doc: "Whether one argument is TRUE; NULL if all are NULL.",
		overloads: []aggregateOverload{{"BOOL -> BOOL", simple(func() fn.State { return &logical{decides: true} }), nil}}},
}

// simple makes a value for the field start or the field groups of an aggregateOverload: a function that returns the
// parameter start for calls with arguments of any types.
func simple[S any](start func() S) func(*tree.Function) func() S {
	return func(*tree.Function) func() S { return start }
}

type count struct{ n int64 }

func (c *count) Add(args []value.Value) error {
	if !fn.AnyNull(args) {
		c.n++
	}
	return nil
}

func (c *count) Result() (value.Value, error) { return fn.OfInt64(c.n) }

// counts holds the COUNTs of many groups.
type counts struct {
	stateList[count]
	room []int32
}

func countsOf() fn.Groups { return &counts{stateList: stateList[count]{result: (*count).Result}} }

func (c *counts) Add(rows, groups []int32, args []fn.Column) error {
	if len(args) > 0 && args[0].Vector == nil {
		c.addValues(rows, groups, &args[0])
		return nil
	}
	if len(args) > 0 {
		rows = args[0].NotNull(rows, &c.room)
	}
	for _, i := range rows {
		c.states[groups[i]].n++
	}
	return nil
}

func (c *counts) addValues(rows, groups []int32, col *fn.Column) {
	for _, i := range rows {
		if !col.Values[int(i)*col.Stride].IsNull() {
			c.states[groups[i]].n++
		}
	}
}

type countIf struct{ n int64 }

func (c *countIf) Add(args []value.Value) error {
	if !args[0].IsNull() && args[0].AsBool() {
		c.n++
	}
	return nil
}

func (c *countIf) Result() (value.Value, error) { return fn.OfInt64(c.n) }

// countIfs holds the COUNTIFs of many groups.
type countIfs struct {
	stateList[countIf]
	room []int32
}

func countIfsOf() fn.Groups {
	return &countIfs{stateList: stateList[countIf]{result: (*countIf).Result}}
}

func (c *countIfs) Add(rows, groups []int32, args []fn.Column) error {
	col := &args[0]
	if col.Vector != nil && col.Vector.Bools != nil {
		for _, i := range col.NotNull(rows, &c.room) {
			if col.Vector.Bools[i] {
				c.states[groups[i]].n++
			}
		}
		return nil
	}
	for _, i := range rows {
		if v := col.Peek(int(i)); !v.IsNull() && v.AsBool() {
			c.states[groups[i]].n++
		}
	}
	return nil
}

type logical struct {
	decides           bool
	hasValue, decided bool
}

func (l *logical) Add(args []value.Value) error {
	if !args[0].IsNull() {
		l.hasValue = true
		l.decided = l.decided || args[0].AsBool() == l.decides
	}
	return nil
}

func (l *logical) Result() (value.Value, error) {
	if !l.hasValue {
		return fn.Null(value.Bool)
	}
	return fn.OfBool(l.decided == l.decides)
}
