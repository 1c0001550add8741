package plan

import (
	"slices"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/sql/fn/library"
	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/value"
)

// sarg (search argument) is a condition on one column of a scan, in a form that can bound a part of a key. Its
// values do not depend on the rows of the scan.
type sarg struct {
	op     sargOp
	column *schema.Column
	values []tree.Expr // one expression; sargIn has several, sargNull and sargNotNull none
	cond   int         // the index in predicate.conds of the condition from which the sarg is made
	exact  bool        // the sarg is equivalent to the condition, so a seek that uses the sarg implies the condition
}

type sargOp uint8

const (
	sargEqual   sargOp = iota // equal to values[0]
	sargIn                    // equal to one of the elements of values
	sargArray                 // equal to an element of the array values[0]
	sargNull                  // IS NULL
	sargNotNull               // IS NOT NULL
	sargLess                  // <
	sargAtMost                // <=
	sargGreater
	sargAtLeast
	sargPrefix // STARTS_WITH
	sargLike   // LIKE; never exact
	sargEach   // any value that occurs in the table or index; only skip scans use it, and no condition becomes it
)

// tupleSarg is a condition (a, b, ...) IN UNNEST(array of structs).
type tupleSarg struct {
	columns []*schema.Column
	array   tree.Expr
	cond    int
}

// predicate holds a scan's conditions, and the forms of these conditions that seeks can use.
type predicate struct {
	conds  []tree.Expr
	sargs  []sarg
	tuples []tupleSarg
	// The field either holds those conditions that have the form of an OR. Each alternative of an OR is analyzed as a
	// predicate of its own.
	either []disjunction
	// notNull holds columns that are not NULL in any row for which all conditions are TRUE.
	notNull map[*schema.Column]bool
}

type disjunction struct {
	cond  int
	cases []predicate
}

// analyze finds the sargs in conds, which are conditions on the rows of s. A column that is not in s.out belongs to
// an enclosing row, so its value is known when the scan opens.
func (s *scanRel) analyze(conds []tree.Expr) predicate {
	p := predicate{conds: conds, notNull: map[*schema.Column]bool{}}
	byID := map[int]*schema.Column{}
	for i, c := range s.out {
		byID[c.ID] = s.columns[i]
	}
	a := analyzer{byID: byID, into: &p}
	for i, c := range conds {
		for id := range rejectsNull(c) {
			if col := byID[id]; col != nil {
				p.notNull[col] = true
			}
		}
		a.condition(i, c)
	}
	for _, c := range s.table.Columns {
		if c.NotNull {
			p.notNull[c] = true
		}
	}
	for i, c := range conds {
		if d, ok := s.alternatives(i, c); ok {
			p.either = append(p.either, d)
		}
	}
	return p
}

// alternatives analyzes each operand of an OR as a predicate of its own. It returns false for any other condition.
// i is the index of cond in the scan's conditions.
func (s *scanRel) alternatives(i int, cond tree.Expr) (disjunction, bool) {
	d := disjunction{cond: i}
	if hasSubquery(cond) {
		return d, false // the seek and the remaining condition would both run the subquery
	}
	list := disjuncts(cond, nil)
	if len(list) < 2 || len(list) > maxAlternatives {
		return d, false
	}
	for _, c := range list {
		d.cases = append(d.cases, s.analyze(split(c, nil)))
	}
	return d, true
}

// maxAlternatives is the maximum number of alternatives of an OR from which seeks are made. A longer OR is tested
// for each row.
const maxAlternatives = 1000

func disjuncts(e tree.Expr, list []tree.Expr) []tree.Expr {
	if c, ok := isCall(e, "$or"); ok {
		for _, a := range c.Args {
			list = disjuncts(a, list)
		}
		return list
	}
	if c, ok := isCall(e, "$in"); ok {
		if _, tuple := c.Args[0].(*tree.MakeStruct); tuple {
			for _, a := range c.Args[1:] {
				list = append(list, call("$equal", c.Args[0], a))
			}
			return list
		}
	}
	return append(list, e)
}

// analyzer makes sargs from conditions and adds them to a predicate (the field into). byID holds the columns of the
// scan by Col.ID.
type analyzer struct {
	byID map[int]*schema.Column
	into *predicate
}

// comparisons maps each comparison function to the op of its sarg. flipped is the op if the column is on the right
// side.
var comparisons = map[string]struct{ op, flipped sargOp }{
	"$equal":            {sargEqual, sargEqual},
	"$less":             {sargLess, sargGreater},
	"$less_or_equal":    {sargAtMost, sargAtLeast},
	"$greater":          {sargGreater, sargLess},
	"$greater_or_equal": {sargAtLeast, sargAtMost},
}

func (a *analyzer) add(op sargOp, c *schema.Column, cond int, exact bool, values ...tree.Expr) {
	a.into.sargs = append(a.into.sargs, sarg{op: op, column: c, values: values, cond: cond, exact: exact})
}

func (a *analyzer) condition(i int, cond tree.Expr) {
	if col := a.column(cond); col != nil {
		a.add(sargEqual, col, i, true, &tree.Literal{T: value.BoolType, Value: value.OfBool(true)})
		return
	}
	c, ok := cond.(*tree.Call)
	if !ok || c.Func.Safe {
		return
	}
	if op, ok := comparisons[c.Func.Name]; ok {
		if col := a.column(c.Args[0]); col != nil && a.bound(col, c.Args[1]) {
			a.add(op.op, col, i, true, c.Args[1])
		} else if col := a.column(c.Args[1]); col != nil && a.bound(col, c.Args[0]) {
			a.add(op.flipped, col, i, true, c.Args[0])
		}
		return
	}
	a.function(i, c)
}

func (a *analyzer) function(i int, c *tree.Call) {
	switch c.Func.Name {
	case "$in":
		if col := a.column(c.Args[0]); col != nil && !slices.ContainsFunc(c.Args[1:], func(v tree.Expr) bool { return !a.bound(col, v) }) {
			a.add(sargIn, col, i, true, c.Args[1:]...)
		}
	case "$in_array":
		a.inArray(i, c)
	case "$is_null":
		if col := a.column(c.Args[0]); col != nil {
			a.add(sargNull, col, i, true)
		}
	case "$not":
		if r := isNullOf(c.Args[0]); r != nil && a.column(r) != nil {
			a.add(sargNotNull, a.column(r), i, true)
		} else if col := a.column(c.Args[0]); col != nil {
			a.add(sargEqual, col, i, true, &tree.Literal{T: value.BoolType, Value: value.OfBool(false)})
		}
	case "starts_with":
		if col := a.column(c.Args[0]); col != nil && a.bound(col, c.Args[1]) {
			a.add(sargPrefix, col, i, true, c.Args[1])
		}
	case "$like":
		if col := a.column(c.Args[0]); col != nil && a.bound(col, c.Args[1]) {
			a.like(i, col, c.Args[1])
		}
	case "$or":
		a.orOfEqualities(i, c)
	}
}

// like adds a sarg for LIKE with a pattern. If the pattern is a constant, the sarg holds the part of the pattern before
// its first wildcard; if the pattern begins with a wildcard, like adds no sarg. The sarg is exact (it means the same as
// the condition) if the constant has no wildcard, or only a % at its end.
func (a *analyzer) like(i int, col *schema.Column, pattern tree.Expr) {
	if hasSubquery(pattern) {
		return
	}
	l, ok := pattern.(*tree.Literal)
	if !ok || l.Value.IsNull() {
		a.add(sargLike, col, i, false, pattern)
		return
	}
	prefix, rest := LikePrefix(l.Value.AsString())
	text := &tree.Literal{T: l.T, Value: value.OfString(prefix)}
	if l.T.Kind == value.Bytes {
		text.Value = value.OfBytes([]byte(prefix))
	}
	switch {
	case rest == "":
		a.add(sargEqual, col, i, true, text)
	case prefix != "":
		a.add(sargPrefix, col, i, rest == "%", text)
	}
}

// LikePrefix divides a LIKE pattern. The result prefix is the text before the first wildcard, without the backslashes
// of escapes. The result rest is the part of the pattern that begins with this wildcard.
func LikePrefix(pattern string) (prefix, rest string) {
	var out []byte
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; c {
		case '%', '_':
			return string(out), pattern[i:]
		case '\\':
			if i+1 == len(pattern) {
				return string(out), pattern[i:] // a pattern that ends in a backslash is an error, which LIKE reports
			}
			i++
			out = append(out, pattern[i])
		default:
			out = append(out, c)
		}
	}
	return string(out), ""
}

func (a *analyzer) inArray(i int, c *tree.Call) {
	if !a.free(c.Args[1]) {
		return
	}
	elem := c.Args[1].Type().Elem
	if col := a.column(c.Args[0]); col != nil {
		if elem.Kind == col.Type.Kind {
			a.add(sargArray, col, i, true, c.Args[1])
		}
		return
	}
	m, ok := c.Args[0].(*tree.MakeStruct)
	if !ok || len(elem.Fields) != len(m.Fields) {
		return
	}
	t := tupleSarg{array: c.Args[1], cond: i}
	for j, f := range m.Fields {
		col := a.column(f)
		if col == nil || elem.Fields[j].Type.Kind != col.Type.Kind {
			return
		}
		t.columns = append(t.columns, col)
	}
	a.into.tuples = append(a.into.tuples, t)
}

// orOfEqualities adds one sarg for an OR of equalities of one column. For example, it adds the sarg x IN (1, 2, 3, 4)
// for the condition x = 1 OR x = 2 OR x IN (3, 4).
func (a *analyzer) orOfEqualities(i int, c *tree.Call) {
	var one predicate
	inner := analyzer{byID: a.byID, into: &one}
	parts := disjuncts(c, nil)
	for j, d := range parts {
		inner.condition(j, d)
	}
	if len(one.sargs) != len(parts) {
		return
	}
	var values []tree.Expr
	for j, s := range one.sargs {
		if s.cond != j || s.column != one.sargs[0].column || s.op != sargEqual && s.op != sargIn {
			return
		}
		values = append(values, s.values...)
	}
	a.add(sargIn, one.sargs[0].column, i, true, values...)
}

// column returns the column of the scan to which e refers. It returns nil if e is any other expression.
func (a *analyzer) column(e tree.Expr) *schema.Column {
	if r, ok := e.(*tree.Ref); ok {
		return a.byID[r.Col.ID]
	}
	return nil
}

// bound reports whether e can bound a key part that holds column c. For that, e must have the type of c and be
// known before the scan.
func (a *analyzer) bound(c *schema.Column, e tree.Expr) bool {
	return e.Type().Kind == c.Type.Kind && a.free(e)
}

// free reports whether e has the same value for all rows of the scan, so that it is known before the scan.
func (a *analyzer) free(e tree.Expr) bool {
	for id := range refsOf(e) {
		if a.byID[id] != nil {
			return false
		}
	}
	return !volatile(e)
}

// volatile reports whether e, or a subquery in it, can have another value each time it is computed.
func volatile(e tree.Expr) bool {
	found := false
	tree.WalkNested(e, func(e tree.Expr) {
		if c, ok := e.(*tree.Call); ok {
			f, err := library.Lookup(c.Func)
			found = found || err == nil && f.Volatile
		}
	})
	return found
}
