package tree

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/value"
)

// testCompiler accepts every expression without checking it.
type testCompiler struct{ schema.Compiler }

func (testCompiler) Now() time.Time { return time.Unix(0, 0) }
func (testCompiler) CompileExpr(_ *schema.Catalog, _ *schema.Table, sql string, _ *value.Type) (*schema.Expr, error) {
	return &schema.Expr{SQL: sql}, nil
}
func (testCompiler) NextValue(string, *schema.Generator) func([]value.Value) (value.Value, error) {
	return nil
}

// testCatalog returns a catalog with the tables, the sequence and the change stream that these tests use.
func testCatalog(t *testing.T) *schema.Catalog {
	t.Helper()
	c := schema.NewCatalog()
	for _, ddl := range []string{
		"CREATE SEQUENCE Seq OPTIONS (sequence_kind='bit_reversed_positive')",
		"CREATE TABLE T (K INT64, A INT64, B INT64, S INT64 DEFAULT (GET_NEXT_SEQUENCE_VALUE(SEQUENCE Seq))) PRIMARY KEY (K)",
		"CREATE TABLE U (K INT64, V INT64) PRIMARY KEY (K)",
		"CREATE CHANGE STREAM Changes FOR ALL",
	} {
		next, _, err := c.Apply(ddl, testCompiler{})
		if err != nil {
			t.Fatalf("%s: %v", ddl, err)
		}
		c = next
	}
	return c
}

// scanOf returns a scan of a table with the given columns. The columns get the Col IDs first, first+1 and so on.
func scanOf(c *schema.Catalog, table string, first int, columns ...string) *TableScan {
	s := &TableScan{Table: c.Table(table)}
	for i, name := range columns {
		s.Columns = append(s.Columns, s.Table.Column(name))
		s.Out = append(s.Out, Col{ID: first + i, Name: name, Type: value.Int64Type})
	}
	return s
}

func columnsNamed(t *schema.Table, names ...string) (list []*schema.Column) {
	for _, n := range names {
		list = append(list, t.Column(n))
	}
	return list
}

func refTo(id int) Expr { return &Ref{Col{ID: id, Type: value.Int64Type}} }

func text(s string) Expr { return &Literal{T: value.StringType, Value: value.OfString(s)} }

func callOf(name string, args ...Expr) Expr {
	return &Call{Func: &Function{Name: name, Type: value.Int64Type}, Args: args}
}

// TestNeeds checks that Needs returns exactly the privileges that a role needs to run a statement, for each kind of
// statement.
func TestNeeds(t *testing.T) {
	c := testCatalog(t)
	tt, u := c.Table("T"), c.Table("U")
	seven := &Literal{T: value.Int64Type, Value: value.OfInt64(7)}
	selecting := func(e Expr) Statement { return &Query{Scan: &Filter{Input: new(SingleRow), Cond: e}} }
	view := func(definer bool) Scan {
		v := &schema.View{Entity: schema.Entity{ID: 900, Name: "V"}, Definer: definer}
		return &ViewScan{View: v, Input: scanOf(c, "U", 1, "V")}
	}
	for _, test := range []struct {
		name string
		s    Statement
		want string
	}{
		{"read", &Query{Scan: scanOf(c, "T", 1, "K", "A")}, "SELECT table T(K,A)"},
		{"read twice", &Query{Scan: &Join{Left: scanOf(c, "T", 1, "K", "A"), Right: scanOf(c, "T", 3, "A", "B")}}, "SELECT table T(K,A,B)"},
		{"count", &Query{Scan: &Aggregate{Input: scanOf(c, "T", 1)}}, "SELECT any column of table T"},
		{"count and read", &Query{Scan: &Join{Left: scanOf(c, "T", 1), Right: scanOf(c, "T", 3, "A")}}, "SELECT any column of table T; SELECT table T(A)"},
		{"view of its reader", &Query{Scan: view(false)}, "SELECT view V; SELECT table U(V)"},
		{"view of its definer", &Query{Scan: view(true)}, "SELECT view V"},
		{"insert", &Insert{Table: u, Columns: u.Columns, Rows: [][]Expr{{seven, seven}}}, "INSERT table U(K,V)"},
		{"insert or ignore", &Insert{Table: u, Columns: u.Columns, Mode: InsertOrIgnore}, "INSERT table U(K,V)"},
		{"insert or update", &Insert{Table: u, Columns: u.Columns, Mode: InsertOrUpdate}, "INSERT table U(K,V); UPDATE table U(K,V)"},
		{"insert without the column of a sequence", &Insert{Table: tt, Columns: columnsNamed(tt, "K"), Rows: [][]Expr{{seven}}}, "INSERT table T(K,S); UPDATE sequence Seq"},
		{"insert the column of a sequence", &Insert{Table: tt, Columns: columnsNamed(tt, "K", "S"), Rows: [][]Expr{{seven, seven}}}, "INSERT table T(K,S)"},
		{"insert DEFAULT in one row", &Insert{Table: tt, Columns: columnsNamed(tt, "K", "S"), Rows: [][]Expr{{seven, seven}, {seven, nil}}}, "INSERT table T(K,S); UPDATE sequence Seq"},
		{"insert no column", &Insert{Table: tt}, "INSERT table T; INSERT table T(S); UPDATE sequence Seq"},
		{"insert a query", &Insert{Table: u, Columns: u.Columns, Query: &Query{Scan: scanOf(c, "T", 1, "A", "B")}}, "INSERT table U(K,V); SELECT table T(A,B)"},
		{"insert and return", &Insert{Table: u, Columns: u.Columns, Return: &Returning{Scan: scanOf(c, "U", 1, "K", "V"), Exprs: []Expr{refTo(2)}}}, "INSERT table U(K,V); SELECT table U(V)"},
		{"insert or update on conflict", &Insert{Table: u, Columns: u.Columns, Conflict: &Conflict{Update: true, Old: scanOf(c, "U", 1, "K", "V"),
			Set: []Assignment{{u.Column("V"), refTo(2)}}, Where: refTo(1)}}, "INSERT table U(K,V); UPDATE table U(V); SELECT table U(V,K)"},
		{"update", &Update{Table: u, Scan: scanOf(c, "U", 1, "K", "V"), Where: refTo(1), Set: []Assignment{{u.Column("V"), seven}}}, "UPDATE table U(V); SELECT table U(K)"},
		{"update without reading", &Update{Table: u, Scan: scanOf(c, "U", 1, "K", "V"), Where: seven, Set: []Assignment{{u.Column("V"), seven}}}, "UPDATE table U(V)"},
		{"update to DEFAULT", &Update{Table: tt, Scan: scanOf(c, "T", 1, "K"), Where: seven, Set: []Assignment{{tt.Column("S"), nil}}}, "UPDATE table T(S); UPDATE sequence Seq"},
		{"update from", &Update{Table: u, Scan: scanOf(c, "U", 1, "K"), Where: seven, From: scanOf(c, "T", 5, "A"), Set: []Assignment{{u.Column("V"), refTo(5)}}}, "UPDATE table U(V); SELECT table T(A)"},
		{"delete", &Delete{Table: u, Scan: scanOf(c, "U", 1, "K", "V"), Where: refTo(2)}, "DELETE table U; SELECT table U(V)"},
		{"delete all", &Delete{Table: u, Scan: scanOf(c, "U", 1, "K"), Where: seven}, "DELETE table U"},
		{"procedure", &Procedure{Name: "cancel_query", Args: []Expr{seven}}, "member of spanner_sys_reader for procedure cancel_query"},
		{"change stream", &ChangeStreamRead{Stream: c.ChangeStream("Changes")}, "SELECT change stream Changes; EXECUTE table function READ_Changes"},
		{"next value", selecting(callOf("get_next_sequence_value", text("Seq"))), "UPDATE sequence Seq"},
		{"state of a sequence", selecting(callOf("get_internal_sequence_state", text("Seq"))), "SELECT sequence Seq"},
		{"state of an identity column", selecting(callOf("get_table_column_identity_state", text("U.K"))), "SELECT table U(K)"},
		{"state of nothing", selecting(callOf("get_table_column_identity_state", text("U.Missing"))), ""},
		{"state of any", selecting(callOf("get_internal_sequence_state", refTo(9))), "member of spanner_info_reader for function get_internal_sequence_state"},
		{"state of NULL", selecting(callOf("get_internal_sequence_state", &Literal{T: value.StringType, Value: value.Null(value.String)})), "member of spanner_info_reader for function get_internal_sequence_state"},
		{"next value in a lambda", selecting(&Call{Func: &Function{Name: "f"}, Args: []Expr{&Lambda{Body: callOf("get_next_sequence_value", text("Seq"))}}}), "UPDATE sequence Seq"},
		{"nothing", selecting(seven), ""},
	} {
		if got := needsText(c, Needs(test.s, c)); got != test.want {
			t.Errorf("%s: needs %s; want %s", test.name, got, test.want)
		}
	}
}

func needsText(c *schema.Catalog, list []schema.Need) string {
	var words []string
	for _, n := range list {
		what := n.Kind + " " + n.Name
		if len(n.Columns) > 0 {
			var names []string
			for _, id := range n.Columns {
				at := slices.IndexFunc(c.Table(n.Name).Columns, func(c *schema.Column) bool { return c.ID == id })
				names = append(names, c.Table(n.Name).Columns[at].Name)
			}
			what += "(" + strings.Join(names, ",") + ")"
		}
		switch {
		case n.Member != "":
			what = "member of " + n.Member + " for " + what
		case n.AnyColumn:
			what = fmt.Sprintf("%s any column of %s", n.Privilege, what)
		default:
			what = fmt.Sprintf("%s %s", n.Privilege, what)
		}
		words = append(words, what)
	}
	return strings.Join(words, "; ")
}
