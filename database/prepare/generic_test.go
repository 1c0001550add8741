package prepare_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"google.golang.org/protobuf/proto"

	"github.com/crowfoot-db/crowfoot/database/prepare"
	"github.com/crowfoot-db/crowfoot/sql/analyze"
	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/txn"
	"github.com/crowfoot-db/crowfoot/value"
)

// sharer compares the results of statements that were prepared with their literals with the results of statements that
// share a generic plan.
type sharer struct {
	*bed
	*rand.Rand
	texts, shared, runs int // numbers of texts, of texts that share a generic plan, and of runs with such a plan
}

// compare runs a text with a shared plan and with a plan of its own, and compares the results. Then it does the same
// with texts that have other literals. It does nothing if the text cannot share a plan.
func (s *sharer) compare(sql string, values map[string]value.Value, types map[string]*value.Type) {
	s.t.Helper()
	p := s.preparer()
	text, ok := p.Normalize(sql, types, prepare.Options{})
	if !ok {
		return
	}
	own, err := p.Alone(context.Background(), sql, types, prepare.Options{})
	if err != nil {
		return
	}
	s.texts++
	if !text.Share(own) {
		return
	}
	s.shared++
	for range 6 {
		s.compareOne(sql, values, types)
		sql = s.vary(sql)
	}
}

func (s *sharer) compareOne(sql string, values map[string]value.Value, types map[string]*value.Type) {
	s.t.Helper()
	p := s.preparer()
	text, _ := p.Normalize(sql, types, prepare.Options{})
	general := text.Statement()
	if general == nil {
		return // a literal of the text has an unusual form, so the text does not share the plan
	}
	own, err := p.Alone(context.Background(), sql, types, prepare.Options{})
	if err != nil {
		s.t.Fatalf("%s\nis refused: %v; but there is a generic plan", sql, err)
	}
	s.runs++
	if a, b := own.Plan.Proto(nil, nil), general.Plan.Proto(nil, general.Literals()); !proto.Equal(a, b) {
		s.t.Fatalf("%s\nhas another plan:\n%v\nby the generic plan:\n%v", sql, a, b)
	}
	if general.Text != own.Text {
		s.t.Fatalf("%s\nis called %v", sql, general.Text)
	}
	if a, b := s.outcome(own, values), s.outcome(general, values); a != b {
		s.t.Fatalf("%s\ngives\n%sby the generic plan:\n%s", sql, a, b)
	}
}

// outcome runs a statement in a transaction, rolls the transaction back, and returns the text of the rows or of the
// error.
func (s *sharer) outcome(stmt *prepare.Statement, values map[string]value.Value) string {
	tx := s.db.Transactions().Begin(txn.Options{})
	defer tx.Rollback()
	out, err := s.rows(stmt, values, tx)
	if err != nil {
		out += "error: " + err.Error() + "\n"
	}
	return out
}

func (s *sharer) rows(stmt *prepare.Statement, values map[string]value.Value, tx *txn.Tx) (string, error) {
	var out strings.Builder
	for _, c := range stmt.Plan.Columns {
		fmt.Fprintf(&out, "%s %s|", c.Name, c.Type)
	}
	var params []value.Value
	for i, p := range stmt.Plan.Params {
		v, ok := stmt.Literal(i)
		if !ok {
			v = values[p.Name]
		}
		params = append(params, v)
	}
	rows, err := stmt.Run(context.Background(), prepare.Run{Writer: tx, Params: params}, time.Unix(1700000000, 0))
	if err != nil {
		return out.String(), err
	}
	defer rows.Close()
	for {
		more, err := rows.Next()
		if err != nil {
			return out.String(), err
		}
		if !more {
			fmt.Fprintf(&out, "\n%d changed\n", rows.RowCount())
			return out.String(), rows.Close()
		}
		out.WriteByte('\n')
		for i, v := range rows.Values(nil) {
			out.WriteString(tree.FormatLiteral(&tree.Literal{T: stmt.Plan.Columns[i].Type, Value: v}) + "|")
		}
	}
}

var (
	otherIntegers  = []string{"0", "1", "2", "3", "5", "7", "-1", "-3", "42", "100", "9223372036854775807", "9223372036854775808"}
	otherFractions = []string{"0.0", "-0.0", "0.5", "1.0", "-2.25", "3.14159265358979", "1234567890.1234567891"}
	otherStrings   = []string{"''", "'a'", `"b"`, "'abc'", "'a%'", "'2024-02-29'", "'2024-02-30'", "'2024-05-06T07:08:09Z'", "'2024-5-6'",
		"'2024-05-06 07:08:09+02'", "'6f1f5b1e-0000-4000-8000-000000000000'", `'\x41'`, "'''a'''", "'ü'", "r'a'"}
)

// vary replaces some literals of a text by random ones.
func (s *sharer) vary(sql string) string {
	of, ok := analyze.Normalize(sql)
	if !ok {
		return sql
	}
	for _, l := range slices.Backward(of.Literals) {
		others, size := otherIntegers, len(l.Text)
		switch l.Type.Kind {
		case value.String:
			others, size = otherStrings, len(l.Text)+2
		case value.Float64:
			others = otherFractions
		}
		if s.IntN(3) > 0 {
			sql = sql[:l.End-size] + others[s.IntN(len(others))] + sql[l.End:]
		}
	}
	return sql
}

// run runs a DML statement and commits it.
func (s *sharer) run(sql string) error {
	stmt, err := s.preparer().Alone(context.Background(), sql, nil, prepare.Options{})
	if err != nil {
		return err
	}
	tx := s.db.Transactions().Begin(txn.Options{})
	if _, err := s.rows(stmt, nil, tx); err != nil {
		tx.Rollback()
		return err
	}
	_, err = tx.Commit(context.Background(), nil, txn.CommitOptions{})
	return err
}

// constant parses the line of a script that gives a value to a parameter: "@name TYPE = expression".
func (s *sharer) constant(line string) (name string, v value.Value, t *value.Type, err error) {
	head, expr, _ := strings.Cut(line, " = ")
	name, typ, _ := strings.Cut(head[1:], " ")
	stmt, err := s.preparer().Alone(context.Background(), "SELECT CAST("+expr+" AS "+typ+")", nil, prepare.Options{})
	if err != nil {
		return name, v, nil, err
	}
	tx := s.db.Transactions().Begin(txn.Options{})
	defer tx.Rollback()
	rows, err := stmt.Run(context.Background(), prepare.Run{Writer: tx}, time.Now())
	if err != nil {
		return name, v, nil, err
	}
	defer rows.Close()
	if ok, err := rows.Next(); err != nil || !ok {
		return name, v, nil, errors.Join(err, errors.New("no value"))
	}
	return strings.ToLower(name), rows.Values(nil)[0], stmt.Plan.Columns[0].Type, nil
}

// TestSharedPlansOfScripts runs the scripts of sql/exec and sql/analyze. A statement with a shared plan must return the
// same result, error and plan as the same text prepared with its literals. The same must hold for texts with other
// literals.
func TestSharedPlansOfScripts(t *testing.T) {
	total := sharer{}
	for _, dir := range []string{"../../sql/exec/testdata", "../../sql/analyze/testdata"} {
		datadriven.Walk(t, dir, func(t *testing.T, path string) {
			if filepath.Base(path) == "sequence" {
				return // a sequence returns other values each time
			}
			s := sharer{bed: create(t), Rand: rand.New(rand.NewPCG(1, 2))}
			datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
				s.t = t
				for _, sql := range scripted(d.Input) {
					s.directive(d.Cmd, sql)
				}
				return d.Expected
			})
			total.add(&s)
		})
	}
	total.wantMost(t)
}

func (s *sharer) add(o *sharer) {
	s.texts, s.shared, s.runs = s.texts+o.texts, s.shared+o.shared, s.runs+o.runs
}

// wantMost fails the test if fewer than nine tenths of the texts share a plan. It also fails the test if the texts that
// share a plan were run with the shared plan fewer than twice on average.
func (s *sharer) wantMost(t *testing.T) {
	t.Helper()
	t.Logf("%d statements with literals, %d share, %d runs", s.texts, s.shared, s.runs)
	if s.shared < s.texts*9/10 || s.runs < 2*s.shared {
		t.Error("too few statements share a plan")
	}
}

const sharedSchema = `
CREATE TABLE T (
  A INT64 NOT NULL, B INT64, S STRING(MAX), F FLOAT64, N NUMERIC, D DATE, Ts TIMESTAMP, U UUID, L BOOL, X ARRAY<INT64>,
) PRIMARY KEY (A, B DESC);
CREATE INDEX T_S ON T (S) STORING (F);
CREATE INDEX T_D ON T (D DESC, N);
CREATE NULL_FILTERED INDEX T_F ON T (F);
CREATE TABLE C (
  A INT64 NOT NULL, B INT64, K INT64, S STRING(20), CONSTRAINT Short CHECK (LENGTH(S) < 10),
) PRIMARY KEY (A, B DESC, K), INTERLEAVE IN PARENT T;
`

// TestSharedPlansOfRandomStatements checks that random statements have the same results with a shared plan as with a
// plan of their own. Some of the databases have a default time zone other than that of Cloud Spanner.
func TestSharedPlansOfRandomStatements(t *testing.T) {
	total := sharer{}
	for seed := range uint64(4) {
		s := sharer{bed: create(t), Rand: rand.New(rand.NewPCG(seed, 3))}
		if seed%2 == 1 {
			s.alter("ALTER DATABASE test SET OPTIONS (default_time_zone = 'Asia/Tokyo')")
		}
		s.alter(scripted(sharedSchema)...)
		for range 40 {
			_ = s.run(s.insertInto("T")) // it fails if the key exists
			_ = s.run(s.insertInto("C"))
		}
		for range 150 {
			s.compare(s.statement(), nil, nil)
		}
		total.add(&s)
	}
	total.wantMost(t)
}

func (s *sharer) pick(list ...string) string { return list[s.IntN(len(list))] }

var literalsOf = map[string][]string{
	"A": {"1", "2", "3", "4", "-1"}, "B": {"0", "1", "2", "-7"}, "K": {"1", "2", "3"},
	"S":  {"'a'", "'ab'", "''", `"b"`, "'ü'"},
	"F":  {"0.5", "1.0", "-2.25", "3", "-1"},
	"N":  {"1", "2.5", "-3", "99999999999.999999999"},
	"D":  {"'2024-02-29'", "'1970-01-01'", "DATE '2024-01-01'"},
	"Ts": {"'2024-05-06T07:08:09Z'", "'2024-05-06T07:08:09.123456789Z'"},
	"U":  {"'6f1f5b1e-0000-4000-8000-000000000000'"},
}

func (s *sharer) literalOf(column string) string { return s.pick(literalsOf[column]...) }

func (s *sharer) insertInto(table string) string {
	columns := map[string][]string{"T": {"A", "B", "S", "F", "N", "D", "Ts", "U"}, "C": {"A", "B", "K", "S"}}[table]
	var rows []string
	for range 1 + s.IntN(2) {
		var values []string
		for _, c := range columns {
			values = append(values, s.literalOf(c))
		}
		rows = append(rows, "("+strings.Join(values, ", ")+")")
	}
	return fmt.Sprintf("INSERT INTO %s (%s) VALUES %s", table, strings.Join(columns, ", "), strings.Join(rows, ", "))
}

// condition returns a random condition on T. q is the alias of T in the statement with a dot, such as "t.", or "" if T
// has no alias.
func (s *sharer) condition(q string, depth int) string {
	if depth > 0 {
		switch s.IntN(5) {
		case 0, 1:
			return s.condition(q, depth-1) + " AND " + s.condition(q, depth-1)
		case 2:
			return "(" + s.condition(q, depth-1) + " OR " + s.condition(q, depth-1) + ")"
		case 3:
			return "NOT (" + s.condition(q, depth-1) + ")"
		}
	}
	c := s.pick("A", "B", "S", "F", "N", "D", "Ts", "U")
	x := s.literalOf(c)
	switch s.IntN(8) {
	case 0:
		return fmt.Sprintf("%s%s IN (%s, %s)", q, c, x, s.literalOf(c))
	case 1:
		return fmt.Sprintf("%s%s BETWEEN %s AND %s", q, c, x, s.literalOf(c))
	case 2:
		return fmt.Sprintf("%sA + %s < %s * %sB", q, s.literalOf("A"), s.literalOf("B"), q)
	case 3:
		return fmt.Sprintf("(%sS LIKE %s OR %sS || %s = %s)", q, s.pick("'a%'", "'%b'", "'ab'"), q, s.literalOf("S"), s.literalOf("S"))
	case 4:
		return fmt.Sprintf("IF(%s%s = %s, %sA, 1) = %s", q, c, x, q, s.literalOf("A"))
	}
	return fmt.Sprintf("%s%s %s %s", q, c, s.pick("=", "=", "<", "<=", ">", ">=", "!="), x)
}

func (s *sharer) statement() string {
	where := s.condition("", 2)
	switch s.IntN(9) {
	case 0:
		return s.insertInto(s.pick("T", "C"))
	case 1:
		c := s.pick("S", "F", "N", "D", "Ts", "U")
		return fmt.Sprintf("UPDATE T SET %s = %s WHERE %s", c, s.literalOf(c), where)
	case 2:
		return fmt.Sprintf("UPDATE T SET F = F * %s + %s WHERE %s THEN RETURN A, F = %s", s.literalOf("F"), s.literalOf("F"), where, s.literalOf("F"))
	case 3:
		return "DELETE FROM T WHERE " + where
	case 4:
		return fmt.Sprintf("SELECT S, COUNT(*) AS n, SUM(A) FROM T WHERE %s GROUP BY 1 HAVING n > %s ORDER BY 1, 2 LIMIT 5", where, s.literalOf("A"))
	case 5:
		return fmt.Sprintf("SELECT t.A, c.S, 7 AS seven FROM T t JOIN C c ON t.A = c.A AND c.K %s %s WHERE %s", s.pick("=", ">"), s.literalOf("K"), s.condition("t.", 1))
	case 6:
		return fmt.Sprintf("SELECT A FROM T t WHERE EXISTS (SELECT 1 FROM C c WHERE c.A = t.A AND c.K = %s) AND %s", s.literalOf("K"), s.condition("t.", 1))
	case 7:
		return fmt.Sprintf("SELECT A, B FROM T WHERE A = %s AND B = %s /* one row */", s.literalOf("A"), s.literalOf("B"))
	}
	return fmt.Sprintf("SELECT A, F = %s AS same, 'x' AS x FROM T@{FORCE_INDEX=%s} WHERE %s ORDER BY A, B LIMIT 10 OFFSET 1",
		s.literalOf("F"), s.pick("_BASE_TABLE", "T_S", "T_D"), where)
}

func (s *sharer) directive(cmd, sql string) {
	switch {
	case cmd == "ddl":
		_ = s.db.UpdateSchema(context.Background(), []string{sql}, nil) // in some scripts the DDL is meant to fail
		return
	case strings.Contains(sql, "_UUID"), strings.Contains(strings.ToUpper(sql), "TABLESAMPLE"), strings.Contains(sql, "PARTS"):
		return // the result differs each time, or the table PARTS exists only in the tests of sql/exec
	case cmd == "kind", cmd == "expr":
		return
	}
	values, types := map[string]value.Value{}, map[string]*value.Type{}
	for strings.HasPrefix(sql, "@") && !strings.HasPrefix(sql, "@{") {
		line, rest, _ := strings.Cut(sql, "\n")
		name, v, t, err := s.constant(line)
		if err != nil {
			return
		}
		values[name], types[name], sql = v, t, rest
	}
	s.compare(sql, values, types)
	if cmd == "exec" {
		_ = s.run(sql)
	}
}

// scripted returns the SQL statements in the input of one command of a script.
func scripted(input string) []string {
	var list []string
	for stmt := range strings.SplitSeq(input+"\n", ";\n") {
		if stmt = strings.TrimSpace(stmt); stmt != "" {
			list = append(list, stmt)
		}
	}
	return list
}
