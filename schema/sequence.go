package schema

import (
	"iter"
	"slices"
	"strings"

	"github.com/cloudspannerecosystem/memefish/ast"
	"github.com/cloudspannerecosystem/memefish/token"

	"github.com/crowfoot-db/crowfoot/schema/syntax"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// Sequence produces positive INT64 values. Each value comes only once, and the values are scattered over the whole
// range. Source:
// https://cloud.google.com/spanner/docs/reference/standard-sql/data-definition-language#sequence_statements.
type Sequence struct {
	Entity
	Generator
	// Form says whether statements write the properties of the sequence as clauses or as options. A sequence that was
	// defined with clauses cannot be altered with options, and the reverse.
	Form SequenceForm `json:"form,omitempty"`
}

// SequenceForm is one of the two forms in which a statement can write the properties of a sequence.
type SequenceForm string

const (
	NoForm      SequenceForm = ""        // CREATE SEQUENCE s, without properties
	ClauseForm  SequenceForm = "clauses" // SKIP RANGE 1, 2
	OptionsForm SequenceForm = "options" // OPTIONS (skip_range_min = 1, skip_range_max = 2)
)

var sequences = &objectKind{
	name: "sequence", noun: "Sequence", stage: beforeTables,
	empty: func() Object { return new(Sequence) },
}

func (*Sequence) kind() *objectKind { return sequences }

// Sequences yields the sequences that users have created, in order of creation.
func (c *Catalog) Sequences() iter.Seq[*Sequence] { return objectsOf[*Sequence](c) }

// Sequence returns the sequence called name ("s" or "schema.s"), ignoring case, or nil.
func (c *Catalog) Sequence(name string) *Sequence {
	return objectByName[*Sequence](c, sequences, "", name)
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
	if d.src.NoOptions {
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
		if d.src.IfExists && isMissing(err) {
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

// sequence returns the sequence that the statement names.
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

// sequencesOf returns the sequences from which the DEFAULT of a column takes values, directly or in functions that
// the DEFAULT calls.
func (c *Catalog) sequencesOf(col *Column) []*Sequence {
	if col.Default == nil || col.Identity != nil {
		return nil
	}
	list := c.SequencesIn(col.Default.SQL)
	for _, f := range col.Default.Functions {
		for _, u := range f.Uses {
			o, _ := c.objects.Get(u.ID)
			if s, ok := o.(*Sequence); ok && !slices.Contains(list, s) {
				list = append(list, s)
			}
		}
	}
	return list
}

// SequencesIn returns the sequences that an expression or a query passes to functions, as in f(SEQUENCE s).
func (c *Catalog) SequencesIn(sql string) (list []*Sequence) {
	if !syntax.ContainsWord(sql, "SEQUENCE") {
		return nil
	}
	lexer := syntax.NewLexer(sql)
	before := ""
	for lexer.Next() == nil && lexer.Token.Kind != token.TokenEOF {
		if before == "(" && strings.EqualFold(lexer.Token.Raw, "SEQUENCE") && lexer.Next() == nil {
			if s := c.Sequence(pathAt(lexer)); s != nil {
				list = append(list, s)
			}
		}
		before = string(lexer.Token.Kind)
	}
	return list
}

// pathAt reads a name, or several names with dots between them, and moves the lexer past it.
func pathAt(lexer *syntax.Lexer) string {
	var path strings.Builder
	for lexer.Token.Kind == token.TokenIdent || lexer.Token.Kind == "." {
		path.WriteString(lexer.Token.AsString)
		if lexer.Token.Kind == "." {
			path.WriteByte('.')
		}
		if lexer.Next() != nil {
			break
		}
	}
	return path.String()
}
