package prepare

import (
	"context"

	"github.com/crowfoot-db/crowfoot/value"
)

// TextsBeforeGeneric is how many SQL texts that differ only in literals get plans of their own before the Preparer
// makes a plan that they can share: see genericPlan.
const TextsBeforeGeneric = textsBeforeGeneric

// Preparer returns the Preparer that has prepared the statement.
func (s *Statement) Preparer() *Preparer { return s.preparer }

// Shares reports whether the statement shares its plan with statements that have other literals.
func (s *Statement) Shares() bool { return s.literals != nil }

// Alone prepares an SQL text with its literals, without the caches.
func (p *Preparer) Alone(ctx context.Context, sql string, params map[string]*value.Type, opts Options) (*Statement, error) {
	return p.prepare(ctx, sql, params, opts)
}

// Kept returns the numbers of statements and of normalized texts in the caches.
func (p *Preparer) Kept() (statements, texts int) { return p.statements.Len(), p.generic.Len() }

// Has reports whether the statement of a text is in the cache.
func (p *Preparer) Has(text string) bool {
	_, ok := p.statements.Get(text)
	return ok
}

// Normalized is an SQL text with parameters in the place of its literals.
type Normalized struct{ text *normalizedText }

// Normalize replaces the literals of a text by parameters; ok is false if the text must be prepared with its literals.
func (p *Preparer) Normalize(sql string, params map[string]*value.Type, opts Options) (n Normalized, ok bool) {
	n.text = p.normalize(sql, params, opts)
	return n, n.text != nil
}

// Share makes the generic plan of the text if the text has none yet. It reports whether the text has a generic plan
// now. The parameter own is the statement that was prepared from the text with its literals.
func (n Normalized) Share(own *Statement) bool {
	if n.text.slot.plan.Load() == nil {
		if shared := n.text.generic(context.Background(), own); shared != nil {
			n.text.slot.plan.Store(shared)
		}
	}
	return n.text.slot.plan.Load() != nil
}

// Statement returns a Statement for the text that uses the generic plan. It returns nil if there is no generic plan, or
// if a literal does not fit that plan.
func (n Normalized) Statement() *Statement { return n.text.statement() }
