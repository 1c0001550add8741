package database

import (
	"slices"
	"sync/atomic"

	"github.com/crowfoot-db/crowfoot/sql/analyze"
	"github.com/crowfoot-db/crowfoot/sql/plan"
	"github.com/crowfoot-db/crowfoot/stats"
	"github.com/crowfoot-db/crowfoot/stats/cpu"
	"github.com/crowfoot-db/crowfoot/value"
)

// A shape is what is known of texts that differ in literals alone. To analyze
// and plan each of them costs a hundred times what it costs to run the usual
// one, and fills the cache. So once a few texts of a shape were prepared, each
// by itself, the text with parameters in the place of literals is prepared as
// well. If its plan is that of the text at hand, operator for operator, with a
// parameter wherever that has the literal, then later texts share it.
//
// Whatever is not certain goes on being prepared by itself: a text that the
// analyzer refuses, so that errors are about the text that the user wrote;
// one whose plan depends on the literals; a literal of unusual form.
type shape struct {
	texts  atomic.Int32 // of the shape that were prepared
	shared atomic.Pointer[sharedPlan]
}

// sharedPlan is a prepared statement with parameters in the place of literals.
type sharedPlan struct {
	*Prepared
	types  []*value.Type // of the literals
	places []int         // the literal that Plan.Params[i] stands for, or -1
}

// textsUntilShared is how many texts of a shape are prepared by themselves before their plan is shared. A shape that does not share
// then is tried again after ten times as many, should it have been for the text at hand.
const textsUntilShared = 3

func isTurn(texts int32) bool {
	for texts > 0 && texts%10 == 0 {
		texts /= 10
	}
	return texts == textsUntilShared
}

// instance is a text of a shape.
type instance struct {
	*shape
	of     analyze.Shape
	sql    string
	params map[string]*value.Type
}

// instance finds the shape of a text; nil if it has none.
func (v *version) instance(sql string, params map[string]*value.Type, opts Options) *instance {
	if opts != (Options{}) {
		return nil
	}
	of, ok := analyze.ShapeOf(sql)
	if !ok {
		return nil
	}
	key := statementKey(of.Text, params, opts)
	s, ok := v.shapes.get(key)
	if !ok {
		s = new(shape)
		v.shapes.put(key, s)
	}
	return &instance{shape: s, of: of, sql: sql, params: params}
}

// statement is the text with the plan that its shape shares; nil without.
func (i *instance) statement() *Statement {
	if i == nil {
		return nil
	}
	shared := i.shared.Load()
	if shared == nil {
		return nil
	}
	values, ok := valuesAs(i.of.Literals, shared.types)
	if !ok {
		return nil
	}
	s := &Statement{Prepared: shared.Prepared, Text: stats.TextOf(i.sql), literals: make([]value.Value, len(shared.places))}
	for p, at := range shared.places {
		if at >= 0 {
			s.literals[p] = values[at]
		}
	}
	return s
}

// prepared counts a text that was prepared by itself, and prepares what others can share when it is time to. That is a part of
// what it took to prepare s, which nobody uses yet.
func (i *instance) prepared(s *Statement) {
	if i == nil || !isTurn(i.texts.Add(1)) {
		return
	}
	s.PlanTime += cpu.Spent(func() {
		if shared := i.share(s); shared != nil {
			shared.used.Store(true)
			i.shared.Store(shared)
		}
	})
}

// share prepares the text with parameters. Nil if its plan is not that of s, or if it is not certain to be that of every text.
func (i *instance) share(s *Statement) *sharedPlan {
	v, literals := s.version, i.of.Literals
	types, err := v.analyze().LiteralTypes(i.sql, i.params, literals)
	if err != nil {
		return nil
	}
	values, ok := valuesAs(literals, types)
	if !ok {
		return nil
	}
	declared := make(map[string]*value.Type, len(i.params)+len(literals))
	for name, t := range i.params {
		declared[name] = t
	}
	named := make(map[string]value.Value, len(literals))
	for at, l := range literals {
		declared[l.Param], named[l.Param] = types[at], values[at]
	}
	general, err := v.prepare(i.of.Text, declared, Options{}, s.clock)
	if err != nil || !plan.Same(s.Plan, general.Plan, named) || !slices.EqualFunc(s.Undeclared, general.Undeclared, sameParam) {
		return nil
	}
	shared := &sharedPlan{Prepared: general.Prepared, types: types}
	for _, p := range general.Plan.Params {
		shared.places = append(shared.places, slices.IndexFunc(literals, func(l analyze.Literal) bool { return l.Param == p.Name }))
	}
	return shared
}

func sameParam(a, b plan.Param) bool { return a.Name == b.Name && a.Type.Equal(b.Type) }

// valuesAs are the literals as values of these types; false if one of them is not certain.
func valuesAs(literals []analyze.Literal, types []*value.Type) ([]value.Value, bool) {
	values := make([]value.Value, len(literals))
	for i := range literals {
		var ok bool
		if values[i], ok = literals[i].As(types[i]); !ok {
			return nil, false
		}
	}
	return values, true
}
