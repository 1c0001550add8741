package fn

import (
	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/value"
)

var counting = []aggregateRecord{
	{name: "$count_star", doc: "COUNT(*): the number of rows.", keepNulls: true,
		overloads: []aggregateOverload{{"-> INT64", simple(func() State { return new(count) })}}},
	{name: "count", doc: "The number of rows whose argument is not NULL.",
		overloads: []aggregateOverload{{"ANY -> INT64", simple(func() State { return new(count) })}}},
	{name: "countif", doc: "The number of rows whose argument is TRUE.",
		overloads: []aggregateOverload{{"BOOL -> INT64", simple(func() State { return new(countIf) })}}},
	{name: "logical_and", doc: "Whether all arguments that are not NULL are TRUE; NULL if there are none.",
		overloads: []aggregateOverload{{"BOOL -> BOOL", simple(func() State { return &logical{decides: false} })}}},
	{name: "logical_or", doc: "Whether one argument is TRUE; NULL if all are NULL.",
		overloads: []aggregateOverload{{"BOOL -> BOOL", simple(func() State { return &logical{decides: true} })}}},
}

// simple is the start of an aggregate that does not depend on types.
func simple(start func() State) func(*tree.Function) func() State {
	return func(*tree.Function) func() State { return start }
}

type count struct{ n int64 }

func (c *count) Add(args []value.Value) error {
	if !anyNull(args) {
		c.n++
	}
	return nil
}

func (c *count) Result() (value.Value, error) { return ofInt64(c.n) }

type countIf struct{ n int64 }

func (c *countIf) Add(args []value.Value) error {
	if !args[0].IsNull() && args[0].AsBool() {
		c.n++
	}
	return nil
}

func (c *countIf) Result() (value.Value, error) { return ofInt64(c.n) }

type logical struct {
	decides       bool
	seen, decided bool
}

func (l *logical) Add(args []value.Value) error {
	if !args[0].IsNull() {
		l.seen = true
		l.decided = l.decided || args[0].AsBool() == l.decides
	}
	return nil
}

func (l *logical) Result() (value.Value, error) {
	if !l.seen {
		return null(value.Bool)
	}
	return ofBool(l.decided == l.decides)
}
