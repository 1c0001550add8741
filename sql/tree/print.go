package tree

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/crowfoot-db/crowfoot/schema"
)

// Print formats a statement for people to read. Each node has a line, and the inputs of a node are indented below it.
// Equal trees have equal texts. A column is printed as its name and ID: Name#3. A subquery in an expression is
// printed as a number, $1; its scan is printed below the node that has the expression.
func Print(s Statement) string {
	var p printer
	p.statement(s)
	return p.out.String()
}

// printer writes nodes. depth is the indentation of the current node. pending holds those subqueries in the node's
// expressions that are not yet written.
type printer struct {
	out        strings.Builder
	depth      int
	subqueries int
	pending    []numbered
}

type numbered struct {
	number int
	scan   Scan
}

// line writes one line at the current depth.
func (p *printer) line(words ...string) {
	p.out.WriteString(strings.Repeat("  ", p.depth))
	p.out.WriteString(strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), " "))
	p.out.WriteByte('\n')
}

// flush writes the pending subqueries, one level deeper.
func (p *printer) flush() {
	pending := p.pending
	p.pending = nil
	for _, s := range pending {
		p.under(fmt.Sprintf("$%d:", s.number), s.scan)
	}
}

// under writes a scan one level deeper. If title is not "", under writes a line with the title, and the scan below
// that line.
func (p *printer) under(title string, s Scan) {
	if s == nil {
		return
	}
	p.depth++
	if title != "" {
		p.line(title)
		p.depth++
	}
	p.scan(s)
	if title != "" {
		p.depth--
	}
	p.depth--
}

func (p *printer) statement(s Statement) {
	switch s := s.(type) {
	case *Query:
		p.query("Query", s)
	case *Insert:
		p.insert(s)
	case *Update:
		p.line("Update", s.Table.FullName(), p.hints(s.Hints), p.columns(s.Scan), prefixed("table ", p.hints(s.Scan.Hints)))
		p.depth++
		p.field("set", p.assignments(s.Set))
		p.field("where", p.expr(s.Where))
		p.field("assert", p.expr(s.Assert))
		p.returning(s.Return)
		p.depth--
		if s.From != nil {
			p.under("from:", s.From)
		}
	case *Delete:
		p.line("Delete", s.Table.FullName(), p.hints(s.Hints), p.columns(s.Scan), prefixed("table ", p.hints(s.Scan.Hints)))
		p.depth++
		p.field("where", p.expr(s.Where))
		p.field("assert", p.expr(s.Assert))
		p.returning(s.Return)
		p.depth--
	case *Procedure:
		p.line("Call", s.Name+"("+p.exprs(s.Args)+")")
	case *ChangeStreamRead:
		p.line("ReadChangeStream", s.Stream.Name+"("+p.exprs(s.Args)+")", p.output([]Output{s.Output}))
	}
}

// field writes a line with a name and a text, and below the line the subqueries to which the text refers. It writes
// nothing if text is "".
func (p *printer) field(name, text string) {
	if text != "" {
		p.line(name, text)
		p.flush()
	}
}

func (p *printer) query(title string, q *Query) {
	asValue := ""
	if q.AsValue {
		asValue = "AS VALUE"
	}
	p.line(title, p.hints(q.Hints), asValue, p.output(q.Output))
	p.flush()
	p.under("", q.Scan)
}

func (p *printer) output(out []Output) string {
	words := make([]string, len(out))
	for i, o := range out {
		words[i] = o.Name + "=" + column(o.Col) + " " + o.Col.Type.String()
	}
	return "[" + strings.Join(words, ", ") + "]"
}

var insertModes = [...]string{InsertOrFail: "", InsertOrIgnore: "OR IGNORE", InsertOrUpdate: "OR UPDATE"}

func (p *printer) insert(s *Insert) {
	names := make([]string, len(s.Columns))
	for i, c := range s.Columns {
		names[i] = c.Name
	}
	p.line("Insert", insertModes[s.Mode], s.Table.FullName(), "("+strings.Join(names, ", ")+")", p.hints(s.Hints))
	p.depth++
	for _, row := range s.Rows {
		p.field("row", p.exprs(row))
	}
	p.field("assert", p.expr(s.Assert))
	p.conflict(s.Conflict)
	p.returning(s.Return)
	if s.Query != nil {
		p.query("query", s.Query)
	}
	p.depth--
}

func (p *printer) conflict(c *Conflict) {
	if c == nil {
		return
	}
	target, action := "any", "DO NOTHING"
	if c.Key {
		target = "primary key"
	} else if c.Index != nil {
		target = "index " + c.Index.FullName()
	}
	if c.Update {
		action = "DO UPDATE " + p.assignments(c.Set)
	}
	p.line("conflict", target, action, "old", p.columns(c.Old))
	p.flush()
	p.depth++
	if c.New != nil {
		p.field("new", p.columns(c.New))
	}
	p.field("where", p.expr(c.Where))
	p.depth--
}

func (p *printer) returning(r *Returning) {
	if r == nil {
		return
	}
	words := make([]string, len(r.Exprs))
	for i, e := range r.Exprs {
		text := "ACTION"
		if i != r.Action {
			text = p.expr(e)
		}
		words[i] = r.Output[i].Name + "=" + text
	}
	p.line("return", strings.Join(words, ", "), "from", p.columns(r.Scan))
	p.flush()
}

func (p *printer) assignments(set []Assignment) string {
	words := make([]string, len(set))
	for i, a := range set {
		words[i] = a.Column.Name + " = " + p.value(a.Value)
	}
	return strings.Join(words, ", ")
}

// value formats the value of a column in INSERT or UPDATE. A nil expression is DEFAULT.
func (p *printer) value(e Expr) string {
	if e == nil {
		return "DEFAULT"
	}
	return p.expr(e)
}

func (p *printer) hints(h Hints) string {
	if len(h) == 0 {
		return ""
	}
	words := make([]string, 0, len(h))
	for _, name := range slices.Sorted(maps.Keys(h)) {
		words = append(words, name+"="+p.expr(h[name]))
	}
	return "@{" + strings.Join(words, ", ") + "}"
}

// columns formats the columns that a table scan returns.
func (p *printer) columns(s *TableScan) string {
	words := make([]string, len(s.Out))
	for i, c := range s.Out {
		words[i] = scanned(c, s.Columns[i])
	}
	return "[" + strings.Join(words, ", ") + "]"
}

func scanned(c Col, of *schema.Column) string {
	if c.Name == of.Name {
		return column(c)
	}
	return column(c) + "=" + of.Name
}

func column(c Col) string { return fmt.Sprintf("%s#%d", c.Name, c.ID) }

func columns(list []Col) string {
	words := make([]string, len(list))
	for i, c := range list {
		words[i] = column(c)
	}
	return "[" + strings.Join(words, ", ") + "]"
}
