package plan

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"

	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/value"
)

// describer formats expressions as Spanner's plans do: columns as $name, and calls as infix operators or as
// functions.
type describer struct {
	literals map[string]value.Value // values of the parameters that are written as constants, by name
	// subqueries holds the subqueries that were formatted so far. Subquery number i (from 1) is written as $sv_i. In
	// the printed plan, the subqueries of an expression are children of the expression's node.
	subqueries []*Subquery
}

var infix = map[string]string{
	"$equal": "=", "$not_equal": "!=", "$less": "<", "$less_or_equal": "<=", "$greater": ">", "$greater_or_equal": ">=",
	"$add": "+", "$subtract": "-", "$multiply": "*", "$divide": "/", "$concat_op": "||",
	"$bitwise_and": "&", "$bitwise_or": "|", "$bitwise_xor": "^",
}

func (d *describer) expr(e Expr) string {
	switch e := d.known(e).(type) {
	case nil:
		return ""
	case *Slot:
		return "$" + columnName(e.Name, e.Index)
	case *Outer:
		return "$" + columnName(e.Name, e.Register)
	case *Parameter:
		return "@" + e.Name
	case *tree.Literal:
		return literal(e)
	case *tree.Call:
		return d.call(e)
	case *tree.Cast:
		name := "CAST("
		if e.Safe {
			name = "SAFE_CAST("
		}
		return name + d.expr(e.Arg) + " AS " + e.T.String() + ")"
	case *Subquery:
		return d.subquery(e)
	case *tree.MakeStruct:
		return "STRUCT(" + d.list(e.Fields) + ")"
	case *tree.GetField:
		return d.expr(e.Arg) + "." + e.Name()
	case *tree.GetJSONField:
		return d.expr(e.Arg) + "." + e.Name
	case *Let:
		return "WITH(" + d.list(e.Values) + ", " + d.expr(e.Body) + ")"
	}
	return fmt.Sprintf("%T", e)
}

// known returns e. If e is a parameter that is written as a constant, known returns the constant instead.
func (d *describer) known(e Expr) Expr {
	if p, ok := e.(*Parameter); ok {
		if v, ok := d.literals[p.Name]; ok {
			return &tree.Literal{T: p.T, Value: v}
		}
	}
	return e
}

func columnName(name string, i int) string {
	name = strings.TrimPrefix(name, "$") // columns without a name have a generated name, which begins with $
	if name == "" {
		return "v" + strconv.Itoa(i)
	}
	return name
}

func (d *describer) list(exprs []Expr) string {
	words := make([]string, len(exprs))
	for i, e := range exprs {
		words[i] = d.expr(e)
	}
	return strings.Join(words, ", ")
}

func (d *describer) call(e *tree.Call) string {
	name := e.Func.Name
	if op, ok := infix[name]; ok && len(e.Args) == 2 {
		return "(" + d.expr(e.Args[0]) + " " + op + " " + d.expr(e.Args[1]) + ")"
	}
	switch name {
	case "$and", "$or":
		words := make([]string, len(e.Args))
		for i, a := range e.Args {
			words[i] = d.expr(a)
		}
		return "(" + strings.Join(words, " "+strings.ToUpper(name[1:])+" ") + ")"
	case "$not":
		return "(NOT " + d.expr(e.Args[0]) + ")"
	case "$is_null":
		return "IS_NULL(" + d.expr(e.Args[0]) + ")"
	case "$in":
		return "(" + d.expr(e.Args[0]) + " IN (" + d.list(e.Args[1:]) + "))"
	case "$in_array":
		return "(" + d.expr(e.Args[0]) + " IN UNNEST(" + d.expr(e.Args[1]) + "))"
	case "$like":
		return "(" + d.expr(e.Args[0]) + " LIKE " + d.expr(e.Args[1]) + ")"
	}
	var args, bodies []Expr
	for _, a := range e.Args {
		if l, ok := a.(*Lambda); ok {
			bodies = append(bodies, l.Body)
		} else {
			args = append(args, a)
		}
	}
	args = append(args, bodies...)
	return strings.ToUpper(strings.TrimPrefix(name, "$")) + "(" + d.list(args) + ")"
}

func (d *describer) subquery(e *Subquery) string {
	d.subqueries = append(d.subqueries, e)
	name := "$sv_" + strconv.Itoa(len(d.subqueries))
	switch e.Kind {
	case tree.ExistsSubquery:
		return "EXISTS(" + name + ")"
	case tree.InSubquery:
		return "(" + d.expr(e.In) + " IN " + name + ")"
	}
	return name
}

// literal formats a constant, and cuts the text after maxLiteral bytes.
func literal(l *tree.Literal) string {
	if l.Value.IsNull() {
		return "<null>"
	}
	s := tree.FormatLiteral(l)
	switch l.T.Kind {
	case value.String:
		s = "'" + l.Value.AsString() + "'"
	case value.Bool:
		s = strings.ToLower(s)
	case value.Bytes:
		s = base64.StdEncoding.EncodeToString(l.Value.AsBytes())
	}
	if len(s) > maxLiteral {
		s = strings.ToValidUTF8(s[:maxLiteral], "") + "..."
	}
	return s
}

const maxLiteral = 200

// seekCondition returns an expression over the columns of the key that is TRUE for the keys that the seeks read. It
// returns nil if the scan reads everything.
func (n *Scan) seekCondition() Expr {
	key := KeyColumns(n)
	column := func(i int) Expr {
		return &Slot{T: key[i].Type, Index: -1, Name: key[i].Name}
	}
	var either []Expr
	for i := range n.Seeks {
		s := &n.Seeks[i]
		var parts []Expr
		if s.Tuples != nil {
			fields := &tree.MakeStruct{}
			for i := range s.Tuples.Fields {
				fields.Fields = append(fields.Fields, column(i))
			}
			parts = append(parts, condition("$in_array", fields, s.Tuples.Array))
		}
		for i, p := range s.Parts {
			switch {
			case !p.Each:
				parts = append(parts, p.condition(column(i)))
			case p.Among != nil:
				parts = append(parts, p.Among.conditions(column(i))...)
			}
		}
		if s.Range != nil {
			parts = append(parts, s.Range.conditions(column(len(s.Parts)))...)
		}
		if all := combine("$and", parts); all != nil {
			either = append(either, all)
		}
	}
	return combine("$or", either)
}

func condition(name string, args ...Expr) Expr {
	return &tree.Call{Func: &tree.Function{Name: name, Type: value.BoolType}, Args: args}
}

func combine(name string, list []Expr) Expr {
	switch len(list) {
	case 0:
		return nil
	case 1:
		return list[0]
	}
	return condition(name, list...)
}

func (p *SeekPart) condition(column Expr) Expr {
	switch {
	case p.Null:
		return condition("$is_null", column)
	case p.Array != nil:
		return condition("$in_array", column, p.Array)
	case p.NullSafe:
		return condition("$is_not_distinct_from", column, p.Values[0])
	case len(p.Values) == 1:
		return condition("$equal", column, p.Values[0])
	}
	return condition("$in", append([]Expr{column}, p.Values...)...)
}

func (r *SeekRange) conditions(column Expr) []Expr {
	var list []Expr
	if r.Prefix != nil {
		name := "starts_with"
		if r.Like {
			name = "$like"
		}
		list = append(list, condition(name, column, r.Prefix))
	}
	if r.Low == nil && r.High == nil && r.Prefix == nil {
		list = append(list, condition("$not", condition("$is_null", column)))
	}
	if r.Low != nil {
		name := "$greater_or_equal"
		if r.LowOpen {
			name = "$greater"
		}
		list = append(list, condition(name, column, r.Low))
	}
	if r.High != nil {
		name := "$less_or_equal"
		if r.HighOpen {
			name = "$less"
		}
		list = append(list, condition(name, column, r.High))
	}
	return list
}

// adviceKey is the metadata key of a node's advice. The advice warns of scans that are fast here but slow on Cloud
// Spanner. Viewers of plans show metadata with keys that they do not know, too, so they show the advice.
const adviceKey = "cloud_spanner"

// advice returns warnings about this scan, separated by semicolons, or "" if there are none. A warning says why Cloud
// Spanner may be slower than this server, or how the statement becomes fast there. bench/README.md has the measurements
// behind the warnings.
func (n *Scan) advice() string {
	var list []string
	if n.Chosen {
		list = append(list, "may scan the whole table without the hint FORCE_INDEX="+n.Index.FullName())
	}
	if i := n.skipped(); i >= 0 {
		list = append(list, "has no skip scan: without a list of values for "+KeyColumns(n)[i].Name+" it reads all keys")
	}
	if n.scattered() {
		list = append(list, "takes more CPU for a list of keys in SQL than for a Read")
	}
	return strings.Join(list, "; ")
}

// scattered reports whether the scan reads rows by a list of whole keys, as a call of Read could do, too. It is false
// for a scan of DML, because a call of Read cannot replace DML.
func (n *Scan) scattered() bool {
	if n.Index != nil || n.Exclusive || len(n.Seeks) == 0 {
		return false
	}
	lists := len(n.Seeks) > 1
	for _, s := range n.Seeks {
		if s.Range != nil || max(len(s.Parts), s.tupleLen()) < len(n.Table.Key) {
			return false
		}
		lists = lists || s.Tuples != nil
		for _, p := range s.Parts {
			lists = lists || p.Array != nil || len(p.Values) > 1
		}
	}
	return lists
}

func (s *Seek) tupleLen() int {
	if s.Tuples == nil {
		return 0
	}
	return len(s.Tuples.Fields)
}
