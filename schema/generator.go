package schema

import (
	"reflect"
	"strconv"
	"strings"

	"github.com/cloudspannerecosystem/memefish/ast"

	"github.com/crowfoot-db/crowfoot/schema/immutable"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// Generator produces the values of a sequence or of an identity column. Its counter goes up by one, and each value is
// the counter with its low 63 bits in reverse order. A Generator is immutable.
type Generator struct {
	// Counter is the ID of the counter. RESTART COUNTER WITH replaces the counter by a new one with another ID. No
	// other counter, table, index or object of the database has the same ID.
	Counter TableID `json:"counter"`
	// NamesKind says that a statement has named the generator's kind, which can only be BIT_REVERSED_POSITIVE. If no
	// statement has named it, the database's option default_sequence_kind gives the kind.
	NamesKind bool   `json:"names_kind,omitempty"`
	Start     *int64 `json:"start,omitempty"` // the first value of the counter; nil means 1
	// SkipMin and SkipMax are the first and the last value of the range that is skipped; nil if no range is skipped.
	SkipMin *int64 `json:"skip_min,omitempty"`
	SkipMax *int64 `json:"skip_max,omitempty"`
}

const kindClause = "BIT_REVERSED_POSITIVE"

// FirstCounter returns the first value of the counter.
func (g *Generator) FirstCounter() int64 {
	if g.Start == nil {
		return 1
	}
	return *g.Start
}

// Skips reports whether v is in the range of values that the generator skips.
func (g *Generator) Skips(v int64) bool {
	return g.SkipMin != nil && *g.SkipMin <= v && v <= *g.SkipMax
}

// newGenerator makes a generator with a new counter from the clauses of a CREATE statement.
func (d *draft) newGenerator(clauses []ast.SequenceParam) (g Generator, err error) {
	clauseTypes := map[reflect.Type]bool{}
	for _, c := range clauses {
		if clauseTypes[reflect.TypeOf(c)] {
			return g, usererror.SequenceClauseTwice()
		}
		clauseTypes[reflect.TypeOf(c)] = true
		switch c := c.(type) {
		case *ast.BitReversedPositive:
			g.NamesKind = true
		case *ast.SkipRange:
			err = g.setSkipRange(c)
		case *ast.StartCounterWith:
			err = g.setStart(c.Counter)
		}
		if err != nil {
			return g, err
		}
	}
	g.Counter = d.newID()
	return g, nil
}

func (g *Generator) setStart(lit *ast.IntLiteral) error {
	n, err := parseInt(lit)
	if err != nil || n < 1 {
		return usererror.BadSequenceStart()
	}
	g.Start = &n
	return nil
}

func (g *Generator) setSkipRange(s *ast.SkipRange) error {
	first, errFirst := parseInt(s.Min)
	last, errLast := parseInt(s.Max)
	if errFirst != nil || errLast != nil {
		return usererror.SequenceOptionType("SKIP RANGE", "INT64")
	}
	g.SkipMin, g.SkipMax = &first, &last
	return g.checkSkipRange()
}

func (g *Generator) checkSkipRange() error {
	switch {
	case (g.SkipMin == nil) != (g.SkipMax == nil):
		return usererror.SequenceSkipRangeHalf()
	case g.SkipMin == nil:
		return nil
	case *g.SkipMin > *g.SkipMax:
		return usererror.SequenceSkipRangeOrder()
	case *g.SkipMax < 0:
		return usererror.SequenceSkipRangeNegative()
	}
	return nil
}

// clausesSQL prints the generator's properties as clauses of DDL.
func (g *Generator) clausesSQL() string {
	var list []string
	if g.NamesKind {
		list = append(list, kindClause)
	}
	if g.SkipMin != nil {
		list = append(list, "SKIP RANGE "+intSQL(*g.SkipMin)+", "+intSQL(*g.SkipMax))
	}
	if g.Start != nil {
		list = append(list, "START COUNTER WITH "+intSQL(*g.Start))
	}
	return strings.Join(list, " ")
}

func intSQL(n int64) string { return strconv.FormatInt(n, 10) }

// Counters returns the IDs of all counters of sequences and identity columns.
func (c *Catalog) Counters() map[TableID]bool {
	all := map[TableID]bool{}
	for s := range c.Sequences() {
		all[s.Counter] = true
	}
	for t := range c.Tables() {
		for _, col := range t.Columns {
			if col.Identity != nil {
				all[col.Identity.Counter] = true
			}
		}
	}
	return all
}

// A Restart says that a generator has a new counter in place of an old one.
type Restart struct {
	Generator *Generator
	Before    *Generator // the earlier version of Generator, with the old counter
}

// Restarts lists the generators of c that have another counter than in before, the previous version of the catalog.
func (c *Catalog) Restarts(before *Catalog) (list []Restart) {
	add := func(was, is *Generator) {
		if was != nil && is != nil && was.Counter != is.Counter {
			list = append(list, Restart{is, was})
		}
	}
	immutable.Differences(before.objects, c.objects, func(_ TableID, was, is Object) {
		old, _ := was.(*Sequence)
		if s, ok := is.(*Sequence); ok && old != nil {
			add(&old.Generator, &s.Generator)
		}
	})
	immutable.Differences(before.tables, c.tables, func(_ TableID, was, is *Table) {
		if was == nil || is == nil {
			return
		}
		for _, col := range is.Columns {
			if old := was.columnByID(col.ID); old != nil {
				add(old.Identity, col.Identity)
			}
		}
	})
	return list
}

// SequenceKind is the only kind of sequences, as the options sequence_kind and default_sequence_kind spell it.
const SequenceKind = "bit_reversed_positive"

// setOptions sets the generator's properties from an OPTIONS clause. The result restarts is true if the clause contains
// the option start_with_counter.
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

// intOption returns the value of an integer option; nil for NULL.
func intOption(option string, e ast.Expr) (*int64, error) {
	sign := ""
	if minus, ok := e.(*ast.UnaryExpr); ok && minus.Op == ast.OpMinus {
		e, sign = minus.Expr, "-"
	}
	switch e := e.(type) {
	case *ast.NullLiteral:
		return nil, nil
	case *ast.IntLiteral:
		if n, err := parseSigned(sign, e); err == nil {
			return &n, nil
		}
	}
	return nil, usererror.SequenceOptionType(option, "INT64")
}

// SequenceOption is one option of a sequence, as INFORMATION_SCHEMA shows it.
type SequenceOption struct{ Name, Type, Value string }

// OptionsSet returns the properties that are set, as options, whether a statement set them as options or as clauses.
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

// setIdentity makes a new column an identity column.
// Source: https://cloud.google.com/spanner/docs/primary-key-default-value#identity-columns.
func (d *draft) setIdentity(t *Table, c *Column, clauses []ast.SequenceParam) error {
	if c.Type.Kind != value.Int64 {
		return usererror.IdentityType(t.FullName(), c.Name)
	}
	g, err := d.newGenerator(clauses)
	if err != nil {
		return err
	}
	if !g.NamesKind && d.Options[defaultSequenceKind] == "" {
		return usererror.IdentityKindMissing(c.Name)
	}
	c.Identity = &g
	return nil
}

// redefineIdentity runs the identity clause of ALTER COLUMN c type .... It returns an error if the statement would turn
// an identity column into an ordinary one, or the reverse. An identity column keeps its counter, unless the clause has
// a start value.
func (d *draft) redefineIdentity(t *Table, c *Column, s *ast.AlterColumnType) error {
	old := c.Identity
	switch {
	case old == nil && d.src.Semantics == nil:
		return nil
	case old == nil:
		return usererror.AlterToIdentity(t.FullName(), c.Name)
	case s.DefaultExpr != nil || s.GeneratedExpr != nil:
		return usererror.IdentityToDefault(t.FullName(), c.Name)
	case d.src.Semantics == nil:
		return usererror.DropIdentity(t.FullName(), c.Name)
	}
	if err := d.setSemantics(t, c, d.src.Semantics); err != nil {
		return err
	}
	if c.Identity.Start == nil {
		c.Identity.Counter = old.Counter
	}
	return nil
}

// alterIdentity runs ALTER COLUMN c ALTER IDENTITY ....
func (d *draft) alterIdentity(t *Table, c *Column, s ast.IdentityAlteration) (err error) {
	if c.Identity == nil {
		return usererror.NotIdentity(t.FullName(), c.Name)
	}
	g := *c.Identity
	switch s := s.(type) {
	case *ast.SetSkipRange:
		err = g.setSkipRange(s.SkipRange)
	case *ast.SetNoSkipRange:
		g.SkipMin, g.SkipMax = nil, nil
	case *ast.RestartCounterWith:
		g.Counter = d.newID()
		err = g.setStart(s.Counter)
	}
	c.Identity = &g
	return err
}

// nextOf returns the DEFAULT of an identity column: an expression that takes the next value of the column's counter.
// DDL does not print this expression; it prints the identity clause.
func nextOf(t *Table, c *Column, compiler Compiler) *Expr {
	name := "_identity_seq_" + strings.ReplaceAll(t.FullName(), ".", "__") + "__" + c.Name
	return &Expr{SQL: "GET_NEXT_SEQUENCE_VALUE(SEQUENCE " + name + ")", Eval: compiler.NextValue(name, c.Identity)}
}

// identitySQL prints the identity clause of a column.
func (g *Generator) identitySQL() string {
	s := " GENERATED BY DEFAULT AS IDENTITY"
	if clauses := g.clausesSQL(); clauses != "" {
		s += " (" + clauses + ")"
	}
	return s
}
