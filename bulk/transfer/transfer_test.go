package transfer_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cloud.google.com/go/spanner"
	"github.com/apache/arrow-go/v18/arrow"
	"google.golang.org/grpc"

	"github.com/crowfoot-db/crowfoot/arrowtype"
	"github.com/crowfoot-db/crowfoot/bulk"
	"github.com/crowfoot-db/crowfoot/bulk/file"
	"github.com/crowfoot-db/crowfoot/bulk/transfer"
	"github.com/crowfoot-db/crowfoot/clienttest"
)

func write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// load describes an import of files into a table, for the tests.
type load struct {
	table      string
	mode       transfer.Mode
	rejects    int64
	state      string
	columns    []string
	parallel   int
	flightConn grpc.ClientConnInterface
}

func (l load) run(ctx context.Context, t *testing.T, client *spanner.Client, names ...string) (transfer.ImportResult, []bulk.BadRow, error) {
	t.Helper()
	table, err := bulk.Describe(ctx, client, l.table)
	if err != nil {
		t.Fatal(err)
	}
	rejectFile := filepath.Join(t.TempDir(), "rejects")
	rejects, err := transfer.OpenRejects(rejectFile, l.rejects)
	if err != nil {
		t.Fatal(err)
	}
	defer rejects.Close()
	schema, err := table.Schema(arrowtype.Text)
	if err != nil {
		t.Fatal(err)
	}
	reading := file.Options{Schema: schema, Columns: l.columns, Reject: rejects.Add}
	var state *transfer.ImportState
	var plan transfer.ImportPlan
	if l.state != "" {
		state = openState(t, l.state)
		defer state.Close()
		if plan, err = state.Begin(transfer.ImportWay{Definition: table.Definition(), Mode: l.mode}, names, reading); err != nil {
			t.Fatal(err)
		}
		reading.Done = plan.Done
	}
	source, err := file.Open(names, reading)
	if err != nil {
		t.Fatal(err)
	}
	result, err := transfer.Import(ctx, transfer.ImportOptions{Client: client, Table: table, Source: source, Mode: l.mode, Rejects: rejects, State: state, Flight: l.flightConn,
		Parallel: max(l.parallel, 2), Progress: &transfer.Progress{}})
	var bad []bulk.BadRow
	text, _ := os.ReadFile(rejectFile)
	for line := range strings.Lines(string(text)) {
		var b bulk.BadRow
		if err := json.Unmarshal([]byte(line), &b); err != nil {
			t.Fatal(err)
		}
		bad = append(bad, b)
	}
	slices.SortFunc(bad, func(a, b bulk.BadRow) int { return int(a.Line - b.Line) })
	return result, bad, err
}

func openState(t *testing.T, name string) *transfer.ImportState {
	t.Helper()
	state, err := transfer.OpenImportState(name, transfer.ImportTarget{Server: "server", Database: clienttest.Database, Table: "T"})
	if err != nil {
		t.Fatal(err)
	}
	return state
}

// count counts the rows of a table.
func count(t *testing.T, client *spanner.Client, table string) (n int64) {
	t.Helper()
	err := client.Single().Query(t.Context(), spanner.NewStatement("SELECT COUNT(*) FROM "+table)).Do(func(r *spanner.Row) error { return r.Column(0, &n) })
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func customers(t *testing.T, n int64) string {
	t.Helper()
	var rows []byte
	for i := range int(n) {
		rows = appendCustomer(rows, i+1)
	}
	return write(t, "customer.tbl", string(rows))
}

// sortedLines returns the lines of all files of an exported table, without headers and sorted.
func sortedLines(t *testing.T, dir, header string) (lines []string) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*-of-*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if line != header {
				lines = append(lines, line)
			}
		}
	}
	slices.Sort(lines)
	return lines
}

// TestCustomer checks that rows stay the same when a .tbl file is imported, the table is exported as TBL and as CSV,
// and the CSV files are imported into another table.
func TestCustomer(t *testing.T) {
	const rows = 20_000
	client := clienttest.Connect(t, customerDDL, strings.Replace(customerDDL, "TABLE customer", "TABLE again", 1))
	in := customers(t, rows)
	result, _, err := load{table: "CUSTOMER"}.run(t.Context(), t, client, in)
	if err != nil || result.Rows != rows || count(t, client, "customer") != rows {
		t.Fatalf("%+v, %v", result, err)
	}
	export := func(table string, format file.Format) (string, *transfer.Manifest) {
		dir := filepath.Join(t.TempDir(), table)
		out, err := transfer.Export(t.Context(), transfer.ExportOptions{Client: client, Database: clienttest.Database, Tables: []string{table}, Dir: dir, Format: format,
			Timestamps: arrowtype.Text, Bound: spanner.StrongRead(), Parallel: 2, Progress: &transfer.Progress{}})
		if err != nil || out.Manifest.Tables[0].Rows != rows {
			t.Fatalf("%+v, %v", out, err)
		}
		return dir, out.Manifest
	}
	dir, _ := export("customer", file.TBL)
	text, err := os.ReadFile(in)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for line := range strings.Lines(string(text)) {
		fields := strings.Split(line, "|")
		if strings.Contains(fields[5], ".") { // exported NUMERIC values have no zeros at their end
			fields[5] = strings.TrimSuffix(strings.TrimRight(fields[5], "0"), ".")
		}
		want = append(want, strings.Join(fields, "|"))
	}
	slices.Sort(want)
	if got := sortedLines(t, dir, ""); !slices.Equal(got, want) {
		t.Errorf("%d lines come out in place of %d: %q, %q", len(got), len(want), got[:2], want[:2])
	}
	dir, manifest := export("customer", file.CSV)
	var files []string
	for _, f := range manifest.Tables[0].Files {
		files = append(files, filepath.Join(dir, f.Name))
	}
	if result, _, err = (load{table: "again"}).run(t.Context(), t, client, files...); err != nil || result.Rows != rows {
		t.Fatalf("%+v, %v", result, err)
	}
	dir2, _ := export("again", file.CSV)
	if header := "c_custkey,c_name,c_address,c_nationkey,c_phone,c_acctbal,c_mktsegment,c_comment\n"; !slices.Equal(sortedLines(t, dir, header), sortedLines(t, dir2, header)) {
		t.Error("the rows differ after a round trip")
	}
}

// TestRejects checks that rows that are malformed, or that the table refuses, are reported with file, line and reason.
// All other rows must be imported.
func TestRejects(t *testing.T) {
	client := clienttest.Connect(t, "CREATE TABLE T (K INT64 NOT NULL, V STRING(3) NOT NULL, N INT64, CONSTRAINT Positive CHECK (N > 0)) PRIMARY KEY (K)")
	path := write(t, "t.csv", "K,V,N\n1,a,1\nx,b,1\n2,long,1\n3,,1\n4,c,-1\n5,d,\n9,e,1\n")
	if _, err := client.Apply(t.Context(), []*spanner.Mutation{spanner.Insert("T", []string{"K", "V"}, []any{9, "x"})}); err != nil {
		t.Fatal(err)
	}
	result, bad, err := load{table: "T", rejects: 10, mode: transfer.Insert}.run(t.Context(), t, client, path)
	if err != nil || result.Rows != 2 || count(t, client, "T") != 3 {
		t.Fatalf("%+v, %v, %v, %d rows", result, err, bad, count(t, client, "T"))
	}
	want := []string{"3: column K: \"x\" is not an INT64", "4: column V: the value has 4 characters", "5: column V is NOT NULL", "6: Check constraint", "8: Table T: Row {Int64(9)} already exists"}
	for i, b := range bad {
		if got := fmt.Sprintf("%d: %s", b.Line, b.Reason); i >= len(want) || !strings.HasPrefix(got, want[i]) {
			t.Errorf("%s, want %q", got, want)
		}
	}
	if len(bad) != len(want) {
		t.Errorf("%d bad rows: %v", len(bad), bad)
	}
	// With the limit 0, the first bad row ends the import.
	_, _, err = load{table: "T"}.run(t.Context(), t, client, path)
	if bad := (bulk.BadRow{}); !errors.As(err, &bad) || bad.Line == 0 {
		t.Errorf("error %v, want that of a row", err)
	}
}

// stopping is a source that calls stop after some batches, which interrupts the import.
type stopping struct {
	bulk.Source
	batches int
	stop    func()
}

func (s *stopping) Segments(ctx context.Context, n int) ([]bulk.Segment, error) {
	segments, err := s.Source.Segments(ctx, n)
	for i := range segments {
		segments[i] = stoppingSegment{segments[i], s}
	}
	return segments, err
}

type stoppingSegment struct {
	bulk.Segment
	of *stopping
}

func (s stoppingSegment) Open(ctx context.Context) (bulk.Reader, error) {
	r, err := s.Segment.Open(ctx)
	return stoppingReader{r, s.of}, err
}

type stoppingReader struct {
	bulk.Reader
	of *stopping
}

func (r stoppingReader) Next() (arrow.RecordBatch, error) {
	if r.of.batches--; r.of.batches < 0 {
		r.of.stop()
	}
	return r.Reader.Next()
}

// TestResume checks that an import that is interrupted repeatedly continues each time where it stopped. At the end,
// each row must be in the table once.
func TestResume(t *testing.T) {
	const rows = 30_000
	for n, mode := range []transfer.Mode{transfer.InsertOrUpdate, transfer.Insert, transfer.InsertOrUpdate, transfer.Insert} {
		client := clienttest.Connect(t, customerDDL)
		var flightConn grpc.ClientConnInterface
		if n >= 2 {
			flightConn = dialFlight(t, nil)
		}
		in := customers(t, rows)
		state := filepath.Join(t.TempDir(), "state")
		table, err := bulk.Describe(t.Context(), client, "customer")
		if err != nil {
			t.Fatal(err)
		}
		schema, err := table.Schema(arrowtype.Text)
		if err != nil {
			t.Fatal(err)
		}
		interrupted := 0
		open := func() (*transfer.ImportState, transfer.ImportPlan, bulk.Source) {
			opened := openState(t, state)
			reading := file.Options{Schema: schema}
			plan, err := opened.Begin(transfer.ImportWay{Definition: table.Definition(), Mode: mode}, []string{in}, reading)
			if err != nil {
				t.Fatal(err)
			}
			reading.Done = plan.Done
			source, err := file.Open([]string{in}, reading)
			if err != nil {
				t.Fatal(err)
			}
			return opened, plan, source
		}
		for round := 1; ; round++ {
			ctx, stop := context.WithCancel(t.Context())
			opened, _, source := open()
			_, err = transfer.Import(ctx, transfer.ImportOptions{Client: client, Table: table, Source: &stopping{source, 6 * round, stop}, State: opened,
				Mode: mode, Parallel: 1, Flight: flightConn})
			stop()
			if err := opened.Close(); err != nil {
				t.Fatal(err)
			}
			if err == nil {
				break
			}
			if !errors.Is(err, context.Canceled) && spanner.ErrCode(err).String() != "Canceled" {
				t.Fatal(err)
			}
			interrupted++
		}
		if n := count(t, client, "customer"); n != rows || interrupted == 0 {
			t.Errorf("%s: %d rows in place of %d after %d interruptions", mode, n, rows, interrupted)
		}
		// With the state of a complete import, the next import must write nothing.
		opened, plan, source := open()
		result, err := transfer.Import(t.Context(), transfer.ImportOptions{Client: client, Table: table, Source: source, State: opened, Mode: mode})
		if err := opened.Finish(); err != nil {
			t.Error(err)
		}
		if _, gone := os.Stat(state); err != nil || result.Rows != 0 || plan.Rows != rows || gone == nil {
			t.Errorf("%+v, %+v, %v; the state is removed: %v", result, plan, err, gone)
		}
	}
}

// TestRejectsAfterKill checks that Add removes the incomplete last line that a killed process has left in the reject
// file, before it writes the next line. A complete line of 2 MiB must stay as it is.
func TestRejectsAfterKill(t *testing.T) {
	long, err := json.Marshal(bulk.BadRow{Place: bulk.Place{File: "a.csv", Line: 1}, Reason: strings.Repeat("x", 2<<20)})
	if err != nil {
		t.Fatal(err)
	}
	name := write(t, "rejects", string(long)+"\n"+`{"file":"a.csv","li`)
	rejects, err := transfer.OpenRejects(name, 5)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(rejects.Add(bulk.BadRow{Place: bulk.Place{File: "a.csv", Line: 2}}), rejects.Close()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(name)
	if want := string(long) + "\n" + `{"file":"a.csv","line":2,"reason":""}` + "\n"; err != nil || string(text) != want {
		t.Errorf("%v, the file ends with %q", err, text[max(0, len(text)-100):])
	}
}

// TestGreatestFloat32 checks that an import accepts the shortest text of the greatest FLOAT32 and stores this FLOAT32.
// The text is a special case, because the FLOAT64 with the same text is greater than the greatest FLOAT32.
func TestGreatestFloat32(t *testing.T) {
	client := clienttest.Connect(t, "CREATE TABLE T (K INT64, F FLOAT32) PRIMARY KEY (K)")
	_, _, err := load{table: "T"}.run(t.Context(), t, client, write(t, "t.csv", "K,F\n1,3.4028235e+38\n2,-3.4028235e+38\n3,0.1\n"))
	if err != nil {
		t.Fatal(err)
	}
	var got []float32
	err = client.Single().Query(t.Context(), spanner.NewStatement("SELECT F FROM T ORDER BY K")).Do(func(r *spanner.Row) error {
		got = append(got, 0)
		return r.Column(0, &got[len(got)-1])
	})
	if want := []float32{math.MaxFloat32, -math.MaxFloat32, 0.1}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
}

// customerDDL creates TPC-H's table customer.
const customerDDL = `CREATE TABLE customer (
  c_custkey INT64 NOT NULL,
  c_name STRING(25) NOT NULL,
  c_address STRING(40) NOT NULL,
  c_nationkey INT64 NOT NULL,
  c_phone STRING(15) NOT NULL,
  c_acctbal NUMERIC NOT NULL,
  c_mktsegment STRING(10) NOT NULL,
  c_comment STRING(117) NOT NULL,
) PRIMARY KEY (c_custkey)`

// appendCustomer appends a row in the form of TPC-H's customer.tbl. (It is used instead of package bench/tpch, whose
// generator first needs some seconds and 300 MB.)
func appendCustomer(to []byte, key int) []byte {
	r := rand.New(rand.NewPCG(1, uint64(key)))
	nation := r.IntN(25)
	comment := strings.Repeat("carefully final deposits sleep about the furiously ironic theodolites ", 3)
	return fmt.Appendf(to, "%d|Customer#%09d|%s|%d|%d-%d-%d-%d|%.2f|%s|%s|\n", key, key, comment[key%50:key%50+10+r.IntN(31)], nation, nation+10, 100+r.IntN(900),
		100+r.IntN(900), 1000+r.IntN(9000), float64(r.IntN(1_099_998)-99_999)/100, []string{"AUTOMOBILE", "BUILDING", "FURNITURE"}[r.IntN(3)], comment[:29+r.IntN(88)])
}
