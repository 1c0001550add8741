// Package aggregate has GoogleSQL's aggregate functions and statistical aggregate functions.
//
// Imports of this module: sql/fn, sql/fn/timestamps, sql/tree, usererror, value.
package aggregate

import (
	"slices"
	"strings"

	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/value"
)

// aggregateRecord describes one aggregate function.
type aggregateRecord struct {
	name      string
	doc       string
	overloads []aggregateOverload
	keepNulls bool // rows with a NULL argument also count: Aggregate.IgnoresNulls is false
	collects  bool // a group stores the arguments of all its rows: Aggregate.Collects is true
}

// aggregateOverload is one signature (see fn.Overload). The field start returns the function that makes the State of a
// group. Common aggregates also set the field groups, which returns the function that makes an object to compute many
// groups in one loop.
type aggregateOverload struct {
	signature string
	start     func(*tree.Function) func() fn.State
	groups    func(*tree.Function) func() fn.Groups // nil: each group gets a State of its own
}

// aggregates holds all aggregate functions by name.
var aggregates = indexAggregates(counting, summing, statistics, collecting)

func indexAggregates(families ...[]aggregateRecord) map[string]*aggregateRecord {
	m := make(map[string]*aggregateRecord)
	for _, family := range families {
		for i := range family {
			r := &family[i]
			if m[r.name] != nil {
				panic("aggregate: two records for " + r.name)
			}
			m[r.name] = r
		}
	}
	return m
}

// Lookup returns the implementation for a call of an aggregate function.
func Lookup(f *tree.Function) (*fn.Aggregate, error) {
	if r := aggregates[f.Name]; r != nil {
		for i := range r.overloads {
			if fn.Fits(r.overloads[i].signature, f.Args) {
				o := &r.overloads[i]
				a := &fn.Aggregate{IgnoresNulls: !r.keepNulls, Collects: r.collects, New: o.start(f)}
				if f.Safe {
					a.New = suppressing(a.New, f.Type.Kind)
				}
				if o.groups != nil && !f.Safe {
					a.NewGroups = o.groups(f)
				} else {
					a.NewGroups = func() fn.Groups { return &stateGroups{start: a.New} }
				}
				return a, nil
			}
		}
	}
	return nil, fn.Unsupported(f)
}

// Descriptions returns the descriptions of all aggregate functions, sorted by name.
func Descriptions() []fn.Description {
	list := make([]fn.Description, 0, len(aggregates))
	for _, r := range aggregates {
		d := fn.Description{Name: r.name, Doc: r.doc}
		for _, o := range r.overloads {
			d.Signatures = append(d.Signatures, o.signature)
		}
		list = append(list, d)
	}
	slices.SortFunc(list, func(a, b fn.Description) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// suppressing makes the start function of SAFE.f from that of the aggregate f: after an error the result of the group
// is NULL.
func suppressing(start func() fn.State, kind value.Kind) func() fn.State {
	return func() fn.State { return &safeState{State: start(), kind: kind} }
}

type safeState struct {
	fn.State
	kind   value.Kind
	failed bool
}

func (s *safeState) Add(args []value.Value) error {
	if s.failed {
		return nil
	}
	err := s.State.Add(args)
	if err != nil && fn.Suppressible(err) {
		s.failed = true
		return nil
	}
	return err
}

func (s *safeState) Result() (value.Value, error) {
	if s.failed {
		return fn.Null(s.kind)
	}
	v, err := s.State.Result()
	if err != nil && fn.Suppressible(err) {
		return fn.Null(s.kind)
	}
	return v, err
}
