package prepare

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/crowfoot-db/crowfoot/sql/analyze"
	"github.com/crowfoot-db/crowfoot/sql/plan"
	"github.com/crowfoot-db/crowfoot/stats"
	"github.com/crowfoot-db/crowfoot/stats/cpu"
	"github.com/crowfoot-db/crowfoot/value"
)

// genericPlan is a prepared statement with parameters in the place of literals. SQL texts that differ only in literals
// share it.
//
// Analyzing and planning each such text would take a hundred times as long as running a short statement, and the plans
// would fill the cache. So only the first few texts are prepared with their literals. Then the normalized text, in
// which parameters replace the literals, is prepared as well. If its plan equals the plan of the latest text, apart
// from literals, later texts share the plan of the normalized text.
//
// A text is always prepared with its literals where sharing might be wrong: if the analyzer refuses the text, so that
// errors quote what the user wrote; if the plan of the text depends on the literals; or if a literal is written in an
// unusual form.
type genericPlan struct {
	*Prepared
	types  []*value.Type // types of the literals
	places []int         // places[i] is the index of the literal for which Plan.Params[i] stands; -1 if it stands for none
}

// genericSlot is the cache entry of a normalized text in a schema version.
type genericSlot struct {
	texts atomic.Int32 // number of texts that were prepared with their literals
	plan  atomic.Pointer[genericPlan]
}

// textsBeforeGeneric is how many texts with the same normalized text are prepared with their literals before the
// normalized text itself is prepared. If the plan of the normalized text cannot be shared, the normalized text is
// prepared again after ten times as many texts.
const textsBeforeGeneric = 3

// isTurn reports whether the normalized text is prepared after this many texts were prepared with their literals: it
// returns true for 3, 30, 300, ...
func isTurn(texts int32) bool {
	for texts > 0 && texts%10 == 0 {
		texts /= 10
	}
	return texts == textsBeforeGeneric
}

// normalizedText is an SQL text that may share a generic plan, with its normalized form.
type normalizedText struct {
	analyze.Normalized
	sql    string // the text with its literals
	params map[string]*value.Type
	slot   *genericSlot
}

// normalize replaces the literals of a text by parameters and finds or makes the genericSlot of the resulting text. It
// returns nil if the text must be prepared with its literals.
func (p *Preparer) normalize(sql string, params map[string]*value.Type, opts Options) *normalizedText {
	if opts != (Options{}) {
		return nil
	}
	normalized, ok := analyze.Normalize(sql)
	if !ok {
		return nil
	}
	key := statementKey(normalized.Text, params, opts)
	slot, ok := p.generic.Get(key)
	if !ok {
		slot = new(genericSlot)
		p.generic.Put(key, slot)
	}
	return &normalizedText{Normalized: normalized, sql: sql, params: params, slot: slot}
}

// statement returns a Statement for the text that uses the generic plan. It returns nil if there is no generic plan, or
// if a literal of the text does not fit that plan.
func (n *normalizedText) statement() *Statement {
	if n == nil {
		return nil
	}
	generic := n.slot.plan.Load()
	if generic == nil {
		return nil
	}
	values, ok := valuesAs(n.Literals, generic.types)
	if !ok {
		return nil
	}
	s := &Statement{Prepared: generic.Prepared, Text: stats.TextOf(n.sql), literals: make([]value.Value, len(generic.places))}
	for p, at := range generic.places {
		if at >= 0 {
			s.literals[p] = values[at]
		}
	}
	return s
}

// prepared is called with the statement s of a text that was prepared with its literals, before a request uses s. It
// counts the text. If isTurn returns true for the count, it makes the generic plan, and adds the CPU time that this
// took to s.PlanTime.
func (n *normalizedText) prepared(ctx context.Context, s *Statement) {
	if n == nil || !isTurn(n.slot.texts.Add(1)) {
		return
	}
	s.PlanTime += cpu.Spent(ctx, func() {
		if generic := n.generic(ctx, s); generic != nil {
			generic.used.Store(true)
			n.slot.plan.Store(generic)
		}
	})
}

// generic prepares the normalized text and returns its generic plan. It returns nil if that plan differs from the plan
// of s, the statement of the text n.sql, or could differ from the plan of another text with other literals.
func (n *normalizedText) generic(ctx context.Context, s *Statement) *genericPlan {
	types, err := s.preparer.analyze().LiteralTypes(ctx, n.sql, n.params, n.Literals)
	if err != nil {
		return nil
	}
	values, ok := valuesAs(n.Literals, types)
	if !ok {
		return nil
	}
	declared := make(map[string]*value.Type, len(n.params)+len(n.Literals))
	for name, t := range n.params {
		declared[name] = t
	}
	named := make(map[string]value.Value, len(n.Literals))
	for at, l := range n.Literals {
		declared[l.Param], named[l.Param] = types[at], values[at]
	}
	general, err := s.preparer.prepare(ctx, n.Text, declared, Options{})
	if err != nil || !plan.EqualModuloLiterals(s.Plan, general.Plan, named) || !slices.EqualFunc(s.Undeclared, general.Undeclared, equalParams) {
		return nil
	}
	generic := &genericPlan{Prepared: general.Prepared, types: types}
	for _, p := range general.Plan.Params {
		generic.places = append(generic.places, slices.IndexFunc(n.Literals, func(l analyze.Literal) bool { return l.Param == p.Name }))
	}
	return generic
}

func equalParams(a, b plan.Param) bool { return a.Name == b.Name && a.Type.Equal(b.Type) }

// valuesAs converts literals to values of the given types. It returns false if the value of a literal is not certain.
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
