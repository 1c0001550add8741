package tree

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/crowfoot-db/crowfoot/value"
)

// Format formats an expression for people to read. It shows a subquery as a number, without the subquery's scan.
func Format(e Expr) string {
	var p printer
	return p.expr(e)
}

// expr formats an expression on one line. For nil it returns "".
func (p *printer) expr(e Expr) string {
	switch e := e.(type) {
	case *Literal:
		return FormatLiteral(e)
	case *Param:
		return "@" + e.Name + ":" + e.T.String()
	case *Ref:
		return column(e.Col)
	case *Call:
		return name(e.Func) + "(" + p.exprs(e.Args) + ")"
	case *Lambda:
		return columns(e.Params) + " -> " + p.expr(e.Body)
	case *Cast:
		return when(e.Safe, "SAFE_") + "CAST(" + p.expr(e.Arg) + " AS " + e.T.String() +
			prefixed(" FORMAT ", p.expr(e.Format)) + prefixed(" AT TIME ZONE ", p.expr(e.Zone)) + ")"
	case *Subquery:
		return p.subquery(e)
	case *MakeStruct:
		return "STRUCT(" + p.exprs(e.Fields) + ")"
	case *GetField:
		return p.expr(e.Arg) + "." + e.Name()
	case *GetJSONField:
		return p.expr(e.Arg) + "." + strconv.Quote(e.Name)
	case *Let:
		return "WITH(" + p.computed(e.Defs) + ", " + p.expr(e.Body) + ")"
	}
	return ""
}

func (p *printer) exprs(list []Expr) string {
	words := make([]string, len(list))
	for i, e := range list {
		words[i] = p.value(e)
	}
	return strings.Join(words, ", ")
}

func name(f *Function) string { return when(f.Safe, "SAFE.") + f.Name + FieldNames(f) }

// FieldNames returns the paths in f.Fields in brackets; "" if there are none.
func FieldNames(f *Function) string {
	if len(f.Fields) == 0 {
		return ""
	}
	names := make([]string, len(f.Fields))
	for i, path := range f.Fields {
		for j, field := range path {
			names[i] += when(j > 0, ".") + field.TextName()
		}
	}
	return "[" + strings.Join(names, ", ") + "]"
}

var subqueryKinds = [...]string{ScalarSubquery: "SCALAR", ArraySubquery: "ARRAY", ExistsSubquery: "EXISTS", InSubquery: "IN"}

func (p *printer) subquery(s *Subquery) string {
	p.subqueries++
	number := p.subqueries
	p.pending = append(p.pending, numbered{number, s.Scan})
	text := subqueryKinds[s.Kind] + when(s.Ordered, " ORDERED") + prefixed(" ", p.hints(s.Hints)) + "($" + strconv.Itoa(number)
	if s.Kind != ExistsSubquery {
		text += " " + column(s.Out)
	}
	if s.In != nil {
		return p.expr(s.In) + " " + text + ")"
	}
	return text + ")"
}

// Name returns the name of the field, or its index if it has no name.
func (e *GetField) Name() string {
	if name := e.Arg.Type().Fields[e.Index].Name; name != "" {
		return name
	}
	return strconv.Itoa(e.Index)
}

// FormatLiteral formats a constant for people to read. The text resembles an SQL literal, but need not be valid SQL. An
// example is FLOAT64 1.5.
func FormatLiteral(l *Literal) string { return formatValue(l.Value, l.T) }

func formatValue(v value.Value, t *value.Type) string {
	if v.IsNull() {
		return "NULL:" + t.String()
	}
	switch t.Kind {
	case value.Bool:
		return strings.ToUpper(strconv.FormatBool(v.AsBool()))
	case value.Int64:
		return strconv.FormatInt(v.AsInt64(), 10)
	case value.Float64:
		return "FLOAT64 " + strconv.FormatFloat(v.AsFloat64(), 'g', -1, 64)
	case value.Float32:
		return "FLOAT32 " + strconv.FormatFloat(float64(v.AsFloat32()), 'g', -1, 32)
	case value.String:
		return strconv.Quote(v.AsString())
	case value.Enum:
		return t.String() + " " + strconv.FormatInt(v.AsInt64(), 10)
	case value.Proto:
		return t.String() + " " + base64.StdEncoding.EncodeToString(v.AsBytes())
	case value.Bytes:
		return "BYTES " + base64.StdEncoding.EncodeToString(v.AsBytes())
	case value.Date:
		return "DATE " + string(value.AppendDate(nil, v.AsDate()))
	case value.Timestamp:
		return "TIMESTAMP " + v.AsTime().Format(time.RFC3339Nano)
	case value.Numeric:
		return "NUMERIC " + v.AsNumeric().String()
	case value.JSON:
		return "JSON " + v.AsString()
	case value.Interval:
		return "INTERVAL " + string(v.AsInterval().Append(nil))
	case value.UUID:
		return "UUID " + string(value.AppendUUID(nil, v.AsUUID()))
	case value.Array:
		return "[" + formatList(v.AsList(), func(int) *value.Type { return t.Elem }) + "]"
	case value.Struct:
		return "STRUCT(" + formatList(v.AsList(), func(i int) *value.Type { return t.Fields[i].Type }) + ")"
	}
	return fmt.Sprintf("%v?", t)
}

func formatList(list []value.Value, typeOf func(int) *value.Type) string {
	words := make([]string, len(list))
	for i, v := range list {
		words[i] = formatValue(v, typeOf(i))
	}
	return strings.Join(words, ", ")
}
