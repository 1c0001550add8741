package prepare

import (
	"context"

	"github.com/crowfoot-db/crowfoot/value"
)

// TextsBeforeGeneric is how many texts are prepared by themselves before a generic plan is tried.
const TextsBeforeGeneric = textsBeforeGeneric

// Preparer returns the Preparer that has prepared the statement.
func (s *Statement) Preparer() *Preparer { return s.preparer }

// Shares reports whether the statement shares its plan with texts that have other literals.
func (s *Statement) Shares() bool { return s.literals != nil }

// Alone prepares a text by itself and does not keep it.
func (p *Preparer) Alone(ctx context.Context, sql string, params map[string]*value.Type, opts Options) (*Statement, error) {
	return p.prepare(ctx, sql, params, opts)
}

// Kept returns the numbers of statements and of normalized texts that are kept.
func (p *Preparer) Kept() (statements, texts int) { return p.statements.Len(), p.generic.Len() }

// Has reports whether the statement of a text is kept.
func (p *Preparer) Has(text string) bool {
	_, ok := p.statements.Get(text)
	return ok
}

// Normalized is a text without its literals.
type Normalized struct{ text *normalizedText }

// Normalize replaces the literals of a text by parameters; ok is false if the text must be prepared by itself.
func (p *Preparer) Normalize(sql string, params map[string]*value.Type, opts Options) (n Normalized, ok bool) {
	n.text = p.normalize(sql, params, opts)
	return n, n.text != nil
}

// Share makes the generic plan of the text, if it has none, and reports whether it has one. own is the text as it was
// prepared by itself.
func (n Normalized) Share(own *Statement) bool {
	if n.text.slot.plan.Load() == nil {
		if shared := n.text.generic(context.Background(), own); shared != nil {
			n.text.slot.plan.Store(shared)
		}
	}
	return n.text.slot.plan.Load() != nil
}

// Statement returns the text with its generic plan; nil if there is none, or if a literal does not fit it.
func (n Normalized) Statement() *Statement { return n.text.statement() }
