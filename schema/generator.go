package schema

import (
	"reflect"
	"strconv"
	"strings"

	"github.com/cloudspannerecosystem/memefish/ast"

	"github.com/crowfoot-db/crowfoot/schema/immutable"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// Generator produces the values of a sequence or of an identity column. A counter goes up by one, and each value is the
// counter with its low 63 bits reversed. A Generator is immutable.
type Generator struct {
	// Counter is the ID of the counter. RESTART COUNTER WITH replaces it by a new counter. The IDs are from the same
	// sequence as TableIDs.
	Counter TableID `json:"counter"`
	// NamesKind says that the statement named the kind, BIT_REVERSED_POSITIVE, which is the only one. Otherwise the
	// database's option default_sequence_kind names it.
	NamesKind bool   `json:"names_kind,omitempty"`
	Start     *int64 `json:"start,omitempty"` // the first value of the counter; nil: 1
	// SkipMin and SkipMax are the first and the last of the values that are skipped; nil if there are none.
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

// Skips reports whether a value is skipped.
func (g *Generator) Skips(v int64) bool {
	return g.SkipMin != nil && *g.SkipMin <= v && v <= *g.SkipMax
}

// newGenerator makes a generator with a new counter from the clauses of a statement.
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

// A Restart is a generator with a new counter, which replaces another one.
type Restart struct {
	Generator *Generator
	Before    *Generator // the generator with the old counter
}

// Restarts lists the generators of c whose counters differ from those in before, the previous version.
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
