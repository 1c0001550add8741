package database

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/crowfoot-db/crowfoot/columnar"
	"github.com/crowfoot-db/crowfoot/database/prepare"
	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/sql/exec"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/txn"
	"github.com/crowfoot-db/crowfoot/value"
	stored "github.com/crowfoot-db/crowfoot/value/columnar"
)

// columnQueries is a database with columnar copies whose chunks the test itself writes. Its methods make random changes
// and queries.
type columnQueries struct {
	copied
	*rand.Rand
	chunks int64 // number of chunks that queries have read
}

const columnQueriesDDL = `CREATE TABLE T (A INT64 NOT NULL, B STRING(MAX), N INT64, F FLOAT64, D DATE, S STRING(MAX), M NUMERIC, Stamp TIMESTAMP, L BOOL, G ARRAY<INT64>) PRIMARY KEY (A, B DESC), OPTIONS (columnar_policy = 'enabled');
CREATE TABLE U (A INT64 NOT NULL, B STRING(MAX), C INT64 NOT NULL, N INT64) PRIMARY KEY (A, B DESC, C), INTERLEAVE IN PARENT T ON DELETE CASCADE, OPTIONS (columnar_policy = 'enabled');
CREATE INDEX TByN ON T (N DESC, S) STORING (F);
CREATE NULL_FILTERED INDEX TByD ON T (D)`

// TestRandomColumnQueries compares queries over columnar copies with the same queries over rows, at random timestamps,
// while rows change and random chunks of the copies are written.
func TestRandomColumnQueries(t *testing.T) {
	for seed := uint64(1); seed <= 3; seed++ {
		q := &columnQueries{copied: newCopied(t, strings.Split(columnQueriesDDL, ";\n")...), Rand: rand.New(rand.NewPCG(seed, 7))}
		var times []mvcc.Timestamp
		for range 25 {
			q.change()
			q.now.Add(time.Second.Microseconds())
			times = append(times, q.db.txns.Now())
			for range q.IntN(3) {
				q.writeChunk()
			}
			for range 8 {
				q.compare(seed, q.query(), times[max(0, len(times)-1-q.IntN(6))])
			}
		}
		if q.chunks < 100 {
			t.Errorf("seed %d: queries read %d chunks", seed, q.chunks)
		}
	}
}

func (q *columnQueries) pick(list ...string) string { return list[q.IntN(len(list))] }

// change inserts, updates and deletes some random rows.
func (q *columnQueries) change() {
	q.t.Helper()
	key := func() string {
		return fmt.Sprintf("%d, %s", q.IntN(40), q.pick("NULL", "''", "'a'", "'b'", "'ü'"))
	}
	var list []string
	for range 1 + q.IntN(30) {
		list = append(list, fmt.Sprintf("INSERT OR UPDATE INTO T (A, B, N, F, D, S, M, Stamp, L, G) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)", key(),
			q.pick("NULL", "1", "2", "-3"), q.pick("NULL", "0.5", "-2", "CAST('nan' AS FLOAT64)"), q.pick("NULL", "DATE '2024-02-29'", "DATE '0001-01-01'"), q.pick("NULL", "''", "'x'", "'yy'"),
			q.pick("NULL", "1.25", "-99999999999999999999999999999.999999999"), q.pick("NULL", "TIMESTAMP '2024-01-01T00:00:00.000000001Z'", "TIMESTAMP '9999-12-31T00:00:00Z'"), q.pick("NULL", "TRUE", "FALSE"), q.pick("NULL", "[]", "[1, NULL]")))
	}
	if q.IntN(2) == 0 {
		list = append(list, fmt.Sprintf("DELETE FROM T WHERE A = %d", q.IntN(40)))
	}
	list = append(list, fmt.Sprintf("INSERT OR UPDATE INTO U (A, B, C, N) SELECT A, B, %d, N FROM T WHERE MOD(A, 3) = %d", q.IntN(3), q.IntN(3)))
	for _, sql := range list {
		if err := q.execute(sql); err != nil {
			q.t.Fatalf("%s: %v", sql, err)
		}
	}
}

// execute runs a DML statement and commits it.
func (q *columnQueries) execute(sql string) error {
	ctx := context.Background()
	stmt, err := q.db.Prepare(ctx, q.db.Catalog(), sql, nil, prepare.Options{Verbatim: true})
	if err != nil {
		return err
	}
	tx := q.db.txns.Begin(txn.Options{})
	if _, err := stmt.Run(ctx, prepare.Run{Writer: tx}, q.clock()); err != nil {
		tx.Rollback()
		return err
	}
	_, err = tx.Commit(ctx, nil, txn.CommitOptions{})
	return err
}

// writeChunk writes a chunk of the copy of a random table or index. The chunk has the present rows in a random range of
// keys.
func (q *columnQueries) writeChunk() {
	q.t.Helper()
	ctx := context.Background()
	snapshot, err := q.db.txns.Snapshot(ctx, txn.Bound{Kind: txn.Strong})
	if err != nil {
		q.t.Fatal(err)
	}
	layouts := slices.Collect(table.Layouts(q.db.Catalog()))
	l := layouts[q.IntN(len(layouts))]
	p, err := columnar.Columns(l.Table, l.Index)
	if err != nil {
		q.t.Fatal(err)
	}
	span, _ := l.Space()
	rows := table.Read{Projection: p, Spans: []table.Span{span}}.Open(ctx, snapshot)
	defer rows.Close()
	var keys [][]byte
	for ok, err := rows.Next(); ok; ok, err = rows.Next() {
		if err != nil {
			q.t.Fatal(err)
		}
		keys = append(keys, slices.Clone(rows.Key()))
	}
	if n := len(keys); n > 0 && q.IntN(4) > 0 {
		i := q.IntN(n)
		if j := i + q.IntN(n-i); j > i {
			span.End = keys[j]
		}
		span.Start = keys[i]
	}
	if _, err := q.db.Copies().Make(l.ID()).Write(ctx, columnar.Source{Projection: p, View: snapshot, At: snapshot.Timestamp()}, span); err != nil {
		q.t.Fatal(err)
	}
}

// query returns a random query.
func (q *columnQueries) query() string {
	where := ""
	if q.IntN(2) == 0 {
		where = " WHERE " + q.pick("A BETWEEN 5 AND 30", "A IN (1, 7, 20, 21)", "N > 0", "S = 'x' AND N IS NOT NULL", "L OR D IS NULL", "M < 2", "Stamp IS NOT NULL AND A > 3", "D = DATE '2024-02-29'", "F < 1 OR A = 4", "ARRAY_LENGTH(G) = 2")
	}
	switch q.IntN(7) {
	case 0:
		return "SELECT * FROM T" + where + " ORDER BY A, B DESC"
	case 1:
		return "SELECT S, A, M, Stamp, L, G, D FROM T" + where + " ORDER BY A, B DESC"
	case 2:
		key := q.pick("A", "S", "L, D", "N", "M")
		return fmt.Sprintf("SELECT %s, COUNT(*), SUM(N), MIN(S), MAX(F), AVG(M), COUNT(DISTINCT D) FROM T%s GROUP BY %s", key, where, key)
	case 3:
		return "SELECT COUNT(*), SUM(N), MAX(Stamp), COUNTIF(L), MIN(M) FROM T" + where
	case 4:
		return "SELECT t.A, t.B, u.C, u.N FROM T t JOIN@{JOIN_METHOD=" + q.pick("HASH_JOIN", "APPLY_JOIN") + "} U u ON t.A = u.A AND t.B = u.B WHERE t.N = u.N"
	case 5:
		return "SELECT A, N, F FROM T@{FORCE_INDEX=TByN} WHERE N " + q.pick("> 0", "= 1", "IS NULL", "< 2")
	}
	return "SELECT A, N FROM T" + where + fmt.Sprintf(" ORDER BY A, B DESC LIMIT %d", q.IntN(9))
}

// compare checks that a query over columnar copies returns the same as over rows.
func (q *columnQueries) compare(seed uint64, sql string, at mvcc.Timestamp) {
	q.t.Helper()
	want, _ := q.rows("@{SCAN_METHOD=NO_COLUMNAR} "+sql, at, false)
	for _, arrays := range []bool{false, true} {
		got, chunks := q.rows("@{SCAN_METHOD=COLUMNAR} "+sql, at, arrays)
		q.chunks += chunks
		if !slices.Equal(got, want) {
			q.t.Fatalf("seed %d: %s at %d, arrays %t:\nby columns %q\nby rows    %q", seed, sql, at, arrays, got, want)
		}
	}
}

// rows returns the rows of a query as sorted lines, or the text of its error as the only line. It also returns the
// number of chunks that the query read.
func (q *columnQueries) rows(sql string, at mvcc.Timestamp, arrays bool) (lines []string, chunks int64) {
	q.t.Helper()
	ctx := context.Background()
	snapshot, err := q.db.txns.Snapshot(ctx, txn.Bound{Kind: txn.ReadTimestamp, Time: at.Time()})
	if err != nil {
		q.t.Fatal(err)
	}
	stmt, err := q.db.Prepare(ctx, q.db.Catalog(), sql, nil, prepare.Options{Verbatim: true})
	if err != nil {
		q.t.Fatalf("%s: %v", sql, err)
	}
	rows, err := stmt.Run(ctx, prepare.Run{View: snapshot}, q.clock())
	if err != nil {
		return []string{err.Error()}, 0
	}
	defer rows.Close()
	if a, ok := rows.(*exec.ArrayRows); ok && arrays {
		lines, err = arrayLines(a)
	} else {
		var ok bool
		for ok, err = rows.Next(); ok; ok, err = rows.Next() {
			lines = append(lines, q.line(rows))
		}
	}
	if err != nil {
		lines = append(lines, err.Error())
	}
	slices.Sort(lines)
	return lines, rows.Stats().Chunks
}

// line returns the text of the current row. It checks that all methods that read the row return the same values.
func (q *columnQueries) line(rows exec.Rows) string {
	q.t.Helper()
	var words []string
	before := rows.DataSize()
	for i, v := range rows.Values(nil) {
		t := rows.Columns()[i].Type
		word := v.AppendWireField(nil, valueTag, t)
		if got := rows.AppendColumn(nil, i); !bytes.Equal(got, word) || len(got) > rows.ColumnSize(i) {
			q.t.Fatalf("column %d is %q, of at most %d bytes, its value %q", i, got, rows.ColumnSize(i), word)
		}
		if got := int(rows.DataSize() - before); got != v.DataSize(t) {
			q.t.Fatalf("column %d: %d bytes of data, its value has %d", i, got, v.DataSize(t))
		}
		before = rows.DataSize()
		words = append(words, string(word))
	}
	if got := rows.AppendWire(nil); string(got) != strings.Join(words, "") {
		q.t.Fatalf("the row is %q, its columns are %q", got, words)
	}
	return strings.Join(words, "|")
}

// valueTag is the protobuf tag of PartialResultSet.values.
const valueTag = 2<<3 | 2

// arrayLines reads a result that consists of Arrow arrays, and returns the text of each row as a line.
func arrayLines(rows *exec.ArrayRows) (lines []string, err error) {
	for {
		n, list, err := rows.NextArrays()
		if n == 0 || err != nil {
			return lines, err
		}
		for i := range n {
			var words []string
			for c, a := range list {
				t := rows.Columns()[c].Type
				v, err := stored.StoredValueAt(a, i, t)
				if err != nil {
					return nil, err
				}
				words = append(words, string(v.AppendWireField(nil, valueTag, t)))
			}
			lines = append(lines, strings.Join(words, "|"))
		}
	}
}

// TestMergedColumns checks that a query that merges two ordered inputs returns the same from columnar copies as from
// rows.
func TestMergedColumns(t *testing.T) {
	c := newCopied(t, "CREATE TABLE T (K INT64, S STRING(MAX)) PRIMARY KEY (K), OPTIONS (columnar_policy = 'enabled')",
		"CREATE TABLE U (K INT64, S STRING(MAX)) PRIMARY KEY (K), OPTIONS (columnar_policy = 'enabled')")
	for _, name := range []string{"T", "U"} {
		c.fill(name, 2000, func(i int) []value.Value {
			return []value.Value{value.OfInt64(int64(i)), value.OfString(fmt.Sprint(name, i))}
		})
	}
	if err := c.upkeep(); err != nil {
		t.Fatal(err)
	}
	const sql = "SELECT K, S FROM T%[1]s UNION ALL SELECT K, S FROM U%[1]s ORDER BY K"
	want, err := c.query(fmt.Sprintf(sql, "@{SCAN_METHOD=ROW}"))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := c.query(fmt.Sprintf(sql, "@{SCAN_METHOD=COLUMNAR}")); err != nil || got != want {
		t.Errorf("%v, %d bytes, want %d", err, len(got), len(want))
	}
}
