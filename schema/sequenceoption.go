package schema

import (
	"strings"

	"github.com/cloudspannerecosystem/memefish/ast"

	"github.com/crowfoot-db/crowfoot/usererror"
)

// SequenceKind is the only kind of sequences, as options name it.
const SequenceKind = "bit_reversed_positive"

// setOptions sets the options sequence_kind, skip_range_min, skip_range_max and start_with_counter. restarts says that
// the last was among them.
func (g *Generator) setOptions(options *ast.Options) (restarts bool, err error) {
	for _, r := range options.Records {
		name := strings.ToLower(r.Name.Name)
		switch name {
		case "sequence_kind":
			err = g.setKind(name, r.Value)
		case "skip_range_min":
			g.SkipMin, err = intOption(name, r.Value)
		case "skip_range_max":
			g.SkipMax, err = intOption(name, r.Value)
		case "start_with_counter":
			restarts = true
			if g.Start, err = intOption(name, r.Value); err == nil && g.Start != nil && *g.Start < 1 {
				err = usererror.BadSequenceStart()
			}
		default:
			err = usererror.SequenceOptionNotFound(r.Name.Name)
		}
		if err != nil {
			return false, err
		}
	}
	return restarts, g.checkSkipRange()
}

func (g *Generator) setKind(option string, e ast.Expr) error {
	kind, ok := e.(*ast.StringLiteral)
	if !ok {
		return usererror.SequenceOptionType(option, "string")
	}
	if !strings.EqualFold(kind.Value, SequenceKind) {
		return usererror.BadSequenceKind(kind.Value)
	}
	g.NamesKind = true
	return nil
}

// intOption returns the value of an option; nil for NULL.
func intOption(option string, e ast.Expr) (*int64, error) {
	negative := false
	if minus, ok := e.(*ast.UnaryExpr); ok && minus.Op == ast.OpMinus {
		e, negative = minus.Expr, true
	}
	switch e := e.(type) {
	case *ast.NullLiteral:
		return nil, nil
	case *ast.IntLiteral:
		if n, err := parseInt(e); err == nil {
			if negative {
				n = -n
			}
			return &n, nil
		}
	}
	return nil, usererror.SequenceOptionType(option, "INT64")
}

// SequenceOption is an option of a sequence as INFORMATION_SCHEMA shows it.
type SequenceOption struct{ Name, Type, Value string }

// OptionsSet returns the options that are set, by either form of statements.
func (g *Generator) OptionsSet() []SequenceOption {
	var list []SequenceOption
	if g.NamesKind {
		list = append(list, SequenceOption{"sequence_kind", textOption, SequenceKind})
	}
	number := func(name string, n *int64) {
		if n != nil {
			list = append(list, SequenceOption{name, numberOption, intSQL(*n)})
		}
	}
	number("skip_range_min", g.SkipMin)
	number("skip_range_max", g.SkipMax)
	number("start_with_counter", g.Start)
	return list
}

func (g *Generator) optionsSQL() string {
	var list []string
	for _, o := range g.OptionsSet() {
		if o.Type == textOption {
			o.Value = quoteString(o.Value)
		}
		list = append(list, "  "+o.Name+" = "+o.Value)
	}
	if list == nil {
		return ""
	}
	return " OPTIONS (\n" + strings.Join(list, ",\n") + ")"
}
