package server

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// hiddenSchema is the schema of TestHiddenRows. The role reader may read the table P, and rows of T and W only through
// views. The test copies the rows of the current view to the table Seen.
var hiddenSchema = []string{
	"CREATE TABLE T (K INT64, Who STRING(MAX), B STRING(MAX), N INT64, SYNONYM (Tee)) PRIMARY KEY (K)",
	"CREATE TABLE W (K INT64, Who STRING(MAX), B STRING(MAX), N INT64) PRIMARY KEY (K)",
	"CREATE TABLE P (K INT64, S STRING(MAX)) PRIMARY KEY (K)",
	"CREATE TABLE Seen (Id STRING(36), K INT64, B STRING(MAX), N INT64) PRIMARY KEY (Id)",
	"CREATE INDEX TByWho ON T(Who)",
	"CREATE INDEX TByB ON T(B) STORING (N)",
	"CREATE UNIQUE INDEX WByN ON W(N)",
	"CREATE FUNCTION Number(x STRING) RETURNS INT64 SQL SECURITY INVOKER AS (CAST(x AS INT64))",
	"CREATE VIEW V SQL SECURITY DEFINER AS SELECT T.K, T.B, T.N FROM T",
	"CREATE VIEW O SQL SECURITY INVOKER AS SELECT V.K, V.B, V.N FROM V",
	"CREATE VIEW D SQL SECURITY DEFINER AS SELECT V.K, V.B, V.N FROM V",
	"CREATE ROLE reader",
	"GRANT SELECT ON VIEW V, O, D TO ROLE reader",
	"GRANT SELECT, UPDATE, INSERT, DELETE ON TABLE P TO ROLE reader",
}

// A hiddenWorld creates random views, and sends queries with a role that may read only these views. The values of the
// tables differ from all other values in the test, so they can be found in replies: see stored.
type hiddenWorld struct {
	*harness
	*rand.Rand
	owner, reader   hiddenAsker
	named           string   // the SQL of the views; plans may show the names and constants in it
	visible         []string // strings and numbers of the current view's rows, which the role may read
	queries, leaks  int
	failed, returns int // numbers of queries with an error, and of queries with rows
}

// stored matches a value of the tables, in column K, N, or B.
var stored = regexp.MustCompile(`\b50\d{4}\b|\b70\d{5}\b|s\d{4}x`)

const (
	hiddenSeeds   = 12
	hiddenQueries = 40
	shownLeaks    = 20
)

// TestHiddenRows creates random views with the rights of their definer. A role that may read none of their tables
// queries the views in every way, with conditions that fail for some rows and with hints. No value that the view does
// not return may appear in a row, a plan or an error. If a query's conditions fail for no row of the view, the query
// must not fail, and must return the same rows as the same query of a table that holds the view's rows.
// CROWFOOT_TEST_VIEW_SEEDS=FROM-TO runs other seeds.
func TestHiddenRows(t *testing.T) {
	from, to := uint64(0), uint64(hiddenSeeds)
	if text := os.Getenv("CROWFOOT_TEST_VIEW_SEEDS"); text != "" {
		first, last, _ := strings.Cut(text, "-")
		var err1, err2 error
		from, err1 = strconv.ParseUint(first, 10, 64)
		to, err2 = strconv.ParseUint(last, 10, 64)
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
	}
	w := &hiddenWorld{harness: newHarnessWith(t, Config{Clock: time.Now, Log: slog.New(slog.DiscardHandler)}, hiddenSchema)}
	reader, err := w.roleSession("reader")
	w.ok(err)
	w.owner, w.reader = hiddenAsker{w.session(true), w.newFlightClient()}, hiddenAsker{reader, w.newFlightClient("database-role", "reader")}
	w.fill()
	for seed := from; seed < to; seed++ {
		w.Rand = rand.New(rand.NewPCG(seed, 18))
		w.views(seed)
	}
	t.Logf("%d queries, of which %d show what they should not; %d fail, %d give rows", w.queries, w.leaks, w.failed, w.returns)
	if w.queries > 200 && (w.failed*10 < w.queries || w.returns*10 < w.queries) {
		t.Error("that is too few to tell")
	}
}

func (w *hiddenWorld) fill() {
	rows := func(table string, n, first int) string {
		var list []string
		for i := range n {
			who := []string{"me", "you", "them"}[i%3]
			list = append(list, fmt.Sprintf("(%d, '%s', 's%04dx', %d)", 500000+i, who, first+i, 7000000+first+i))
		}
		return "INSERT INTO " + table + " (K, Who, B, N) VALUES " + strings.Join(list, ", ")
	}
	w.dmlOnce(w.owner.session, rows("T", 24, 0))
	w.dmlOnce(w.owner.session, rows("W", 16, 100))
	w.dmlOnce(w.owner.session, "UPDATE W SET Who = IF(MOD(K, 2) = 0, 'me', 'you') WHERE TRUE")
	w.dmlOnce(w.owner.session, "INSERT INTO P (K, S) VALUES (500000, '500000'), (500003, 's0003x'), (500006, '500001'), (500007, '')")
}

func (w *hiddenWorld) one(list ...string) string { return list[w.IntN(len(list))] }

// views creates random views: V selects from the tables T and W, and O and D select from V. It sends queries of each
// view.
func (w *hiddenWorld) views(seed uint64) {
	text := w.view("T", "W")
	above := w.filterOf("V")
	w.named = text + above
	w.alter("CREATE OR REPLACE VIEW V SQL SECURITY DEFINER AS "+text, "CREATE OR REPLACE VIEW O SQL SECURITY INVOKER AS "+above, "CREATE OR REPLACE VIEW D SQL SECURITY DEFINER AS "+above)
	for _, of := range []string{"V", "O", "D"} {
		readable := of
		if of == "O" { // O has the rights of its invoker, so the role needs and has the right to read V
			readable = "V"
		}
		rs, err := w.sql(w.owner.session, nil, 0, "SELECT K, B, N FROM "+readable)
		w.ok(err)
		all := textOfRows(rs)
		rs, err = w.sql(w.owner.session, nil, 0, "SELECT K, S FROM P")
		w.ok(err)
		w.visible = stored.FindAllString(all+textOfRows(rs), -1)
		w.dmlOnce(w.owner.session, "DELETE FROM Seen WHERE TRUE")
		w.dmlOnce(w.owner.session, "INSERT INTO Seen (Id, K, B, N) SELECT GENERATE_UUID(), v.K, v.B, v.N FROM "+of+" AS v")
		for range hiddenQueries / 3 {
			if !w.ask(of) && w.leaks <= shownLeaks {
				w.Logf("seed %d: V is\n%s\nO and D are\n%s", seed, text, above)
			}
		}
	}
}

// ask sends a random query of the view named of, and reports whether the reply contains only values that the role may
// read.
func (w *hiddenWorld) ask(of string) bool {
	sql, strict, compare := w.query()
	way := w.IntN(hiddenWays)
	if strings.Contains(sql, "THEN RETURN") {
		way = w.IntN(byParameters + 1)
	}
	given, beside, err := w.run(way, w.reader, strings.ReplaceAll(sql, "$v", of))
	plain, _, plainErr := w.run(way, w.owner, strings.ReplaceAll(sql, "$v", "Seen"))
	w.queries++
	shown, what := given, ""
	if err != nil {
		w.failed++
		shown = err.Error()
		if c := status.Code(err); c != codes.OutOfRange && c != codes.InvalidArgument || strings.Contains(shown, "Syntax error") || strings.Contains(shown, "No matching signature") {
			w.Fatalf("%s, way %d: %v", sql, way, err)
		}
	} else if given != "" {
		w.returns++
	}
	for _, value := range stored.FindAllString(shown, -1) {
		// The reply may contain what the query itself contains.
		if !slices.Contains(w.visible, value) && !strings.Contains(sql, value) {
			what = "shows " + value
		}
	}
	for _, value := range stored.FindAllString(beside, -1) {
		if !slices.Contains(w.visible, value) && !strings.Contains(sql, value) && !strings.Contains(w.named, value) {
			what = "shows beside rows " + value
		}
	}
	switch {
	case what != "":
	// The view O selects from the view V. The role may read V too, so a query that reads O may compute ERROR for a row
	// of V that O does not return. Such a query may fail.
	case of == "O" && strings.Contains(sql, "ERROR('x')"):
	case strict && err != nil && plainErr == nil:
		what = "fails"
	case compare && err == nil && plainErr == nil && given != plain:
		what = "gives\n" + given + "and not\n" + plain
	}
	if what == "" {
		return true
	}
	if w.leaks++; w.leaks > shownLeaks {
		w.Fail()
		return false
	}
	w.Errorf("%s, way %d\n%s: %v", strings.ReplaceAll(sql, "$v", of), way, what, err)
	return false
}

// view returns the SQL of a random view with the columns K, B and N that does not return all rows of its tables.
func (w *hiddenWorld) view(t, u string) string {
	columns := w.one("t.K, t.B, t.N", "t.K, t.B, t.N", "t.K, SUBSTR(t.B, 1) AS B, t.N", "t.K, CASE WHEN t.N > 0 THEN t.B END AS B, t.N")
	join := w.one(" JOIN ", " JOIN ", " LEFT JOIN ", " JOIN@{JOIN_METHOD=HASH_JOIN} ", " JOIN@{JOIN_METHOD=APPLY_JOIN} ", " JOIN@{FORCE_JOIN_ORDER=TRUE} ")
	from := " FROM " + w.one(t, "Tee", t+"@{FORCE_INDEX=TByWho}", t+"@{FORCE_INDEX=TByB}", t+"@{SCAN_METHOD=COLUMNAR}") + " AS t"
	mine := w.one("t.Who = 'me'", "t.Who = 'me'", "t.Who LIKE 'm%'", "t.Who IN ('me', 'them')", "t.N < 7000006", "MOD(t.N, 5) = 1", "t.K > 500015 OR t.Who = 'me'")
	sub := w.one("", " AND u.Who = 'me'", " AND u.N > 7000104")
	switch w.IntN(14) {
	case 0:
		return "SELECT " + columns + from + " WHERE " + mine
	case 1:
		return "SELECT " + columns + from + join + u + " AS u ON u.K = t.K WHERE u.Who = 'me'"
	case 2:
		return "SELECT " + columns + from + " LEFT JOIN " + u + " AS u ON u.K = t.K" + sub + " WHERE u.K IS NULL"
	case 3:
		return "SELECT " + columns + " FROM " + u + " AS u " + w.one("RIGHT", "FULL") + " JOIN " + t + " AS t ON u.K = t.K" + sub + " WHERE u.K IS " + w.one("", "NOT ") + "NULL AND " + mine
	case 4:
		return "SELECT " + columns + from + " WHERE " + w.one("", "NOT ") + "EXISTS (SELECT 1 FROM " + u + " AS u WHERE u.K = t.K" + sub + ")"
	case 5:
		return "SELECT " + columns + from + " WHERE t.K " + w.one("", "NOT ") + "IN (SELECT u.K FROM " + u + " AS u WHERE TRUE" + sub + ")"
	case 6:
		return "SELECT t.K, t.B, t.N" + from + " WHERE " + mine + " " + w.one("UNION ALL", "UNION DISTINCT", "EXCEPT DISTINCT", "EXCEPT ALL", "INTERSECT DISTINCT", "INTERSECT ALL") +
			" SELECT t.K, t.B, t.N FROM " + t + " AS t JOIN " + u + " AS u ON u.K = t.K WHERE u.Who = 'me'"
	case 7:
		return "SELECT t.K, MAX(t.B) AS B, MIN(t.N) AS N" + from + join + u + " AS u ON u.K = t.K GROUP BY t.K HAVING " + w.one("MAX(u.Who) = 'me'", "MIN(u.N) > 7000105", "COUNT(u.K) = 0")
	case 8:
		return "SELECT MIN(t.K) AS K, t.B, MIN(t.N) AS N" + from + " WHERE " + mine + " GROUP BY t.B HAVING COUNT(*) = 1 AND MIN(t.K) < 500012"
	case 9:
		return "SELECT DISTINCT t.K, t.B, t.N" + from + join + u + " AS u ON u.Who = t.Who WHERE " + mine
	case 10:
		return "SELECT " + columns + from + w.one("", " WHERE "+mine) + " ORDER BY t.K " + w.one("LIMIT 3", "DESC LIMIT 5", "LIMIT 4 OFFSET 2")
	case 11:
		return "SELECT " + columns + from + " CROSS JOIN UNNEST(['me', 'us', NULL]) AS x WHERE x = t.Who"
	case 12:
		return "WITH a AS (SELECT u.K FROM " + u + " AS u WHERE u.Who = 'me') SELECT " + columns + from + " WHERE t.K IN (SELECT a.K FROM a)" + w.one("", " AND (SELECT COUNT(*) FROM a) > 2")
	}
	return "SELECT " + columns + from + " WHERE (SELECT MAX(u.Who) FROM " + u + " AS u WHERE u.K = t.K" + sub + ") = 'me'"
}

// filterOf returns the SQL of a random view that selects from the view v.
func (w *hiddenWorld) filterOf(v string) string {
	switch w.IntN(5) {
	case 0:
		return "SELECT v.K, v.B, v.N FROM " + v + " AS v"
	case 1:
		return "SELECT v.K, v.B, v.N FROM " + v + " AS v JOIN P AS p ON p.K = v.K"
	case 2:
		return "SELECT v.K, MAX(v.B) AS B, MAX(v.N) AS N FROM " + v + " AS v GROUP BY v.K"
	case 3:
		return "SELECT v.K, v.B, v.N FROM " + v + " AS v WHERE EXISTS (SELECT 1 FROM " + v + " AS x WHERE x.N < v.N)"
	}
	return "SELECT v.K, v.B, v.N FROM " + v + " AS v WHERE v.N > 7000004"
}

// fails returns a condition on v that raises an error for some rows. If strict is set, the condition raises no error
// for a row that the role may read.
func (w *hiddenWorld) fails(strict bool) string {
	hidden := strconv.Itoa(7000000 + w.IntN(24))
	e := w.one("CAST(v.B AS INT64) > 0", "ERROR(v.B) IS NULL", "ERROR(CONCAT('x', CAST(v.N AS STRING))) IS NULL", "PARSE_DATE('%F', v.B) IS NULL", "Number(v.B) = 0",
		"CASE v.N WHEN 1 THEN TRUE ELSE CAST(v.B AS BOOL) END", "100 / (v.N - "+hidden+") > 0", "v.N * 9223372036854775807 > 0", "MOD(v.N, v.K - v.K) = 0", "[v.B][OFFSET(v.N)] = ''",
		"PARSE_JSON(v.B) IS NULL", "REGEXP_CONTAINS('x', CONCAT('(', v.B))", "DATE_ADD(DATE '9999-12-31', INTERVAL v.N DAY) IS NULL", "v.B LIKE CONCAT(v.B, '\\\\')",
		"(SELECT CAST(v.B AS INT64)) > 0", "EXISTS (SELECT 1 FROM UNNEST([v.B]) AS x WHERE CAST(x AS INT64) > 0)", "v.N IN (SELECT CAST(x AS INT64) FROM UNNEST([v.B, v.B]) AS x)",
		"TIMESTAMP(v.B) IS NULL", "COALESCE(NULL, CAST(v.B AS FLOAT64) > 1)", "v.K = CAST(v.B AS INT64)", "CAST(v.B AS INT64) IN (500001, 500002)", "IFNULL(Number(v.B), 1) = 1",
		"WITH(x AS CAST(v.B AS INT64), x + x > 0)", "STRUCT(v.K, v.N) = (CAST(v.B AS INT64), 1)", "v.B < ERROR(v.B)", "REPEAT(v.B, -v.N) = ''", "LAX_BOOL(PARSE_JSON(v.B))",
		"(SELECT p.K FROM P AS p WHERE p.K < v.K) = 1", "ARRAY_LENGTH(GENERATE_ARRAY(1, v.N, 0)) > 0", "SAFE_CAST(v.B AS INT64) IS NULL AND CAST(v.B AS INT64) > 0",
		"v.B != '' OR CAST(v.N AS STRING) = '' OR CAST(v.B AS INT64) > 0", "NOT (v.K = 1 OR ERROR(v.B))")
	if !strict {
		return e
	}
	values := "NULL"
	for _, s := range w.visible {
		if s[0] == 's' {
			values += ", '" + s + "'"
		}
	}
	return "IF(v.B IS NULL OR v.B IN (" + values + "), " + w.one("v.N > 7000003", "TRUE", "v.B > 's0004'") + ", " + e + ")"
}

// safe returns a condition on v that never raises an error.
func (w *hiddenWorld) safe() string {
	return w.one("TRUE", "v.B > 's0002'", fmt.Sprintf("v.K = %d", 500000+w.IntN(24)), "v.K IN (500001, 500003, 500004)", "v.N BETWEEN 7000002 AND 7000010", "v.B IS NOT NULL", "STARTS_WITH(v.B, 's00')",
		"v.K > 500010 OR v.N < 7000002", "v.K >= 500005", "v.N != 7000006", "v.B LIKE 's00%'")
}

// query returns a random query in which $v stands for the name of a view. strict says that the query must not fail,
// because its conditions fail for no row of the view. compare says that the query returns the same rows with every
// plan.
func (w *hiddenWorld) query() (sql string, strict, compare bool) {
	hints := w.one("", "", "", "@{JOIN_METHOD=HASH_JOIN}", "@{JOIN_METHOD=APPLY_JOIN}", "@{FORCE_JOIN_ORDER=TRUE}", "@{SCAN_METHOD=BATCH}", "@{SCAN_METHOD=COLUMNAR}", "@{FORCE_INDEX=_BASE_TABLE}",
		"@{HASH_JOIN_BUILD_SIDE=BUILD_LEFT, JOIN_METHOD=HASH_JOIN}")
	join := w.one(" JOIN ", " JOIN ", " LEFT JOIN ", " JOIN@{JOIN_METHOD=HASH_JOIN} ", " JOIN@{JOIN_METHOD=APPLY_JOIN} ", " JOIN@{FORCE_JOIN_ORDER=TRUE} ")
	strict = w.IntN(2) == 0
	e, s := w.fails(strict), w.safe()
	both := w.one(s+" AND "+e, e+" AND "+s, e)
	switch w.IntN(26) {
	case 0, 1, 2, 3, 4:
		return hints + "SELECT v.K, v.B, v.N FROM $v AS v WHERE " + both, strict, true
	case 5:
		return hints + "SELECT v.K FROM $v AS v WHERE " + s + " AND ERROR('x') IS NULL", true, true
	case 6:
		return hints + "SELECT " + e + ", v.K FROM $v AS v WHERE " + s, strict, true
	case 7:
		return hints + "SELECT v.B, p.S FROM $v AS v" + join + "P AS p ON p.K = v.K WHERE " + both, strict, true
	case 8:
		return hints + "SELECT v.B, p.S FROM P AS p" + join + "$v AS v ON v.K = p.K AND " + both, strict, true
	case 9:
		return hints + "SELECT v.B, p.S FROM P AS p" + join + "$v AS v ON v.K = " + w.one("CAST(p.S AS INT64)", "DIV(p.K, 1)", "SAFE_CAST(p.S AS INT64)") + " WHERE " + s, false, true
	case 10:
		return hints + "SELECT p.K FROM P AS p WHERE " + w.one("", "NOT ") + "EXISTS (SELECT 1 FROM $v AS v WHERE v.K = p.K AND " + both + ")", strict, true
	case 11:
		return hints + "SELECT p.K FROM P AS p WHERE p.K " + w.one("", "NOT ") + "IN (SELECT v.K FROM $v AS v WHERE " + both + ")", strict, true
	case 12:
		return hints + "SELECT p.K, (SELECT MAX(v.B) FROM $v AS v WHERE v.K = p.K AND " + both + ") FROM P AS p", strict, true
	case 13:
		return hints + "SELECT MAX(v.B), COUNTIF(" + e + ") FROM $v AS v WHERE " + s, strict, true
	case 14:
		return hints + "SELECT " + e + ", COUNT(*) FROM $v AS v WHERE " + s + " GROUP BY 1", strict, true
	case 15:
		return hints + "SELECT v.B, COUNT(*) FROM $v AS v GROUP BY v.B, v.N, v.K HAVING " + both, strict, true
	case 16:
		return hints + "SELECT v.K, v.B FROM $v AS v WHERE " + s + " ORDER BY " + e + ", v.K, v.N LIMIT " + w.one("1", "3", "1000"), strict, false
	case 17:
		return hints + "SELECT v.K, x FROM $v AS v CROSS JOIN UNNEST([v.B, v.B]) AS x WHERE " + s + " AND CAST(x AS BOOL)", false, true
	case 18:
		return hints + "SELECT DISTINCT v.B FROM $v AS v WHERE " + both, strict, true
	case 19:
		return hints + "SELECT v.K FROM $v AS v WHERE " + both + " " + w.one("UNION ALL", "EXCEPT DISTINCT", "INTERSECT DISTINCT") + " SELECT v.K FROM $v AS v WHERE " + w.safe(), strict, true
	case 20:
		return hints + "WITH c AS (SELECT * FROM $v) SELECT v.K, v.B FROM c AS v WHERE " + both + w.one("", " AND (SELECT COUNT(*) FROM c) > 0"), strict, true
	case 21:
		return hints + "SELECT v.K, x.B FROM $v AS v" + join + "$v AS x ON x.K = v.K WHERE " + both, strict, true
	case 22:
		return "FROM $v AS v |> WHERE " + s + " |> WHERE " + e + " |> SELECT v.K, v.B", strict, true
	case 23:
		return hints + "SELECT v.B FROM (SELECT v.K, v.B, v.N, " + e + " AS e FROM $v AS v) AS v WHERE e AND " + s, strict, true
	case 24:
		return "UPDATE P SET S = (SELECT MAX(v.B) FROM $v AS v WHERE v.K = P.K AND " + both + ") WHERE TRUE THEN RETURN K, S", strict, true
	}
	return w.one("UPDATE P SET S = 'x' WHERE EXISTS (SELECT 1 FROM $v AS v WHERE v.K = P.K AND "+both+") THEN RETURN K, S",
		"DELETE FROM P WHERE EXISTS (SELECT 1 FROM $v AS v WHERE v.K = P.K AND "+both+") THEN RETURN K",
		"INSERT INTO P (K, S) SELECT v.N, MAX(v.B) FROM $v AS v WHERE "+both+" GROUP BY v.N THEN RETURN K, S"), strict, true
}
