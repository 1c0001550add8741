package tree

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/value"
)

// These lists hold a node of every type that a tree can have. TestNodesAreKnown fails if a type is missing.
var (
	statements  = []Statement{new(Query), new(Insert), new(Update), new(Delete), new(Procedure), new(ChangeStreamRead)}
	scans       = []Scan{new(TableScan), new(ViewScan), new(SingleRow), new(Filter), new(Project), new(Join), new(ArrayScan), new(Aggregate), new(OrderBy), new(Limit), new(SetOp), new(With), new(WithRef), new(Sample)}
	expressions = []Expr{new(Literal), new(Param), new(Ref), new(Call), new(Lambda), new(Cast), new(Subquery), new(MakeStruct), new(GetField), new(GetJSONField), new(Let)}
)

// TestNodesAreKnown checks that the lists statements, scans and expressions have every exported type of the package
// that is a node. A type is a statement if it has the method statement, a scan if it has Cols, and an expression if it
// has Type.
func TestNodesAreKnown(t *testing.T) {
	declared := map[string][]string{}
	names, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		if !strings.HasSuffix(n.Name(), ".go") || strings.HasSuffix(n.Name(), "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), n.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			m, ok := d.(*ast.FuncDecl)
			if !ok || m.Recv == nil {
				continue
			}
			if star, ok := m.Recv.List[0].Type.(*ast.StarExpr); ok && ast.IsExported(star.X.(*ast.Ident).Name) {
				declared[m.Name.Name] = append(declared[m.Name.Name], star.X.(*ast.Ident).Name)
			}
		}
	}
	check := func(method string, known []string) {
		for _, name := range declared[method] {
			if !slices.Contains(known, name) {
				t.Errorf("%s has the method %s, and these tests do not know it", name, method)
			}
		}
		if len(declared[method]) != len(known) {
			t.Errorf("%d types have the method %s, and these tests know %d", len(declared[method]), method, len(known))
		}
	}
	check("statement", namesOf(statements))
	check("Cols", namesOf(scans))
	check("Type", namesOf(expressions))
}

func namesOf[N any](nodes []N) (names []string) {
	for _, n := range nodes {
		names = append(names, reflect.TypeOf(n).Elem().Name())
	}
	return names
}

// A filler sets all fields of a node. It sets each field of type Scan or Expr to a leaf, which is a node without
// inputs. The leaf has a name of its own, its mark, by which the tests recognize it. Slices get two elements.
type filler struct {
	scan  func(mark string) Scan
	expr  func(mark string) Expr
	marks []string // marks of scans and expressions
	names []string // names of tables, columns and Cols
	hints []string // marks of hints
	last  int
}

func newFiller() *filler {
	return &filler{scan: markedScan, expr: markedExpr}
}

func markedScan(mark string) Scan { return &WithRef{Name: mark} }
func markedExpr(mark string) Expr { return &Param{T: structType, Name: mark} }

// structType is the type of the expressions that markedExpr returns. It is a STRUCT, so that GetField can read from
// any of them.
var structType = value.StructOf(value.Field{Name: "a", Type: value.Int64Type}, value.Field{Name: "b", Type: value.Int64Type})

// fill returns a new node of the type of n with all fields set.
func fill[N any](f *filler, n N) N {
	made := reflect.New(reflect.TypeOf(n).Elem())
	f.set(made.Elem(), made.Type().Elem().Name())
	switch made := made.Interface().(type) {
	case *Returning:
		made.Action = -1
	}
	return made.Interface().(N)
}

func (f *filler) mark(where string) string {
	f.last++
	return fmt.Sprintf("%s-%04d", where, f.last) // all numbers have four digits, so that no mark contains another one
}

func (f *filler) name(where string) string {
	mark := f.mark(where)
	f.names = append(f.names, mark)
	return mark
}

var (
	scanType = reflect.TypeFor[Scan]()
	exprType = reflect.TypeFor[Expr]()
)

func (f *filler) set(v reflect.Value, where string) {
	switch v.Type() {
	case scanType:
		mark := f.mark(where)
		f.marks = append(f.marks, mark)
		v.Set(reflect.ValueOf(f.scan(mark)))
		return
	case exprType:
		mark := f.mark(where)
		f.marks = append(f.marks, mark)
		v.Set(reflect.ValueOf(f.expr(mark)))
		return
	}
	id := uint32(f.last + 1)
	switch p := v.Addr().Interface().(type) {
	case *Hints:
		mark := f.mark(where)
		f.hints = append(f.hints, mark)
		*p = Hints{"HINT": &Param{T: value.Int64Type, Name: mark}}
	case **schema.Table:
		*p = &schema.Table{ID: schema.TableID(id), Name: f.name(where)}
	case **schema.Column:
		*p = &schema.Column{ID: schema.ColumnID(id), Name: f.name(where)}
	case **schema.View:
		*p = &schema.View{Entity: schema.Entity{ID: schema.TableID(id), Name: f.name(where)}}
	case **schema.Index:
		*p = &schema.Index{ID: schema.TableID(id), Name: f.name(where)}
	case **schema.ChangeStream:
		*p = &schema.ChangeStream{ID: schema.ChangeStreamID(id), Name: f.name(where)}
	case **value.Type:
		*p = value.Int64Type
	case *value.Value:
		*p = value.OfInt64(7)
	case *Col:
		*p = Col{ID: int(id), Name: f.name(where), Type: value.Int64Type}
	case **Function:
		*p = &Function{Name: "f", Type: value.Int64Type}
	case **TableScan, **Conflict, **Returning, **Query:
		v.Set(reflect.ValueOf(fillAny(f, v)))
	default:
		f.setKind(v, where)
	}
}

// fillAny returns a new node, with all fields set, for a field that is a pointer to a node.
func fillAny(f *filler, v reflect.Value) any {
	switch v.Interface().(type) {
	case *TableScan:
		return fill(f, new(TableScan))
	case *Conflict:
		return fill(f, new(Conflict))
	case *Returning:
		return fill(f, new(Returning))
	}
	return fill(f, new(Query))
}

func (f *filler) setKind(v reflect.Value, where string) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			f.set(v.Field(i), where+"."+v.Type().Field(i).Name)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			f.set(v.Index(i), where)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.set(v.Elem(), where)
	case reflect.String:
		v.SetString(f.name(where))
	case reflect.Bool, reflect.Int, reflect.Uint8: // such a field stays zero, which is a valid value
	default:
		panic(fmt.Sprintf("these tests cannot fill %s, a %s", where, v.Type()))
	}
}

// TestVisitor checks that a visitor visits every scan and expression of a scan once, and the scan itself first.
func TestVisitor(t *testing.T) {
	for _, s := range scans {
		f := newFiller()
		s = fill(f, s)
		var visited []string
		v := visitor{
			scan: func(in Scan) bool { visited = append(visited, markOf(in)); return true },
			expr: func(e Expr) { visited = append(visited, markOf(e)) },
		}
		v.scans(s)
		checkSeen(t, s, f, visited)
	}
}

// TestVisitorOfExpressions checks that a visitor visits every expression of an expression, and the scans of its
// subqueries.
func TestVisitorOfExpressions(t *testing.T) {
	for _, e := range expressions {
		f := newFiller()
		e = fill(f, e)
		var visited []string
		v := visitor{
			scan: func(in Scan) bool { visited = append(visited, markOf(in)); return true },
			expr: func(e Expr) { visited = append(visited, markOf(e)) },
		}
		v.exprs(e)
		checkSeen(t, e, f, visited)
	}
}

// markOf returns the mark of a leaf, or the name of the type of any other node.
func markOf(n any) string {
	switch n := n.(type) {
	case *WithRef:
		return n.Name
	case *Param:
		return n.Name
	}
	return fmt.Sprintf("%T", n)
}

func checkSeen(t *testing.T, node any, f *filler, visited []string) {
	t.Helper()
	if len(visited) == 0 || visited[0] != markOf(node) {
		t.Errorf("%T: the node itself does not come first: %q", node, visited)
		return
	}
	got, want := slices.Sorted(slices.Values(visited[1:])), slices.Sorted(slices.Values(f.marks))
	if !slices.Equal(got, want) {
		t.Errorf("%T: visited %q; want %q", node, got, want)
	}
}

// TestVisitorStays checks that a visitor does not visit the inputs of a scan if visitor.scan returns false for that
// scan, and that it ignores nil inputs.
func TestVisitorStays(t *testing.T) {
	var visited []string
	v := visitor{
		scan: func(s Scan) bool { visited = append(visited, markOf(s)); return false },
		expr: func(e Expr) { visited = append(visited, markOf(e)) },
	}
	v.scans(nil, &Filter{Input: markedScan("in"), Cond: markedExpr("cond")})
	v.exprs(nil, &Subquery{Scan: &Filter{Input: markedScan("in")}})
	if want := []string{"*tree.Filter", "*tree.Subquery", "*tree.Filter"}; !slices.Equal(visited, want) {
		t.Errorf("visited %q; want %q", visited, want)
	}
}

// An unknownScan is a scan that the visitor does not know.
type unknownScan struct{ SingleRow }

// TestVisitorOfUnknownScan checks that Needs panics for a scan that the visitor does not know. If Needs ignored the
// inputs of that scan, a role could read their tables without a privilege.
func TestVisitorOfUnknownScan(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a scan whose inputs are not known was visited")
		}
	}()
	Needs(&Query{Scan: new(unknownScan)}, schema.NewCatalog())
}

// TestWalk checks that Walk visits every expression of an expression, parents first, and none in the scans of
// subqueries.
func TestWalk(t *testing.T) {
	for _, e := range expressions {
		f := newFiller()
		inScans := 0
		f.scan = func(mark string) Scan {
			inScans++
			return &Filter{Cond: markedExpr("in a scan")}
		}
		e = fill(f, e)
		f.marks = slices.DeleteFunc(f.marks, func(m string) bool { return strings.HasPrefix(m, "Subquery.Scan") })
		var visited []string
		Walk(e, func(e Expr) { visited = append(visited, markOf(e)) })
		checkSeen(t, e, f, visited)
		if _, ok := e.(*Subquery); ok && inScans == 0 {
			t.Error("the subquery has no scan")
		}
	}
	Walk(nil, func(Expr) { t.Error("Walk called its function for nil") })
}

// TestNondeterministic checks that Nondeterministic finds each function whose results differ between calls, wherever
// it is in an expression.
func TestNondeterministic(t *testing.T) {
	call := func(name string, args ...Expr) Expr {
		return &Call{Func: &Function{Name: name, Type: value.Int64Type}, Args: args}
	}
	for _, c := range []struct {
		expr Expr
		name string
	}{
		{nil, ""},
		{call("abs", call("$add", markedExpr("p"), markedExpr("q"))), ""},
		{call("current_timestamp"), "current_timestamp"},
		{call("current_date"), "current_date"},
		{call("pending_commit_timestamp"), "pending_commit_timestamp"},
		{call("generate_uuid"), "generate_uuid"},
		{call("new_uuid"), "new_uuid"},
		{call("abs", call("generate_uuid")), "generate_uuid"},
	} {
		if name, found := Nondeterministic(c.expr); name != c.name || found != (c.name != "") {
			t.Errorf("%s: %q, %t; want %q", Format(c.expr), name, found, c.name)
		}
	}
	for _, e := range expressions {
		f := newFiller()
		f.expr = func(string) Expr { return call("generate_uuid") }
		filled := fill(f, e)
		if _, found := Nondeterministic(filled); found != (len(f.marks) > 0) {
			t.Errorf("%T: found %t with %d times generate_uuid() in it", filled, found, len(f.marks))
		}
	}
}

// TestPrintIsComplete checks that the printed tree of a statement names every table, column, scan, expression and hint
// of the statement.
func TestPrintIsComplete(t *testing.T) {
	check := func(node any, f *filler, text string) {
		t.Helper()
		missing := slices.DeleteFunc(slices.Concat(f.marks, f.names, f.hints), func(mark string) bool { return strings.Contains(text, mark) })
		if len(missing) > 0 {
			t.Errorf("%T: its text does not have %q:\n%s", node, missing, text)
		}
	}
	for _, s := range statements {
		f := newFiller()
		s = fill(f, s)
		if i, ok := s.(*Insert); ok {
			i.Conflict.Update = true
		}
		// Print omits two kinds of names. It does not name the table again for the scan of the changed table, because
		// the line of the statement names it. It prints the expressions of RETURNING, but not the Cols that these
		// expressions compute.
		given := func(mark string) bool {
			return strings.HasPrefix(mark, "TableScan.Table") || strings.HasPrefix(mark, "TableScan.Alias") || strings.HasPrefix(mark, "Returning.Output.Col")
		}
		f.names, f.hints = slices.DeleteFunc(f.names, given), slices.DeleteFunc(f.hints, func(mark string) bool { return strings.HasPrefix(mark, "TableScan") })
		check(s, f, Print(s))
	}
	for _, s := range scans {
		f := newFiller()
		s = fill(f, s)
		check(s, f, Print(&Query{Scan: s}))
	}
	for _, e := range expressions {
		f := newFiller()
		e = fill(f, e)
		if s, ok := e.(*Subquery); ok {
			s.Kind = InSubquery
		}
		check(e, f, Print(&Query{Scan: &Filter{Input: new(SingleRow), Cond: e}}))
	}
}

// TestNeedsAreComplete checks that a role needs SELECT on every table that a scan or a subquery of a statement reads.
// Operands of ASSERT_ROWS_MODIFIED, hints and the arguments of a change stream read are constants, which read no
// table; so they are not checked.
func TestNeedsAreComplete(t *testing.T) {
	check := func(node any, statement func(f *filler) Statement) {
		t.Helper()
		f := newFiller()
		tables := map[string]bool{}
		f.scan = func(mark string) Scan {
			tables[mark] = true
			return &TableScan{Table: &schema.Table{ID: schema.TableID(1000 + f.last), Name: mark}}
		}
		f.expr = func(mark string) Expr { return &Subquery{Kind: ExistsSubquery, T: value.BoolType, Scan: f.scan(mark)} }
		s := statement(f)
		for _, n := range Needs(s, schema.NewCatalog()) {
			if n.Privilege == schema.PrivilegeSelect {
				delete(tables, n.Name)
			}
		}
		for mark := range tables {
			if !strings.Contains(mark, ".Assert") {
				t.Errorf("%T: nothing is needed to read %s", node, mark)
			}
		}
	}
	for _, s := range statements {
		if _, ok := s.(*ChangeStreamRead); !ok {
			check(s, func(f *filler) Statement { return fill(f, s) })
		}
	}
	for _, s := range scans {
		check(s, func(f *filler) Statement { return &Query{Scan: fill(f, s)} })
	}
	for _, e := range expressions {
		check(e, func(f *filler) Statement {
			return &Query{Scan: &Filter{Input: new(SingleRow), Cond: fill(f, e)}}
		})
	}
}
