package exec_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/cockroachdb/pebble/v2/vfs"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/crowfoot-db/crowfoot/database/sequence"
	"github.com/crowfoot-db/crowfoot/kv/pebble"
	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/sql/analyze"
	"github.com/crowfoot-db/crowfoot/sql/exec"
	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/sql/plan"
	"github.com/crowfoot-db/crowfoot/sql/spill"
	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/txn"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// TestGolden runs the scripts in testdata. Each script begins with an empty database. These are the directives of a
// script:
//
//	protos          sets the FileDescriptorSet, in text format, for later CREATE and ALTER PROTO BUNDLE statements
//	ddl             runs DDL statements, each of which ends with a semicolon at the end of a line
//	query [sorted] [write]  prints a query's columns and rows. sorted sorts the rows, write uses a read-write transaction
//	explain         prints the plan of a statement
//	both [sorted]   prints the plan, then the rows
//	profile         prints a query's plan with the number of rows that each operator returned
//	exec            runs DML statements, separated as for ddl, in one transaction, which commits if all succeed
//	locks           prints the keys of tables and indexes that a statement in an open transaction has locked against writes
//	partition       prints whether the statement can be partitioned, and the rows of two partitions of it
//	pdml            prints whether the statement can run as partitioned DML, and the table or index that it scans
//
// A statement can begin with lines of the form "@name TYPE = expression", which set parameters.
func TestGolden(t *testing.T) {
	runScripts(t, newTestDB)
}

// TestGoldenSpilled checks that the scripts of TestGolden return the same rows in the same order when operators spill.
// It runs the scripts with so little memory that every sort, group, hash join, set operation and named subquery with
// more than a few rows spills.
func TestGoldenSpilled(t *testing.T) {
	runScripts(t, func(tb testing.TB) *testDB {
		db := newTestDB(tb)
		db.spillAbove = 128
		return db
	})
}

func runScripts(t *testing.T, newDB func(testing.TB) *testDB) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		db := newDB(t)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "protos":
				db.protos = descriptors(t, d.Input)
				return ""
			case "ddl":
				return db.ddl(d.Input)
			case "query":
				return db.query(d.Input, d.HasArg("sorted"), d.HasArg("write"))
			case "explain":
				return db.explain(d.Input)
			case "both":
				return db.explain(d.Input) + "--\n" + db.query(d.Input, d.HasArg("sorted"), false)
			case "profile":
				return db.profile(d.Input)
			case "exec":
				return db.exec(d.Input)
			case "locks":
				return db.locks(d.Input)
			case "partition":
				return db.partition(d.Input)
			case "pdml":
				return db.partitionedDML(d.Input)
			}
			t.Fatalf("%s: unknown directive %s", d.Pos, d.Cmd)
			return ""
		})
	})
}

// testDB is a database in memory.
type testDB struct {
	catalog  *schema.Catalog
	analyzer *analyze.Analyzer
	txns     *txn.Manager
	now      time.Time // the time that clock returned last; each call of clock adds a millisecond
	clock    func() time.Time
	zone     *time.Location
	random   seeded
	protos   []byte // a FileDescriptorSet for CREATE and ALTER PROTO BUNDLE

	sequences *sequence.Counters

	within     table.Writer // the transaction in which rowsOf reads; if it is nil, rowsOf reads a snapshot
	files      *countingFS  // the file system of spill
	spill      *spill.Dir
	spillAbove int64 // exec.Env.SpillAbove of the runs, in bytes; 0 means the default
}

func newTestDB(tb testing.TB) *testDB {
	tb.Helper()
	db := &testDB{catalog: schema.NewCatalog(), now: time.Date(2024, 5, 6, 7, 8, 9, 0, time.UTC), random: seeded{rand.New(rand.NewPCG(1, 2))}}
	var mu sync.Mutex
	clock := func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		db.now = db.now.Add(time.Millisecond)
		return db.now
	}
	db.clock = clock
	store, err := pebble.Open("db", vfs.NewMem())
	if err != nil {
		tb.Fatal(err)
	}
	oracle, err := txn.NewOracle(store, clock)
	if err != nil {
		tb.Fatal(err)
	}
	db.files = newCountingFS()
	if db.spill, err = spill.Open(db.files, "spill"); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		oracle.Close()
		store.Close()
		if n := db.files.open.Load(); n != 0 {
			tb.Errorf("%d temporary files are open", n)
		}
	})
	db.sequences = sequence.New(store)
	db.sequences.Open(1, func() *schema.Catalog { return db.catalog })
	db.txns = txn.NewManager(mvcc.New(store).In(1), oracle, txn.Config{})
	if db.zone, err = time.LoadLocation("America/Los_Angeles"); err != nil {
		tb.Fatal(err)
	}
	db.analyzer = analyze.New(db.catalog, nil, systemTable)
	return db
}

// systemTable is the only table that INFORMATION_SCHEMA has in these tests. It takes the place of the tables that
// INFORMATION_SCHEMA has in a database.
var systemTable = &schema.Table{
	Schema: "INFORMATION_SCHEMA",
	Name:   "PARTS",
	Columns: []*schema.Column{
		{ID: 1, Name: "NAME", Type: value.StringType, KeyOrdinal: -1},
		{ID: 2, Ordinal: 1, Name: "N", Type: value.Int64Type, KeyOrdinal: -1},
	},
	Rows: func(_ context.Context, want map[string]map[string]bool) ([][]value.Value, error) {
		rows := [][]value.Value{
			{value.OfString("haft"), value.OfInt64(1)},
			{value.OfString("prong"), value.OfInt64(4)},
		}
		names, ok := want["NAME"]
		return slices.DeleteFunc(rows, func(row []value.Value) bool { return ok && !names[row[0].AsString()] }), nil
	},
}

// compiler compiles the expressions of a schema in the same way as a database does.
type compiler struct{ db *testDB }

func (c compiler) Now() time.Time { return c.db.clock() }

func (c compiler) CompileView(catalog *schema.Catalog, sql string) ([]schema.ViewColumn, []schema.Use, error) {
	return analyze.New(catalog, nil).View(context.Background(), sql)
}

func (c compiler) CompileFunction(catalog *schema.Catalog, f *schema.Function) (schema.Signature, []schema.Use, error) {
	return analyze.New(catalog, nil).Function(context.Background(), f)
}

func (c compiler) CompileExpr(catalog *schema.Catalog, t *schema.Table, sql string, want *value.Type) (*schema.Expr, error) {
	e, uses, functions, err := analyze.Expr(context.Background(), catalog, t, sql, want)
	if err != nil {
		return nil, err
	}
	planned, err := plan.ColumnExpr(e, len(uses))
	if err != nil {
		return nil, err
	}
	f, err := exec.ColumnExpr(planned)
	if err != nil {
		return nil, err
	}
	return &schema.Expr{SQL: sql, Uses: uses, Functions: functions, Eval: func(args []value.Value) (value.Value, error) {
		return f(c.db.functions(), args)
	}}, nil
}

func (c compiler) NextValue(name string, g *schema.Generator) func([]value.Value) (value.Value, error) {
	return func([]value.Value) (value.Value, error) {
		v, err := c.db.sequences.Next(name, g)
		return value.OfInt64(v), err
	}
}

func (db *testDB) functions() *fn.Context {
	return &fn.Context{Now: db.clock(), Zone: db.zone, Random: db.random, Sequences: db.sequences.Newest()}
}

// seeded is a source of randomness that returns the same bytes in every run of the test.
type seeded struct{ *rand.Rand }

func (s seeded) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(s.Uint32())
	}
	return len(b), nil
}

func (db *testDB) ddl(input string) string {
	for _, stmt := range statements(input) {
		next, change, err := db.catalog.Apply(stmt, compiler{db}, db.protos)
		if err != nil {
			return printError(err)
		}
		if len(change.Indexes) > 0 {
			if err := db.write(func(w table.Writer) error { return fill(w, change.Indexes) }); err != nil {
				return printError(err)
			}
		}
		db.catalog = next
		db.analyzer.Release()
		db.analyzer = analyze.New(next, nil, systemTable)
	}
	return ""
}

// descriptors parses a FileDescriptorSet in text format and returns it in binary format.
func descriptors(t *testing.T, text string) []byte {
	set := new(descriptorpb.FileDescriptorSet)
	if err := prototext.Unmarshal([]byte(text), set); err != nil {
		t.Fatal(err)
	}
	data, err := proto.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func fill(w table.Writer, indexes []*schema.Index) error {
	for _, x := range indexes {
		if err := fillIndex(w, x); err != nil {
			return err
		}
	}
	return nil
}

func fillIndex(w table.Writer, x *schema.Index) error {
	entries, err := table.MakeEntries(context.Background(), w, x, nil)
	if err != nil {
		return err
	}
	defer entries.Close()
	for {
		ok, err := entries.Next()
		if !ok || err != nil {
			return err
		}
		key, val, ok, err := entries.Entry()
		if ok {
			err = w.Put(context.Background(), key, val, nil, nil)
		}
		if err != nil {
			return err
		}
	}
}

func statements(input string) []string {
	var list []string
	for stmt := range strings.SplitSeq(input+"\n", ";\n") {
		if stmt = strings.TrimSpace(stmt); stmt != "" {
			list = append(list, stmt)
		}
	}
	return list
}

// write runs f in a read-write transaction. It commits if f succeeds.
func (db *testDB) write(f func(table.Writer) error) error {
	tx := db.txns.Begin(txn.Options{})
	if err := f(tx); err != nil {
		tx.Rollback()
		return err
	}
	_, err := tx.Commit(context.Background(), nil, txn.CommitOptions{})
	return err
}

// prepare plans a statement. It also returns the values of the parameters that the lines before the statement set.
func (db *testDB) prepare(input string, options plan.Options) (*plan.Plan, []value.Value, error) {
	types := map[string]*value.Type{}
	values := map[string]value.Value{}
	sql := strings.TrimSpace(input)
	for strings.HasPrefix(sql, "@") && !strings.HasPrefix(sql, "@{") {
		line, rest, _ := strings.Cut(sql, "\n")
		head, expr, _ := strings.Cut(line, " = ")
		name, typ, _ := strings.Cut(head[1:], " ")
		v, t, err := db.constant("CAST(" + expr + " AS " + typ + ")")
		if err != nil {
			return nil, nil, fmt.Errorf("parameter %s: %w", name, err)
		}
		types[name], values[name] = t, v
		sql = rest
	}
	p, err := db.planFor(sql, types, options)
	if err != nil {
		return nil, nil, err
	}
	var params []value.Value
	for _, q := range p.Params {
		params = append(params, values[q.Name])
	}
	return p, params, nil
}

func (db *testDB) plan(sql string, types map[string]*value.Type) (*plan.Plan, error) {
	return db.planFor(sql, types, plan.Options{})
}

func (db *testDB) planFor(sql string, types map[string]*value.Type, options plan.Options) (*plan.Plan, error) {
	stmt, _, err := db.analyzer.Statement(context.Background(), sql, types, analyze.Options{})
	if err != nil {
		return nil, err
	}
	return plan.Build(stmt, db.catalog, options)
}

// constant computes an expression. A query cannot return a STRUCT as a column. If the value of the expression is a
// STRUCT, constant therefore computes an ARRAY that holds the STRUCT, and returns the element of the ARRAY.
func (db *testDB) constant(expr string) (value.Value, *value.Type, error) {
	p, err := db.plan("SELECT "+expr, nil)
	inArray := usererror.CodeOf(err) == codes.Unimplemented
	if inArray {
		p, err = db.plan("SELECT ["+expr+"]", nil)
	}
	if err != nil {
		return value.Value{}, nil, err
	}
	rows, err := db.run(p, exec.Env{Functions: db.functions()})
	if err != nil {
		return value.Value{}, nil, err
	}
	defer rows.Close()
	if _, err := rows.Next(); err != nil {
		return value.Value{}, nil, err
	}
	v, t := rows.Values(nil)[0], p.Columns[0].Type
	if inArray {
		return v.AsList()[0], t.Elem, nil
	}
	return v, t, nil
}

// run compiles a plan and runs it once with env.
func (db *testDB) run(p *plan.Plan, env exec.Env) (exec.Rows, error) {
	program, err := exec.Compile(p, table.NewDescriptors(db.catalog))
	if err != nil {
		return nil, err
	}
	env.Spill, env.SpillAbove = db.spill, db.spillAbove
	return program.Run(context.Background(), env)
}

func (db *testDB) query(input string, sorted, write bool) string {
	p, params, err := db.prepare(input, plan.Options{})
	if err != nil {
		return printError(err)
	}
	var out string
	run := func(view table.View) error {
		rows, err := db.run(p, exec.Env{View: view, Params: params, Functions: db.functions()})
		if err == nil {
			out, err = printRows(rows, sorted)
		}
		return err
	}
	if write {
		err = db.write(func(w table.Writer) error { return run(w) })
	} else {
		err = db.read(run)
	}
	if err != nil {
		return out + printError(err)
	}
	return out
}

func (db *testDB) read(f func(table.View) error) error {
	s, err := db.txns.Snapshot(context.Background(), txn.Bound{})
	if err != nil {
		return err
	}
	return f(s)
}

// printRows prints the columns and rows of a result. It also checks that AppendWire and Values return the same
// values.
func printRows(rows exec.Rows, sorted bool) (string, error) {
	defer rows.Close()
	var b strings.Builder
	cols := rows.Columns()
	if len(cols) > 0 {
		for i, c := range cols {
			if i > 0 {
				b.WriteString(" | ")
			}
			fmt.Fprintf(&b, "%s %s", c.Name, c.Type)
		}
		b.WriteByte('\n')
	}
	var lines []string
	for {
		ok, err := rows.Next()
		if err != nil || !ok {
			if sorted {
				sort.Strings(lines)
			}
			for _, l := range lines {
				b.WriteString(l + "\n")
			}
			return b.String(), err
		}
		var words []string
		var wire []byte
		for i, v := range rows.Values(nil) {
			words = append(words, printValue(v, cols[i].Type))
			wire = v.AppendWireField(wire, 0x12, cols[i].Type)
		}
		lines = append(lines, strings.Join(words, " | "))
		if got := rows.AppendWire(nil); string(got) != string(wire) {
			return b.String(), fmt.Errorf("AppendWire gives %x, Values %x", got, wire)
		}
	}
}

func printValue(v value.Value, t *value.Type) string {
	if v.IsNull() {
		return "NULL"
	}
	return tree.FormatLiteral(&tree.Literal{T: t, Value: v})
}

func (db *testDB) explain(input string) string {
	p, _, err := db.prepare(input, plan.Options{})
	if err != nil {
		return printError(err)
	}
	text := plan.Text(p.Proto(nil, nil))
	if p.Read != nil {
		text += "runs as a read of " + strings.Join(columnNames(p.Read), ", ") + "\n"
	}
	return text
}

func columnNames(s *plan.Scan) []string {
	names := []string{}
	for _, c := range s.Columns {
		names = append(names, c.Name)
	}
	return names
}

func (db *testDB) profile(input string) string {
	p, params, err := db.prepare(input, plan.Options{})
	if err != nil {
		return printError(err)
	}
	var b strings.Builder
	err = db.read(func(view table.View) error {
		rows, err := db.run(p, exec.Env{View: view, Params: params, Functions: db.functions(), Profile: true})
		if err != nil {
			return err
		}
		if _, err := printRows(rows, false); err != nil {
			return err
		}
		stats := rows.Stats()
		fmt.Fprintf(&b, "scanned %d, returned %d\n", stats.RowsScanned, stats.RowsReturned)
		for _, n := range p.Proto(exec.NodeStatsProto(stats), nil).PlanNodes {
			if n.ExecutionStats == nil {
				continue
			}
			f := n.ExecutionStats.Fields
			fmt.Fprintf(&b, "%d %s: rows %s", n.Index, n.DisplayName, f["rows"].GetStructValue().Fields["total"].GetStringValue())
			if s := f["scanned_rows"]; s != nil {
				fmt.Fprintf(&b, ", scanned %s", s.GetStructValue().Fields["total"].GetStringValue())
			}
			fmt.Fprintf(&b, ", executions %s\n", f["execution_summary"].GetStructValue().Fields["num_executions"].GetStringValue())
		}
		return nil
	})
	if err != nil {
		return printError(err)
	}
	return b.String()
}

func (db *testDB) exec(input string) string {
	var b strings.Builder
	err := db.write(func(w table.Writer) error {
		for _, stmt := range statements(input) {
			p, params, err := db.prepare(stmt, plan.Options{})
			if err != nil {
				return err
			}
			rows, err := db.run(p, exec.Env{Writer: w, Params: params, Functions: db.functions()})
			if err != nil {
				return err
			}
			out, err := printRows(rows, false)
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, "%s%d rows\n", out, rows.RowCount())
		}
		return nil
	})
	if err != nil {
		return b.String() + printError(err)
	}
	return b.String()
}

// locks runs a statement in a transaction. While that transaction is open, locks tries to write every key of the
// database in other transactions, and prints the keys that are locked.
func (db *testDB) locks(input string) string {
	p, params, err := db.prepare(input, plan.Options{})
	if err != nil {
		return printError(err)
	}
	var b strings.Builder
	err = db.write(func(w table.Writer) error {
		rows, err := db.run(p, exec.Env{Writer: w, Params: params, Functions: db.functions()})
		if err != nil {
			return err
		}
		out, err := printRows(rows, false)
		b.WriteString(out)
		for t := range db.catalog.Tables() {
			db.printLocked(&b, table.TableLayout(t))
			for _, x := range t.Indexes {
				db.printLocked(&b, table.IndexLayout(x))
			}
		}
		return err
	})
	if err != nil {
		return b.String() + printError(err)
	}
	return b.String()
}

func (db *testDB) printLocked(b *strings.Builder, l *table.Layout) {
	impatient, cancel := context.WithCancel(context.Background())
	cancel()
	var locked []string
	for _, key := range db.keys(l) {
		tx := db.txns.Begin(txn.Options{})
		if err := tx.Delete(impatient, key); err != nil {
			locked = append(locked, l.KeyText(key))
		}
		tx.Rollback()
	}
	fmt.Fprintf(b, "%s: %d of %d locked: %s\n", l.Name(), len(locked), len(db.keys(l)), strings.Join(locked, " "))
}

func (db *testDB) keys(l *table.Layout) (keys [][]byte) {
	space, _ := l.Space()
	_ = db.read(func(view table.View) error {
		cursor, err := view.Scan(context.Background(), space, table.ScanOptions{})
		if err != nil {
			return err
		}
		defer cursor.Close()
		for cursor.Next() {
			keys = append(keys, append([]byte(nil), cursor.Key()...))
		}
		return cursor.Err()
	})
	return keys
}

// partition runs a query as two partitions: it divides the keys of the driving scan in the middle.
func (db *testDB) partition(input string) string {
	p, params, err := db.prepare(input, plan.Options{Batch: true})
	if err == nil {
		err = p.Partitionable()
	}
	if err != nil {
		return printError(err)
	}
	scan := p.Driving()
	if scan == nil {
		return "one partition\n"
	}
	layout := table.TableLayout(scan.Table)
	if scan.Index != nil {
		layout = table.IndexLayout(scan.Index)
	}
	var b strings.Builder
	err = db.read(func(view table.View) error {
		space, _ := layout.Space()
		cursor, err := view.Scan(context.Background(), space, table.ScanOptions{})
		if err != nil {
			return err
		}
		var keys [][]byte
		for cursor.Next() {
			keys = append(keys, append([]byte(nil), cursor.Key()...))
		}
		cursor.Close()
		middle := keys[len(keys)/2]
		for _, part := range []table.Span{{Start: space.Start, End: middle}, {Start: middle, End: space.End}} {
			rows, err := db.run(p, exec.Env{View: view, Params: params, Functions: db.functions(), Restrict: &part})
			if err != nil {
				return err
			}
			out, err := printRows(rows, false)
			if err != nil {
				return err
			}
			b.WriteString(out)
		}
		return nil
	})
	if err != nil {
		return b.String() + printError(err)
	}
	return b.String()
}

func (db *testDB) partitionedDML(input string) string {
	p, _, err := db.prepare(input, plan.Options{Batch: true})
	if err == nil {
		err = p.PartitionedDML()
	}
	if err != nil {
		return printError(err)
	}
	scan := p.Driving()
	switch {
	case scan == nil:
		return "yes, at once\n"
	case scan.Index != nil:
		return "yes, over " + scan.Index.FullName() + "\n"
	}
	return "yes, over " + scan.Table.FullName() + "\n"
}

func printError(err error) string {
	text := err.Error()
	if user, ok := usererror.As(err); ok {
		text = user.Text()
	}
	return fmt.Sprintf("%s: %s\n", usererror.CodeOf(err), text)
}
