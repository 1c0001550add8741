package transfer_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cloud.google.com/go/spanner"

	"github.com/crowfoot-db/crowfoot/bulk"
	"github.com/crowfoot-db/crowfoot/bulk/file"
	"github.com/crowfoot-db/crowfoot/bulk/transfer"
	"github.com/crowfoot-db/crowfoot/clienttest"
)

// numbered returns the given number of CSV lines. 40,000 lines have several MB.
func numbered(rows int) (lines []string) {
	for i := range rows {
		lines = append(lines, fmt.Sprintf("%d,%s\n", i, strings.Repeat("x", 100)))
	}
	return lines
}

// TestCorrected checks that an import sends only rows that were not sent before or that have changed, after an earlier
// import has ended at a bad row and the file was corrected. The correction may move rows that follow the bad row, may
// change rows that were already sent, and may include other changes.
func TestCorrected(t *testing.T) {
	const rows = 40_000
	for name, correct := range map[string]func(lines []string) []string{
		"a longer line": func(lines []string) []string {
			lines[30_000] = "30000,a longer text than that which was wrong\n"
			return lines
		},
		"a line less": func(lines []string) []string { return slices.Delete(lines, 30_000, 30_001) },
		"many lines": func(lines []string) []string {
			lines[30_000], lines[10], lines[20_000] = "30000,\n", "10,\n", "20000,y\n"
			return lines
		},
		"other order":        func(lines []string) []string { return slices.Concat(lines[30_001:], lines[:30_000]) },
		"no line end at all": func(lines []string) []string { lines[30_000] = "30000,"; return lines[:30_001] },
	} {
		for _, mode := range []transfer.Mode{transfer.InsertOrUpdate, transfer.Insert} {
			for _, way := range []string{"mutations", "flight"} {
				t.Run(fmt.Sprint(name, "/", mode, "/", way), func(t *testing.T) {
					client := clienttest.Connect(t, "CREATE TABLE T (K INT64 NOT NULL, V STRING(MAX)) PRIMARY KEY (K)")
					l := load{table: "T", mode: mode, state: filepath.Join(t.TempDir(), "state"), parallel: 3}
					if way == "flight" {
						l.flightConn = dialFlight(t, nil)
					}
					lines := numbered(rows)
					lines[30_000] = "wrong,\n"
					in := write(t, "t.csv", "K,V\n"+strings.Join(lines, ""))
					first, _, err := l.run(t.Context(), t, client, in)
					if err == nil || first.Rows == 0 {
						t.Fatalf("%+v, %v", first, err)
					}
					lines = correct(lines)
					if err := os.WriteFile(in, []byte("K,V\n"+strings.Join(lines, "")), 0o600); err != nil {
						t.Fatal(err)
					}
					if mode == transfer.Insert && name == "many lines" { // rows whose key is in the table with other values are bad
						l.rejects = 2
					}
					second, bad, err := l.run(t.Context(), t, client, in)
					if err != nil {
						t.Fatal(err)
					}
					got := map[string]bool{}
					err = client.Single().Query(t.Context(), spanner.NewStatement("SELECT K, IFNULL(V, '') FROM T")).Do(func(r *spanner.Row) error {
						var k int64
						var v string
						err := r.Columns(&k, &v)
						got[fmt.Sprintf("%d,%s", k, v)] = true
						return err
					})
					missing := 0
					for _, line := range lines {
						if !got[strings.TrimSuffix(line, "\n")] {
							missing++
						}
					}
					if err != nil || missing != len(bad) || len(bad) > int(l.rejects) {
						t.Errorf("%v: %d lines are not in, %d of them are bad rows: %v", err, missing, len(bad), bad)
					}
					// The second import may send more rows than the first one has left: it sends a changed row again
					// together with the other rows of its commit, and it sends the rows of unfinished commits again.
					if most := int64(len(lines)) - first.Rows + 3*11_000; second.Rows > most {
						t.Errorf("%d rows were in, and %d of %d were sent again", first.Rows, second.Rows, len(lines))
					}
				})
			}
		}
	}
}

// TestStateOfOthers checks that the state of an import into another table, database or server is refused with an
// explanation. If the options for reading or writing change, all rows must be sent again.
func TestStateOfOthers(t *testing.T) {
	client := clienttest.Connect(t, "CREATE TABLE T (K INT64, V STRING(100)) PRIMARY KEY (K)")
	l := load{table: "T", mode: transfer.Replace, state: filepath.Join(t.TempDir(), "state")}
	in := write(t, "t.csv", "K,V\n"+strings.Join(numbered(40_000), "")+"wrong,\n")
	if _, _, err := l.run(t.Context(), t, client, in); err == nil {
		t.Fatal("a bad row is taken")
	}
	target := transfer.ImportTarget{Server: "server", Database: clienttest.Database, Table: "T"}
	for _, other := range []transfer.ImportTarget{{"other", clienttest.Database, "T"}, {"server", clienttest.Database + "2", "T"}, {"server", clienttest.Database, "U"}} {
		_, err := transfer.OpenImportState(l.state, other)
		if want := fmt.Sprintf("is the state of an import into %s, and this one is into %s: name another file", target, other); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	table, err := bulk.Describe(t.Context(), client, "T")
	if err != nil {
		t.Fatal(err)
	}
	way := transfer.ImportWay{Definition: table.Definition(), Mode: l.mode}
	begin := func(change func(w *transfer.ImportWay), names ...string) (*transfer.ImportState, transfer.ImportPlan) {
		t.Helper()
		s, changed := openState(t, l.state), way
		change(&changed)
		plan, err := s.Begin(changed, names, file.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return s, plan
	}
	same := func(*transfer.ImportWay) {}
	whole, err := os.ReadFile(l.state)
	if err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(w *transfer.ImportWay){
		"":                           same,
		"--mode was replace":         func(w *transfer.ImportWay) { w.Mode = transfer.Insert },
		"the database was made anew": func(w *transfer.ImportWay) { w.Created = w.Created.AddDate(1, 0, 0) },
		"table T was altered (it had V STRING(100), it has V STRING(200))": func(w *transfer.ImportWay) { w.Definition = []string{"K INT64", "V STRING(200)", "PRIMARY KEY (K)"} },
		"the flags that say how files are read have changed":               func(w *transfer.ImportWay) { w.Reading = []string{"tab"} },
	} {
		if err := os.WriteFile(l.state, whole, 0o600); err != nil {
			t.Fatal(err)
		}
		s, plan := begin(change, in)
		if plan.Again != want || (plan.Rows > 0) != (want == "") {
			t.Errorf("%+v, want %q", plan, want)
		}
		s.Close()
	}
	// A complete import of another file into the table does not change the state of the first file.
	if err := os.WriteFile(l.state, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	s, plan := begin(same, write(t, "other.csv", "K,V\n1,x\n"))
	if err := s.Finish(); err != nil || plan.Rows > 0 {
		t.Errorf("%v, %+v", err, plan)
	}
	s, plan = begin(same, in)
	if plan.Rows == 0 || plan.Again != "" {
		t.Errorf("%+v", plan)
	}
	if err := s.Forget(); err != nil {
		t.Error(err)
	}
	s.Close()
	s, plan = begin(same, in)
	if s.Close(); plan.Rows > 0 || plan.Again != "" {
		t.Errorf("behind Forget: %+v", plan)
	}
	for _, text := range []string{"no state\n", `{"version":1,"import":["other.csv"]}` + "\n"} {
		if _, err := transfer.OpenImportState(write(t, "other", text), target); err == nil || strings.Contains(err.Error(), "{") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestGeneratedKey checks that an import sends no row a second time if the database generates the table's key. Since
// such an import cannot find a row that it sent before by its key, it cannot replace a row that has changed. The error
// must name the generated column.
func TestGeneratedKey(t *testing.T) {
	client := clienttest.Connect(t, "CREATE TABLE T (Id STRING(36) DEFAULT (GENERATE_UUID()), K INT64, V STRING(100)) PRIMARY KEY (Id)")
	l := load{table: "T", state: filepath.Join(t.TempDir(), "state")}
	lines := numbered(30_000)
	lines[25_000] = "wrong,\n"
	in := write(t, "t.csv", "K,V\n"+strings.Join(lines, ""))
	first, _, err := l.run(t.Context(), t, client, in)
	if err == nil || first.Rows == 0 {
		t.Fatalf("%+v, %v", first, err)
	}
	lines[10] = "10,changed\n"
	if err := os.WriteFile(in, []byte("K,V\n"+strings.Join(lines, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	second, _, err := l.run(t.Context(), t, client, in)
	if err == nil || !strings.Contains(err.Error(), "Id of table T, which the database makes") || second.Rows > 0 {
		t.Errorf("%+v, %v", second, err)
	}
}
