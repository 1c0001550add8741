package fn

import (
	"slices"
	"strings"

	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/value"
)

// aggregateRecord describes one aggregate function.
type aggregateRecord struct {
	name      string
	doc       string
	overloads []aggregateOverload
	keepNulls bool // rows with NULL arguments count: Aggregate.IgnoresNulls is false
	collects  bool // see Aggregate.Collects
}

// aggregateOverload is one signature (see overload) with the function that starts a group. Common aggregates also have groups, which
// computes many groups in one loop.
type aggregateOverload struct {
	signature string
	start     func(*tree.Function) func() State
	groups    func(*tree.Function) func() Groups // nil: each group has a State
}

// aggregates holds all aggregate functions by name.
var aggregates = indexAggregates(counting, summing, statistics, collecting)

func indexAggregates(families ...[]aggregateRecord) map[string]*aggregateRecord {
	m := make(map[string]*aggregateRecord)
	for _, family := range families {
		for i := range family {
			r := &family[i]
			if m[r.name] != nil {
				panic("fn: two records for " + r.name)
			}
			m[r.name] = r
		}
	}
	return m
}

// LookupAggregate returns the implementation for a call of an aggregate function.
func LookupAggregate(f *tree.Function) (*Aggregate, error) {
	if r := aggregates[f.Name]; r != nil {
		for i := range r.overloads {
			if fits(r.overloads[i].signature, f.Args) {
				o := &r.overloads[i]
				a := &Aggregate{IgnoresNulls: !r.keepNulls, Collects: r.collects, New: o.start(f)}
				if f.Safe {
					a.New = suppressing(a.New, f.Type.Kind)
				}
				if o.groups != nil && !f.Safe {
					a.NewGroups = o.groups(f)
				} else {
					a.NewGroups = func() Groups { return &stateGroups{start: a.New} }
				}
				return a, nil
			}
		}
	}
	return nil, unsupported(f)
}

// aggregateDescriptions describes all aggregate functions, sorted by name.
func aggregateDescriptions() []Description {
	list := make([]Description, 0, len(aggregates))
	for _, r := range aggregates {
		d := Description{Name: r.name, Doc: r.doc}
		for _, o := range r.overloads {
			d.Signatures = append(d.Signatures, o.signature)
		}
		list = append(list, d)
	}
	slices.SortFunc(list, func(a, b Description) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// suppressing makes SAFE.f of an aggregate f: after an error the result of the group is NULL.
func suppressing(start func() State, kind value.Kind) func() State {
	return func() State { return &safeState{State: start(), kind: kind} }
}

type safeState struct {
	State
	kind   value.Kind
	failed bool
}

func (s *safeState) Add(args []value.Value) error {
	if s.failed {
		return nil
	}
	err := s.State.Add(args)
	if err != nil && suppressible(err) {
		s.failed = true
		return nil
	}
	return err
}

func (s *safeState) Result() (value.Value, error) {
	if s.failed {
		return null(s.kind)
	}
	v, err := s.State.Result()
	if err != nil && suppressible(err) {
		return null(s.kind)
	}
	return v, err
}
