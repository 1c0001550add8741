package exec_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/crowfoot-db/crowfoot/sql/exec"
	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/value"
	"github.com/crowfoot-db/crowfoot/value/columnar"
)

// arrowSource is a ColumnSource over Arrow arrays. Opening it reads the rows of a view into the arrays.
type arrowSource struct {
	read    exec.ColumnRead
	records []arrow.RecordBatch
	from, n int // the current rows are the rows [from, from+n) of the first record
	viewers []columnar.Viewer
	closed  *int
}

// arrowSources opens ColumnSources; tests use its method open as exec.Env.Columns. The sources hold the rows in
// records of at most recordBytes bytes. arrowSources counts how many sources are opened and closed.
type arrowSources struct {
	view           table.View
	recordBytes    int
	opened, closed int
}

func (s *arrowSources) open(read exec.ColumnRead) (exec.ColumnSource, error) {
	s.opened++
	var columns []columnar.Column
	for _, c := range read.Projection.Columns {
		columns = append(columns, columnar.Column{Name: c.Name, Type: c.Type})
	}
	source := &arrowSource{read: read, viewers: make([]columnar.Viewer, len(columns)), closed: &s.closed}
	rows := table.Read{Projection: read.Projection, Spans: read.Spans}.Open(context.Background(), s.view)
	defer rows.Close()
	for {
		b := columnar.NewBatch(columns, columnar.Options{})
		n, err := rows.Fill(b.Columns, s.recordBytes)
		if n == 0 || err != nil {
			return source, err
		}
		source.records = append(source.records, b.Record(n))
	}
}

func (s *arrowSource) Next(most int) (rows int, err error) {
	s.from += s.n
	for len(s.records) > 0 && s.from == int(s.records[0].NumRows()) {
		s.records, s.from = s.records[1:], 0
	}
	s.n = 0
	if len(s.records) > 0 {
		s.n = min(most, int(s.records[0].NumRows())-s.from)
	}
	return s.n, nil
}

func (s *arrowSource) Column(i int) (fn.Column, error) {
	v, err := s.viewers[i].View(s.records[0].Column(i), s.read.Projection.Columns[i].Type, s.from, s.n)
	return fn.Column{Vector: v}, err
}

func (s *arrowSource) Chunks() int { return 1 }
func (s *arrowSource) Release()    {}

func (s *arrowSource) Close() error {
	*s.closed++
	return nil
}

// printed runs a query and returns its rows, or its error, as text. If recordBytes is 0, scans read rows; else they
// read columns in records of at most recordBytes bytes. opened is the number of ColumnSources that were opened.
func (db *testDB) printed(t *testing.T, sql string, recordBytes int) (lines []string, opened int) {
	t.Helper()
	p, err := db.plan(sql, nil)
	if err != nil {
		t.Fatalf("%s\n%v", sql, err)
	}
	p.Read = nil // a key read would run no operators
	program, err := exec.Compile(p, table.NewDescriptors(db.catalog))
	if err != nil {
		t.Fatalf("%s\n%v", sql, err)
	}
	err = db.read(func(view table.View) error {
		sources := &arrowSources{view: view, recordBytes: recordBytes}
		env := exec.Env{View: view, Functions: db.functions(), Spill: db.spill, SpillAbove: db.spillAbove}
		if recordBytes > 0 {
			env.Columns = sources.open
		}
		rows, err := program.Run(context.Background(), env)
		if err == nil {
			for {
				var ok bool
				if ok, err = rows.Next(); !ok || err != nil {
					break
				}
				var words []string
				for i, v := range rows.Values(nil) {
					words = append(words, printValue(v, p.Columns[i].Type))
				}
				lines = append(lines, strings.Join(words, " "))
			}
			rows.Close()
		}
		if sources.opened != sources.closed {
			t.Errorf("%s: %d sources opened, %d closed", sql, sources.opened, sources.closed)
		}
		opened = sources.opened
		return err
	})
	if err != nil {
		lines = []string{err.Error()} // leave out the rows before the error: their number depends on the size of batches
	}
	return lines, opened
}

// TestVectors checks that random queries return the same results and errors when their expressions are computed for
// many rows at once and when they are computed row by row.
func TestVectors(t *testing.T) {
	db := randomDB(t, rand.New(rand.NewPCG(*seedFlag, 0)))
	failed := 0
	for seed := *seedFlag; seed < *seedFlag+uint64(*roundsFlag); seed++ {
		g := generator{rand.New(rand.NewPCG(seed, 7))}
		e := g.risky(3)
		vectors := g.pick("SELECT A, B FROM T WHERE "+e, "SELECT "+e+" FROM T", "SELECT A, COUNTIF("+e+"), MAX("+g.number(2)+") FROM T WHERE A != 0 AND N != 0 GROUP BY A",
			"SELECT B, COUNT(*) FROM (SELECT B, "+e+" AS E FROM T) WHERE E GROUP BY B", "SELECT SUM("+g.number(3)+") FROM T", "SELECT "+e+", COUNT(*) FROM T GROUP BY 1")
		want, _ := db.printed(t, vectors, 0)
		for _, recordBytes := range []int{60, 100_000} {
			got, _ := db.printed(t, vectors, recordBytes)
			if !slices.Equal(got, want) {
				t.Fatalf("seed %d: %s\nby columns %q\nby rows    %q\n%s", seed, vectors, got, want, db.explain(vectors))
			}
		}
		if len(want) == 1 && strings.Contains(want[0], "zero") {
			failed++
		}
	}
	if failed < *roundsFlag/20 || failed > *roundsFlag*3/4 {
		t.Errorf("%d of %d queries divide by zero", failed, *roundsFlag)
	}
}

// number returns a random expression over the numeric columns of T. The expression can be NULL.
func (g generator) number(depth int) string {
	if depth > 0 {
		x, y := g.number(depth-1), g.number(depth-1)
		switch g.IntN(7) {
		case 0, 1:
			return "(" + x + g.pick(" + ", " - ", " * ") + y + ")"
		case 2:
			return "DIV(" + x + ", " + y + ")"
		case 3:
			return "MOD(" + x + ", " + y + ")"
		case 4:
			return "CAST(" + x + " / 2 AS INT64)"
		case 5:
			return "(-" + x + ")"
		}
	}
	return g.pick("A", "N", "B", "A", "N", "1", "3", "CAST(NULL AS INT64)")
}

// risky returns a random condition over T. Some of the conditions divide by zero for some rows, which is an error.
func (g generator) risky(depth int) string {
	if depth > 0 {
		switch g.IntN(6) {
		case 0, 1:
			return "(" + g.risky(depth-1) + " AND " + g.risky(depth-1) + ")"
		case 2:
			return "(" + g.risky(depth-1) + " OR " + g.risky(depth-1) + ")"
		case 3:
			return "(NOT " + g.risky(depth-1) + ")"
		}
	}
	switch g.IntN(8) {
	case 0:
		return g.pick("A <> 0 AND 10 / A > 1", "A = 0 OR 10 / A > 1", "10 / N > F", "DIV(6, A) = N", "MOD(A, N) = 1", "A / N >= 2.0")
	case 1:
		return g.pick("N", "A") + " IN (" + g.literal("N") + ", 2, 3)"
	case 2:
		return g.pick("N", "A") + " IN UNNEST([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, " + g.typed("N") + "])"
	case 3:
		return g.number(1) + g.pick(" = ", " < ", " <= ", " > ", " >= ", " != ") + g.number(1)
	case 4:
		return g.pick("D > DATE '2024-01-01'", "D = D", "L", "L IS NULL", "S || 'x' = 'ax'", "LENGTH(S) > 1", "EXTRACT(DAY FROM D) = 1", "IF(L, A, N) > 2", "F = F", "F * 2 != F")
	}
	return g.predicate("", 0)
}

// TestColumns checks that random queries return the same results when their scans read columns and when their scans
// read rows.
func TestColumns(t *testing.T) {
	db := randomDB(t, rand.New(rand.NewPCG(*seedFlag, 0)))
	byColumns := 0
	for seed := *seedFlag; seed < *seedFlag+uint64(*roundsFlag); seed++ {
		g := generator{rand.New(rand.NewPCG(seed, 6))}
		sql := g.columnQuery()
		want, _ := db.printed(t, sql, 0)
		got, opened := db.printed(t, sql, 100)
		byColumns += opened
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d: %s\nby columns %q\nby rows    %q\n%s", seed, sql, got, want, db.explain(sql))
		}
	}
	if byColumns < *roundsFlag/2 {
		t.Errorf("only %d scans were by columns", byColumns)
	}
}

// columnQuery returns a random query whose operators can process batches of columns.
func (g generator) columnQuery() string {
	where := ""
	if g.IntN(2) == 0 {
		where = " WHERE " + g.predicate("", 2)
	}
	from := g.pick("T", "T@{FORCE_INDEX=_BASE_TABLE}", "(SELECT * FROM T"+where+" LIMIT 20)", "(SELECT A, B, S, F, D, L, N FROM T UNION ALL SELECT A, B, S, F, D, L, N + 1 FROM T)")
	if g.IntN(4) == 0 {
		return fmt.Sprintf("SELECT %s FROM %s%s", g.pick("*", "A, N", "N + 1, S", "S, L, D"), from, where)
	}
	keys := g.pick("", "A", "N", "S", "F", "D", "L", "A, B", "S, N", "D, L, F")
	var aggs []string
	for range 1 + g.IntN(3) {
		aggs = append(aggs, g.pick("COUNT(*)", "COUNT(N)", "COUNT(S)", "COUNTIF(L)", "SUM(A)", "SUM(N)", "SUM(F)", "AVG(F)", "AVG(N)", "MIN(N)", "MAX(S)", "MIN(S)", "MAX(F)",
			"MIN(F)", "MAX(D)", "MIN(L)", "SUM(N * 2)", "SUM(A + N)", "COUNT(DISTINCT N)", "STRING_AGG(S, '-')", "ANY_VALUE(A)", "LOGICAL_OR(L)", "BIT_XOR(N)"))
	}
	if keys == "" {
		return fmt.Sprintf("SELECT %s FROM %s%s", strings.Join(aggs, ", "), from, where)
	}
	return fmt.Sprintf("SELECT %s, %s FROM %s%s GROUP BY %s", keys, strings.Join(aggs, ", "), from, where, keys)
}

// TestColumnBatches checks that a query returns the same results in three ways: with a scan that reads columns, with
// one that decodes rows into vectors, and with one that reads row by row. The table has 5000 rows, so that batches of
// columns are full.
func TestColumnBatches(t *testing.T) {
	db := newTestDB(t)
	const rows = 5000
	if out := db.ddl("CREATE TABLE W (Id INT64 NOT NULL, K INT64, X NUMERIC, P TIMESTAMP, S STRING(MAX)) PRIMARY KEY (Id)"); out != "" {
		t.Fatal(out)
	}
	w := db.catalog.Table("W")
	m := table.Mutation{Op: table.Insert, Table: w, Columns: w.Columns}
	for id := range int64(rows) {
		x := value.OfNumeric(value.DecimalFromInt64(id % 1000))
		m.Rows = append(m.Rows, []value.Value{value.OfInt64(id), value.OfInt64(id % 3), x, value.OfTimestamp(id*1_000_000-2_000_000_000, int32(id)), value.OfString(fmt.Sprint("text ", id%7))})
		for c := 1; c < 5; c++ {
			if id%int64(c+10) == 0 {
				m.Rows[id][c] = value.Null(w.Columns[c].Type.Kind)
			}
		}
	}
	err := db.write(func(w table.Writer) error {
		_, err := table.Apply(context.Background(), w, table.NewDescriptors(db.catalog), []table.Mutation{m}, db.now)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{
		"SELECT COUNT(*), SUM(Id), SUM(X), AVG(X), MIN(S), MAX(S) FROM W",
		"SELECT K, COUNT(*), SUM(X), MIN(P), MAX(P), MIN(S) FROM W GROUP BY K",
		"SELECT S, K, COUNT(*), SUM(Id) FROM W WHERE Id > 10 GROUP BY S, K",
		"SELECT P, S FROM W WHERE K = 1",
		"SELECT P, COUNT(*) FROM W WHERE X > 500 AND P > TIMESTAMP '1990-01-01' AND S LIKE 'text 1%' GROUP BY P",
		"SELECT X, S, MIN(Id), MAX(P) FROM W WHERE MOD(Id, 10) < 3 OR K IS NULL GROUP BY X, S",
		"SELECT SUM(X / (Id - 4444)) FROM W",
		"SELECT Id, S FROM W ORDER BY S, Id DESC LIMIT 20",
	} {
		// The LIMIT drops no row. It only makes the scan below it read row by row.
		want, _ := db.printed(t, strings.Replace(sql, "FROM W", "FROM (SELECT * FROM W LIMIT 100000)", 1), 0)
		decoded, _ := db.printed(t, sql, 0)
		got, opened := db.printed(t, sql, 50_000)
		if !slices.Equal(got, want) || !slices.Equal(decoded, want) || opened != 1 {
			t.Errorf("%s: %d sources\nby columns %.300q\ndecoded    %.300q\nby rows    %.300q", sql, opened, got, decoded, want)
		}
	}
}
