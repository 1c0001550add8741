package bench_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/crowfoot-db/crowfoot"
	"github.com/crowfoot-db/crowfoot/bench"
	"github.com/crowfoot-db/crowfoot/bench/harness"
	"github.com/crowfoot-db/crowfoot/bench/own"
	"github.com/crowfoot-db/crowfoot/bench/report"
	"github.com/crowfoot-db/crowfoot/bench/retrieval"
	"github.com/crowfoot-db/crowfoot/bench/studies"
)

// TestMain lets the test binary act as the programs that a benchmark starts: the server, the ceiling (a server that
// answers with canned bytes), Python and Java.
func TestMain(m *testing.M) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	switch {
	case len(os.Args) > 1 && os.Args[1] == "start":
		if err := runServer(ctx, os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case len(os.Args) > 2 && os.Args[1] == "bench" && os.Args[2] == "ceiling":
		flags := flag.NewFlagSet("ceiling", flag.ExitOnError)
		frames := flags.String("frames", "", "")
		batches := flags.String("batches", "", "")
		flags.Parse(os.Args[3:])
		if err := retrieval.Ceiling(ctx, *frames, *batches); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case len(os.Args) == 3 && os.Args[1] == "-c":
		reader("pyarrow 1.2\tduckdb 3\tadbc")
	case slices.Contains(os.Args, "-cp"):
		reader("SPL esproc-1\tflight-sql-jdbc-driver 18.3\tgoogle-cloud-spanner-jdbc")
	default:
		os.Exit(m.Run())
	}
}

// retrievedRows is the number of rows in the table of TestRetrieval.
const retrievedRows = 2003

// reader acts as a Python or Java program that reads tables. It first reports the given libraries as those that it has
// found. It answers a request for duckdb_aggregate with an error, and every other request with retrievedRows as the
// number of rows that it has read.
func reader(libraries string) {
	answers := os.NewFile(3, "answers")
	fmt.Fprintln(answers, "ready\t"+libraries)
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		fmt.Print("a progress bar") // the run must not take standard output for an answer
		if strings.HasPrefix(in.Text(), "duckdb_aggregate") {
			fmt.Fprintln(answers, "error\tout of memory")
			continue
		}
		fmt.Fprintf(answers, "rows\t%d\n", retrievedRows)
	}
}

func runServer(ctx context.Context, args []string) error {
	var o crowfoot.Options
	var name string
	flags := flag.NewFlagSet("start", flag.ExitOnError)
	flags.StringVar(&o.Data, "data", "", "")
	flags.StringVar(&o.GRPC, "grpc", "", "")
	flags.StringVar(&o.HTTP, "http", "", "")
	flags.StringVar(&name, "database", "", "")
	statistics := flags.Bool("statistics", true, "")
	flags.String("log-level", "", "")
	flags.Parse(args)
	o.Databases, o.NoStatistics = []string{name}, !*statistics
	s, err := crowfoot.Start(ctx, o)
	if err != nil {
		return err
	}
	fmt.Printf("crowfoot: ready grpc=%s http=%s\n", s.GRPC, s.HTTP)
	<-ctx.Done()
	return s.Close()
}

const databaseName = "projects/p/instances/i/databases/d"

// small returns the settings of a very short run against a server in this process, and the buffer that gets the run's
// output.
func small(t *testing.T) (bench.Settings, *bytes.Buffer) {
	t.Helper()
	server := crowfoot.ForTest(t, databaseName)
	out := new(bytes.Buffer)
	s := bench.Defaults()
	s.Rows, s.Each, s.Rounds, s.StatisticsWait, s.Out, s.Progress = 300, 240*time.Millisecond, 2, 0, out, io.Discard
	s.Address, s.Database = server.GRPC, databaseName
	dir := t.TempDir()
	s.Report, s.JSON = filepath.Join(dir, "report.html"), filepath.Join(dir, "report.json")
	return s, out
}

func TestStudies(t *testing.T) {
	s, out := small(t)
	s.PID = os.Getpid() // so that the report has a server CPU time; here it includes the client's CPU time
	r, err := harness.Run(t.Context(), s, studies.Access(), studies.Writes())
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if got, want := len(r.Measures), 5*2+6+9+4; got != want {
		t.Errorf("%d measures, want %d", got, want)
	}
	for _, m := range r.Measures {
		if m.Operations == 0 || m.Latency.P50 == 0 || m.Latency.P99 < m.Latency.P50 || m.CPU == nil || m.Corrected == nil {
			t.Errorf("measure is not filled in: %+v", *m)
		}
	}
	if got, want := len(r.Pairs), 5+5+8+2; got != want {
		t.Errorf("%d pairs, want %d", got, want)
	}
	for _, p := range r.Pairs {
		if l, r := r.Measures[p.Left], r.Measures[p.Right]; l.Experiment != r.Experiment || l == r || p.Latency == nil || p.CPU == nil {
			t.Errorf("pair %s/%s with %s/%s, ratios %v %v", l.Experiment, l.Path, r.Experiment, r.Path, p.Latency, p.CPU)
		}
	}
	if got, want := len(r.Figures), 5+6+2; got != want {
		t.Errorf("%d published figures and targets, want %d", got, want)
	}
	for _, f := range r.Figures {
		if f.Ours == nil {
			t.Errorf("nothing of ours beside %q", f.Name)
		}
	}
	if len(r.Statistics) == 0 {
		t.Error("no statistics queries")
	}
	checkText(t, out.String(), "On Cloud Spanner SQL took 1.04 to 2.76 times", "On Cloud Spanner DML took 3.32 to 10.87 times", "SQL / READ CPU, one key", "9.88", "in the noise", s.Report)
	checkPage(t, s.Report, "On Cloud Spanner SQL took 1.04 to 2.76 times", "Side by side", "Published figures", "1.532 ms", "batch DML, last_statements", "READ_STATS_TOP_MINUTE", "TXN_STATS_TOP_MINUTE", "DML, THEN RETURN", "10 scattered keys over 4 splits", "published 2.76", "<svg", "prefers-color-scheme", "QUERY_STATS_TOP_MINUTE",
		"lower is better", "11 September 2024", "@media print", `data-name="p50 L/R"`, "Turn by turn: one key", "<details><summary>")
	checkJSON(t, s.JSON, "")
}

// checkText checks that the text of a result contains all the wanted parts, that it fits a terminal of 40 lines of 100
// columns, and that it has no escape sequences.
func checkText(t *testing.T, text string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(text, want) {
			t.Errorf("the text has no %q:\n%s", want, text)
		}
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) > 40 {
		t.Errorf("the result has %d lines:\n%s", len(lines), text)
	}
	for _, l := range lines {
		if n := len([]rune(l)); n > 100 {
			t.Errorf("a line has %d columns: %s", n, l)
		}
	}
	if strings.Contains(text, "\x1b") {
		t.Error("the text has escapes of a terminal")
	}
}

// TestRetrieval checks that every way of reading a table returns as many rows as the table has, even if the number of
// readers does not divide the number of rows. The report must name the libraries and databases that the run lacks.
func TestRetrieval(t *testing.T) {
	for table, tools := range map[string]retrieval.Settings{"customer": {Columnar: true, Python: os.Args[0], Java: os.Args[0], Jars: "some.jar"}, "orders": {}} {
		s := bench.Defaults()
		out := new(bytes.Buffer)
		s.Rows, s.Each, s.Rounds, s.StatisticsWait, s.Out, s.Progress, s.Report = retrievedRows, 20*time.Millisecond, 1, 0, out, io.Discard, filepath.Join(t.TempDir(), "page.html")
		tools.Table, tools.Readers = table, []int{1, 3}
		b, err := retrieval.New(tools)
		if err != nil {
			t.Fatal(err)
		}
		r, err := harness.Run(t.Context(), s, b)
		if err != nil {
			t.Fatalf("%s: %v\n%s", table, err, out)
		}
		want, missing := 12+2*8+4, []string{"pyarrow, DuckDB, ADBC; --python PATH brings it", "SPL, JDBC drivers; --jars CLASSPATH brings it"}
		if tools.Python != "" {
			want, missing = want+3+2*3+1+5+4, []string{"columnar copy of customer", "adbc; pip install it", "google-cloud-spanner-jdbc; --jars brings it"}
		}
		if got := len(r.Measures); got != want {
			t.Errorf("%s: %d measures, want %d", table, got, want)
		}
		for _, m := range r.Measures {
			if m.Path == "inside DuckDB, Parquet" { // the reader answers with an error here, but the run must go on
				if m.Operations != 0 || !strings.Contains(m.Failed, "out of memory") || !strings.Contains(out.String(), "failed: ") {
					t.Errorf("a peer that fails: %+v\n%s", *m, out)
				}
				continue
			}
			if m.Operations == 0 || m.Rows != m.Operations*int64(s.Rows) {
				t.Errorf("%s, %s, %s: %d rows in %d operations", table, m.Experiment, m.Path, m.Rows, m.Operations)
			}
		}
		checkText(t, out.String(), "Flight SQL, one stream / text, one thread")
		checkPage(t, s.Report, append(missing, "Rows per second", "canned frames, hand-written decoder", "Flight SQL", "text (TBL)", "text file, SPL", "bytes as text", "PostgreSQL; --postgres DSN brings it")...)
	}
	if _, err := retrieval.New(retrieval.Settings{Table: "lineitem"}); err == nil {
		t.Error("a table that the study does not have is taken")
	}
}

// outside matches parts of a page that make a browser fetch or run something that is not in the page.
var outside = regexp.MustCompile(`(?i)https?:|\bsrc\s*=|\bhref\s*=|@import|url\(|<script|<link|<iframe|<object|<embed`)

func checkPage(t *testing.T, name string, wants ...string) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if found := outside.FindAllString(string(text), -1); found != nil {
		t.Errorf("the page refers to the outside: %q", found)
	}
	for _, want := range wants {
		if !bytes.Contains(text, []byte(want)) {
			t.Errorf("the page has no %q", want)
		}
	}
}

func checkJSON(t *testing.T, name, partial string) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var r report.Report
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(r.Partial, partial) || (r.Partial == "") != (partial == "") {
		t.Errorf("JSON says partial %q, want %q", r.Partial, partial)
	}
}

// TestPoints checks that the points benchmark measures all its paths and reports its figures. The server and the
// ceiling (a server that answers with canned bytes) run in processes of their own, as they do when a user starts the
// benchmark.
func TestPoints(t *testing.T) {
	s := bench.Defaults()
	out := new(bytes.Buffer)
	s.Rows, s.Each, s.Rounds, s.Clients, s.StatisticsWait, s.Out, s.Progress, s.Report = 300, 300*time.Millisecond, 1, []int{1, 2}, 0, out, io.Discard, filepath.Join(t.TempDir(), "page.html")
	r, err := harness.Run(t.Context(), s, studies.Points())
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if got, want := len(r.Measures), 2*6+3; got != want {
		t.Errorf("%d measures, want %d", got, want)
	}
	if got, want := len(r.Figures), 2*4+2; got != want {
		t.Errorf("%d figures, want %d", got, want)
	}
	checkText(t, out.String(), "statistics on / off, READ CPU, 2 clients", "commit of one row - fsync", "noticed  ")
	checkPage(t, s.Report, "rows/s", "resident after load", "start after kill -9", "fsync", "READ, ceiling", "READ, no statistics", "statistics on / off, READ CPU")
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func ownFiles(t *testing.T) own.Files {
	return own.Files{
		DDL:  write(t, "schema.sql", "CREATE TABLE Users (Id INT64 NOT NULL, Name STRING(40), Born DATE) PRIMARY KEY (Id);\nCREATE INDEX UsersByName ON Users (Name);\n"),
		Load: write(t, "load.write", "@id INT64 sequence 1\n@born DATE 1970-01-01..2000-12-31\ninsert_or_update Users Id = @id, Name = 'a, b', Born = @born\n"),
		Paths: []own.File{
			{Kind: own.ReadFile, Name: write(t, "ten.read", "# ten users\n@ids ARRAY<INT64> 10 of 1..300\n@a INT64 1..200\n@b INT64 @a + 9\ntable Users\ncolumns Id, Name\nkeys @ids\nkey 7\nrange @a to @b\n")},
			{Kind: own.SQLFile, Name: write(t, "ten.sql", "-- @ids ARRAY<INT64> 10 of 1..300\n-- ten users\nSELECT Id, Name\nFROM Users\nWHERE Id IN UNNEST(@ids)")},
			{Kind: own.SQLFile, Name: write(t, "two.sql", "-- @id INT64 1..300\nSELECT 1;\nSELECT Name FROM Users WHERE Id = @id;\n")},
			{Kind: own.ReadFile, Name: write(t, "index.read", "table Users\nindex UsersByName\ncolumns Name, Id\nall\nlimit 3\n")},
			{Kind: own.WriteFile, Name: write(t, "new.write", "@id INT64 1000..1000000000\n@name STRING user-%d 1..9\nrepeat 2\nat_least_once\ninsert_or_update Users Id = @id, Name = @name, Born = null\ndelete Users key 12\n")},
			{Kind: own.SQLFile, Name: write(t, "change.sql", "-- @id INT64 1..300\n-- repeat 2\n-- last_statement\nUPDATE Users SET Name = 'x' WHERE Id = @id THEN RETURN Id;\nUPDATE Users SET Name = 'y' WHERE Id = @id;")},
			{Kind: own.SQLFile, Name: write(t, "batch.sql", "-- @id INT64 1..300\n-- batch\n-- repeat 3\nUPDATE Users SET Name = 'x' WHERE Id = @id")},
		},
	}
}

func TestOwn(t *testing.T) {
	s, out := small(t)
	workload, err := own.New(ownFiles(t))
	if err != nil {
		t.Fatal(err)
	}
	s.Rate, s.Clients = 200, []int{2}
	r, err := harness.Run(t.Context(), s, workload)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if len(r.Measures) != 7 || len(r.Pairs) != 6 {
		t.Errorf("%d measures and %d pairs, want 7 and 6", len(r.Measures), len(r.Pairs))
	}
	for _, m := range r.Measures {
		if m.Operations == 0 || m.Corrected != nil || m.CPUSource == "process" {
			t.Errorf("%s: %d operations, corrected %v, CPU of %q", m.Path, m.Operations, m.Corrected, m.CPUSource)
		}
	}
	checkPage(t, s.Report, "ten.read", "n/a", "open loop")
}

// TestFailure checks that a run that fails in the middle still reports the measurements made before, and marks them as
// partial. The run fails because a query divides by zero.
func TestFailure(t *testing.T) {
	s, out := small(t)
	s.Count = 200 // operations of each path; the sixtieth of bad.sql fails
	workload, err := own.New(own.Files{Paths: []own.File{
		{Kind: own.SQLFile, Name: write(t, "good.sql", "SELECT 1")},
		{Kind: own.SQLFile, Name: write(t, "bad.sql", "-- @n INT64 sequence 1\nSELECT DIV(1, 60 - @n)")},
	}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := harness.Run(t.Context(), s, workload)
	if !errors.Is(err, harness.ErrPartial) || !strings.Contains(err.Error(), "bad.sql") || !strings.Contains(err.Error(), "division by zero") {
		t.Errorf("got %v\n%s", err, out)
	}
	if r == nil || r.Partial == "" || !strings.Contains(out.String(), "PARTIAL RESULTS") {
		t.Errorf("the results are not marked as partial:\n%s", out)
	}
	checkPage(t, s.Report, "Partial results")
	checkJSON(t, s.JSON, "division by zero")
}

func TestInterrupt(t *testing.T) {
	s, out := small(t)
	s.Rounds, s.Count = 10, 10_000
	workload, err := own.New(own.Files{Paths: []own.File{{Kind: own.SQLFile, Name: write(t, "one.sql", "SELECT 1")}}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s.Progress = &watched{io.Discard, "round 1 of 10", cancel}
	r, err := harness.Run(ctx, s, workload)
	if !errors.Is(err, harness.ErrPartial) || !strings.Contains(err.Error(), "interrupted") {
		t.Fatalf("got %v\n%s", err, out)
	}
	if len(r.Measures) != 1 || r.Measures[0].Operations == 0 {
		t.Errorf("what was measured is lost:\n%s", out)
	}
	checkJSON(t, s.JSON, "interrupted")
}

// watched is a writer that calls a function when the bytes to write contain a given text.
type watched struct {
	io.Writer
	text string
	call func()
}

func (w *watched) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(w.text)) {
		w.call()
	}
	return w.Writer.Write(p)
}

func TestBadSettings(t *testing.T) {
	for want, change := range map[string]func(*bench.Settings){
		"--rows":                func(s *bench.Settings) { s.Rows = 0 },
		"--seconds":             func(s *bench.Settings) { s.Each = 0 },
		"--rounds":              func(s *bench.Settings) { s.Rounds = -1 },
		"--clients needs":       func(s *bench.Settings) { s.Clients = nil },
		"--clients must":        func(s *bench.Settings) { s.Clients = []int{0} },
		"--rate":                func(s *bench.Settings) { s.Rate = -1 },
		"--rtt":                 func(s *bench.Settings) { s.RTT = time.Hour },
		"--keys":                func(s *bench.Settings) { s.Keys = 0 },
		"--splits":              func(s *bench.Settings) { s.Splits = 1 << 30 },
		"--keys times --splits": func(s *bench.Settings) { s.Rows = 20 },
		"--pid":                 func(s *bench.Settings) { s.PID = -1 },
		"--batch":               func(s *bench.Settings) { s.Batches = []int{1, 0} },
		"--count must":          func(s *bench.Settings) { s.Count = 3 },
		"--count is":            func(s *bench.Settings) { s.Count, s.Rate = 1000, 5 },
		"--control":             func(s *bench.Settings) { s.Control, s.Database = "old", databaseName },
		"--study has":           func(s *bench.Settings) { s.Study, s.Rate = true, 5 },
		"--interval":            func(s *bench.Settings) { s.Study, s.Interval = true, "hour" },
		"--endpoint needs":      func(s *bench.Settings) { s.Address = "127.0.0.1:1" },
		"--database must":       func(s *bench.Settings) { s.Database = "d" },
		"no such file":          func(s *bench.Settings) { s.Report = filepath.Join(t.TempDir(), "missing", "r.html") },
		"no server answers":     func(s *bench.Settings) { s.Address, s.Database = "127.0.0.1:1", databaseName },
	} {
		s := bench.Defaults()
		s.Out = io.Discard
		change(&s)
		if _, err := harness.Run(t.Context(), s, studies.Access(), studies.Writes()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestMissingDatabase(t *testing.T) {
	s, _ := small(t)
	s.Database += "x"
	if _, err := harness.Run(t.Context(), s, studies.Access()); err == nil || !strings.Contains(err.Error(), "there is no database "+s.Database) {
		t.Errorf("got %v", err)
	}
	s.Database, s.PID = databaseName, 1<<22-1
	if _, err := harness.Run(t.Context(), s, studies.Access()); err == nil || !strings.Contains(err.Error(), "--pid") {
		t.Errorf("got %v", err)
	}
}

func TestBadFiles(t *testing.T) {
	for _, c := range []struct {
		kind       own.Kind
		text, want string
	}{
		{own.SQLFile, "", "nothing to do"},
		{own.SQLFile, "-- @a INT64 x\nSELECT @a", "f:1: parameter @a"},
		{own.SQLFile, "-- batch\nSELECT 1", "batch is for DML"},
		{own.SQLFile, "-- repeat 0\nSELECT 1", "repeat"},
		{own.SQLFile, ";", "no statement"},
		{own.ReadFile, "table T", "a read needs"},
		{own.ReadFile, "fetch T", "f:1: unknown word"},
		{own.ReadFile, "table T\ncolumns A\nkey @a", "f:3: parameter @a is not declared"},
		{own.ReadFile, "table T\ncolumns A\nkeys 1", "array parameter"},
		{own.ReadFile, "table T\ncolumns A\nrange 1", "first to last"},
		{own.ReadFile, "table T\ncolumns A\nall\nlimit x", "limit"},
		{own.ReadFile, "@a INT64 1..2\n@a INT64 1..2", "twice"},
		{own.WriteFile, "insert", "a mutation is"},
		{own.WriteFile, "upsert T A = 1", "unknown mutation"},
		{own.WriteFile, "insert T A", "Column = value"},
		{own.WriteFile, "insert T A = what", "a value is"},
		{own.WriteFile, "at_least_once", "no mutation"},
	} {
		_, err := own.New(own.Files{Paths: []own.File{{Kind: c.kind, Name: write(t, "f", c.text)}}})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %q: got %v, want %q", c.kind, c.text, err, c.want)
		}
	}
	if _, err := own.New(own.Files{}); err == nil {
		t.Error("no files are accepted")
	}
	if _, err := own.New(own.Files{Paths: []own.File{{Kind: own.SQLFile, Name: "missing"}}}); err == nil {
		t.Error("a missing file is accepted")
	}
}

// TestStudyMode checks that the benchmarks "access" and "writes" send the same calls as the published studies if
// Settings.Study is set: the reads have no tags, and each path calls the API methods that it calls in the study.
// StatisticsWait is 0, so that the runs do not wait for the server's statistics.
func TestStudyMode(t *testing.T) {
	s := bench.Defaults()
	out := new(bytes.Buffer)
	s.Rows, s.Each, s.Rounds, s.StatisticsWait, s.Study, s.Batches, s.Out, s.Progress, s.Report = 300, 240*time.Millisecond, 2, 0, true, []int{1, 2, 4}, out, io.Discard, filepath.Join(t.TempDir(), "page.html")
	s.Count = 40
	r, err := harness.Run(t.Context(), s, studies.Access(), studies.Writes())
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if got, want := len(r.Measures), 2*5*2+3*3; got != want {
		t.Errorf("%d measures, want %d", got, want)
	}
	calls := map[string]string{}
	for _, m := range r.Measures {
		if m.Benchmark == "access" && m.Tag != "" {
			t.Errorf("%s, %s has a tag", m.Title, m.Path)
		}
		if strings.HasSuffix(m.Experiment, "_saturated") != (m.Rate == 0) && m.Benchmark == "access" {
			t.Errorf("%s, %s at a rate of %v", m.Title, m.Path, m.Rate)
		}
		var methods []string
		for _, c := range m.Calls {
			if c.PerOperation > 0.5 { // leaves out calls that create sessions, which are rarer
				methods = append(methods, fmt.Sprintf("%.0f %s", c.PerOperation, c.Method))
			}
		}
		calls[m.Experiment+" "+m.Path] = strings.Join(methods, ", ")
	}
	for path, want := range map[string]string{
		"rows_1 mutation":                   "1 Commit",
		"rows_4 mutation":                   "1 Commit",
		"rows_4 mutation, replay-protected": "1 BeginTransaction, 1 Commit",
		"rows_4 DML":                        "4 ExecuteSql, 1 Commit",
		"one_key SQL":                       "1 ExecuteStreamingSql",
		"index_not_covering READ":           "2 StreamingRead",
	} {
		if calls[path] != want {
			t.Errorf("%s calls %q at the server, want %q", path, calls[path], want)
		}
	}
	if len(r.Fits) != 3 || r.Fits[0].R2 == nil || len(r.Fits[0].Sizes) != 3 {
		t.Errorf("fits: %+v", r.Fits)
	}
	checkText(t, out.String(), "as in the study")
	checkPage(t, s.Report, "READ / SQL at saturation", "of 4600", "ms per added row", "What an operation is made of", "11 September 2024", "23 May 2023")
}

// TestCount checks that a run with Settings.Count ends after this number of operations, and not after a time.
func TestCount(t *testing.T) {
	s, out := small(t)
	s.Count, s.Clients = 40, []int{3}
	workload, err := own.New(own.Files{Paths: []own.File{{Kind: own.SQLFile, Name: write(t, "one.sql", "SELECT 1 UNION ALL SELECT 2")}}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := harness.Run(t.Context(), s, workload)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if m := r.Measures[0]; m.Operations != 40 || m.Rows != 80 || m.RowsPerSecond != 2*m.PerSecond {
		t.Errorf("%d operations and %d rows, want 40 and 80", m.Operations, m.Rows)
	}
}

// TestControl checks that a run with a control server compares every path of the target with the same path of the
// control server. The control server usually runs another executable; here it runs the same executable.
func TestControl(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := bench.Defaults()
	out := new(bytes.Buffer)
	s.Rows, s.Each, s.Rounds, s.StatisticsWait, s.Out, s.Progress, s.Control = 300, 240*time.Millisecond, 6, 0, out, io.Discard, self
	r, err := harness.Run(t.Context(), s, studies.Points(), studies.Access())
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if got, want := len(r.Measures), 2*(2+2)+2*5*2; got != want {
		t.Errorf("%d measures, want %d", got, want)
	}
	// Each path has two measures, target and control, and two figures.
	if got, want := len(r.Figures), len(r.Measures); got != want {
		t.Errorf("%d figures, want %d", got, want)
	}
	for _, f := range r.Figures {
		if f.Ours == nil || f.Spread == nil || f.Spread.Turns != s.Rounds || f.Target != 1.03 || f.Right.Path != f.Left.Path+", control" {
			t.Errorf("figure %+v", f)
		}
	}
	checkText(t, out.String(), "one key, SQL: server CPU, this / control", "more: --report FILE has them")
	if !strings.Contains(strings.Join(r.Facts, "\n"), "beside a control server of "+self) {
		t.Errorf("facts are %q", r.Facts)
	}
}

// TestStreams checks that the server's memory stays within its limit while the server streams rows by READ, by SQL and
// by Flight SQL, and while other clients hardly read their streams. If the limit is too low, the run must report an
// error.
func TestStreams(t *testing.T) {
	out := new(bytes.Buffer)
	s := retrieval.StreamsSettings{Rows: 40_000, TableRows: 10_000, Slow: 8, Memory: "1GiB", Out: out, Progress: io.Discard}
	if err := retrieval.Streams(t.Context(), s); err != nil || strings.Count(out.String(), "40000 rows") != 3 {
		t.Errorf("%v\n%s", err, out)
	}
	s.Rows, s.Slow, s.Memory = s.TableRows, 0, "0.001GiB"
	if err := retrieval.Streams(t.Context(), s); err == nil || !strings.Contains(err.Error(), "may take 0.001GiB") {
		t.Errorf("with a limit that cannot be kept: %v", err)
	}
}

// TestSchema checks that the schema benchmark creates databases, creates an index while rows are written, and inserts
// rows with constraints.
func TestSchema(t *testing.T) {
	out := new(bytes.Buffer)
	s := bench.Defaults()
	s.Rows, s.Each, s.Rounds, s.StatisticsWait, s.Out, s.Progress = 300, 100*time.Millisecond, 1, 0, out, io.Discard
	r, err := harness.Run(t.Context(), s, studies.Schema())
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, f := range r.Figures {
		if f.Ours == nil {
			t.Errorf("nothing of ours beside %q", f.Name)
		}
	}
	if got, want := len(r.Measures), 1+2+3; got != want || len(r.Figures) != 4 {
		t.Errorf("%d measures, want %d; %d figures", got, want, len(r.Figures))
	}
	for _, want := range []string{"database 20 of 20 tables: created in", "an idle database takes"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the report does not say %q:\n%s", want, out)
		}
	}
}
