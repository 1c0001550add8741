package schema

import (
	"iter"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/cloudspannerecosystem/memefish/ast"
	"github.com/cloudspannerecosystem/memefish/token"

	"github.com/crowfoot-db/crowfoot/usererror"
)

// Sequence gives out positive INT64 values, each once and scattered over the whole range.
// Source: https://cloud.google.com/spanner/docs/reference/standard-sql/data-definition-language#sequence_statements.
type Sequence struct {
	Entity
	Generator
	// Form is how statements set its properties. Once they have done it in one form, the other is refused.
	Form SequenceForm `json:"form,omitempty"`
}

// SequenceForm is how a statement sets the properties of a sequence.
type SequenceForm string

const (
	NoForm      SequenceForm = ""        // CREATE SEQUENCE s
	ClauseForm  SequenceForm = "clauses" // SKIP RANGE 1, 2
	OptionsForm SequenceForm = "options" // OPTIONS (skip_range_min = 1, skip_range_max = 2)
)

// Generator is what a sequence and an identity column give out values by: a counter goes up by one, and each value is the counter with its
// low 63 bits reversed. Immutable.
type Generator struct {
	// Counter numbers the counter: RESTART COUNTER WITH puts another one in its place. The numbers are from the sequence of TableIDs.
	Counter TableID `json:"counter"`
	// NamesKind says that the statement named the kind, of which there is one, BIT_REVERSED_POSITIVE. If not, the database names it by its
	// option default_sequence_kind.
	NamesKind bool   `json:"names_kind,omitempty"`
	Start     *int64 `json:"start,omitempty"` // nil: 1
	// SkipMin and SkipMax are the first and the last of the values that are passed over; nil if there are none.
	SkipMin *int64 `json:"skip_min,omitempty"`
	SkipMax *int64 `json:"skip_max,omitempty"`
}

// SequenceKind is the one kind of sequences, as options name it.
const SequenceKind = "bit_reversed_positive"

const kindClause = "BIT_REVERSED_POSITIVE"

var sequences = &objectKind{
	name: "sequence", noun: "Sequence", stage: beforeTables,
	empty: func() Object { return new(Sequence) },
}

func (*Sequence) kind() *objectKind { return sequences }

// Sequences are the sequences that users have made, in order of creation.
func (c *Catalog) Sequences() iter.Seq[*Sequence] { return objectsOf[*Sequence](c) }

// Sequence returns the sequence called name ("s" or "schema.s"), ignoring case, or nil.
func (c *Catalog) Sequence(name string) *Sequence {
	return objectByName[*Sequence](c, sequences, "", name)
}

// FirstCounter is where the counter begins.
func (g *Generator) FirstCounter() int64 {
	if g.Start == nil {
		return 1
	}
	return *g.Start
}

// Skips says whether a value is passed over.
func (g *Generator) Skips(v int64) bool {
	return g.SkipMin != nil && *g.SkipMin <= v && v <= *g.SkipMax
}

func (d *draft) createSequence(s *ast.CreateSequence) error {
	schema, name, err := d.path(sequences.noun, s.Name)
	if err != nil {
		return err
	}
	if s.IfNotExists && d.Sequence(fullName(schema, name)) != nil {
		return d.nothing()
	}
	if err := d.checkNew(sequences, schema, name); err != nil {
		return err
	}
	if schema, err = d.findSchema(schema); err != nil {
		return err
	}
	made := &Sequence{Entity: Entity{ID: d.newID(), Schema: schema, Name: name}}
	if made.Generator, err = d.newGenerator(s.Params); err != nil {
		return err
	}
	if d.src.noOptions {
		s.Options = nil
	}
	switch {
	case len(s.Params) > 0 && s.Options != nil:
		return usererror.SequenceFormMixed(made.FullName())
	case len(s.Params) > 0:
		made.Form = ClauseForm
	case s.Options != nil:
		made.Form = OptionsForm
		if _, err := made.setOptions(s.Options); err != nil {
			return err
		}
	}
	if !made.NamesKind && d.Options[defaultSequenceKind] == "" {
		return usererror.SequenceKindMissing()
	}
	d.put(made)
	return nil
}

func (d *draft) alterSequence(s *ast.AlterSequence) error {
	old, err := d.sequence(s.Name)
	if err != nil {
		if d.src.ifExists && isMissing(err) {
			return d.nothing()
		}
		return err
	}
	altered, form := *old, ClauseForm
	if s.Options != nil {
		form = OptionsForm
	}
	if old.Form != NoForm && old.Form != form {
		return usererror.SequenceFormMixed(old.FullName())
	}
	altered.Form = form
	restarts := s.RestartCounterWith != nil
	if s.Options != nil {
		if restarts, err = altered.setOptions(s.Options); err != nil {
			return err
		}
	}
	if s.SkipRange != nil {
		err = altered.setSkipRange(s.SkipRange)
	}
	if s.NoSkipRange != nil {
		altered.SkipMin, altered.SkipMax = nil, nil
	}
	if err == nil && s.RestartCounterWith != nil {
		err = altered.setStart(s.RestartCounterWith.Counter)
	}
	if err != nil {
		return err
	}
	if restarts {
		altered.Counter = d.newID()
	}
	d.put(&altered)
	return nil
}

func (d *draft) dropSequence(s *ast.DropSequence) error {
	old, err := d.sequence(s.Name)
	if err != nil {
		if s.IfExists && isMissing(err) {
			return d.nothing()
		}
		return err
	}
	for t := range d.Tables() {
		for _, c := range t.Columns {
			for _, used := range d.sequencesOf(c) {
				if used.ID == old.ID {
					return usererror.DropSequenceInDefault(old.FullName(), t.FullName()+"."+c.Name)
				}
			}
		}
	}
	if err := checkUnnamed("SEQUENCE `"+old.FullName()+"`", d.dependentsOf(old.ID, nil)); err != nil {
		return err
	}
	d.drop(old)
	return nil
}

// sequence finds a sequence that the statement names.
func (d *draft) sequence(p *ast.Path) (*Sequence, error) {
	schema, name, err := d.path(sequences.noun, p)
	if err != nil {
		return nil, err
	}
	if s := d.Sequence(fullName(schema, name)); s != nil {
		return s, nil
	}
	return nil, sequences.missing(schema, name)
}

// newGenerator makes the generator that clauses describe, with a new counter.
func (d *draft) newGenerator(clauses []ast.SequenceParam) (g Generator, err error) {
	seen := map[reflect.Type]bool{}
	for _, c := range clauses {
		if seen[reflect.TypeOf(c)] {
			return g, usererror.SequenceClauseTwice()
		}
		seen[reflect.TypeOf(c)] = true
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

// setOptions takes OPTIONS (sequence_kind, skip_range_min, skip_range_max, start_with_counter). restarts says that the last was among them.
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

// intOption is the value of an option; nil for NULL.
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

// sql implements Object.
func (s *Sequence) sql(*Catalog) []string {
	text := "CREATE SEQUENCE " + quotePath(s.Schema, s.Name)
	if s.Form == OptionsForm {
		return []string{text + s.optionsSQL()}
	}
	if clauses := s.clausesSQL(); clauses != "" {
		text += " " + clauses
	}
	return []string{text}
}

// clausesSQL prints the properties as clauses.
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

// SequenceOption is an option of a sequence as INFORMATION_SCHEMA shows it.
type SequenceOption struct{ Name, Type, Value string }

// OptionsSet are the options that are set, in whichever form that was done.
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

// sequencesOf are the sequences that the DEFAULT of a column takes values of: those that it names, and those that functions which it calls name.
func (c *Catalog) sequencesOf(col *Column) []*Sequence {
	if col.Default == nil || col.Identity != nil {
		return nil
	}
	list := c.SequencesIn(col.Default.SQL)
	for _, id := range col.Default.Functions {
		for _, u := range c.definedBy(id).definition().Uses {
			o, _ := c.objects.get(u.ID)
			if s, ok := o.(*Sequence); ok && !slices.Contains(list, s) {
				list = append(list, s)
			}
		}
	}
	return list
}

// SequencesIn are the sequences that an expression or a query names: SEQUENCE s, as the argument of a function.
func (c *Catalog) SequencesIn(sql string) (list []*Sequence) {
	if !containsWord(sql, "SEQUENCE") {
		return nil
	}
	lexer := newLexer(sql)
	before := ""
	for lexer.next() == nil && lexer.Token.Kind != token.TokenEOF {
		if before == "(" && strings.EqualFold(lexer.Token.Raw, "SEQUENCE") && lexer.next() == nil {
			if s := c.Sequence(pathAt(lexer)); s != nil {
				list = append(list, s)
			}
		}
		before = string(lexer.Token.Kind)
	}
	return list
}

// pathAt reads a name, or two with a dot between, and moves behind it.
func pathAt(lexer *lexer) string {
	var path strings.Builder
	for lexer.Token.Kind == token.TokenIdent || lexer.Token.Kind == "." {
		path.WriteString(lexer.Token.AsString)
		if lexer.Token.Kind == "." {
			path.WriteByte('.')
		}
		if lexer.next() != nil {
			break
		}
	}
	return path.String()
}

// containsWord says whether text contains a word, in any case.
func containsWord(text, word string) bool {
	for i := 0; i+len(word) <= len(text); i++ {
		if strings.EqualFold(text[i:i+len(word)], word) {
			return true
		}
	}
	return false
}

// Counters are the numbers of all counters of sequences and identity columns.
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

// A Restart is a generator whose counter took the place of another one.
type Restart struct {
	Generator *Generator
	Before    *Generator // as it was until then
}

// Restarts are those that make c of the version before it.
func (c *Catalog) Restarts(before *Catalog) (list []Restart) {
	add := func(was, is *Generator) {
		if was != nil && is != nil && was.Counter != is.Counter {
			list = append(list, Restart{is, was})
		}
	}
	differences(before.objects, c.objects, func(_ TableID, was, is Object) {
		old, _ := was.(*Sequence)
		if s, ok := is.(*Sequence); ok && old != nil {
			add(&old.Generator, &s.Generator)
		}
	})
	differences(before.tables, c.tables, func(_ TableID, was, is *Table) {
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
