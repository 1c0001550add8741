package retrieval

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"cloud.google.com/go/spanner"
	"github.com/apache/arrow-go/v18/arrow"
	"google.golang.org/api/option"

	"github.com/crowfoot-db/crowfoot/bench"
	"github.com/crowfoot-db/crowfoot/bench/harness"
	"github.com/crowfoot-db/crowfoot/bench/report"
	"github.com/crowfoot-db/crowfoot/bench/tpch"
)

// New returns a benchmark that reads all rows of a table from the database in every available way. For
// comparison, it reads the same rows from files.
func New(s Settings) (harness.Benchmark, error) {
	t := retrievedTables[s.Table]
	if t == nil {
		return harness.Benchmark{}, bench.UsageErrorf("--table must be customer or orders, not %q", s.Table)
	}
	for _, n := range s.Readers {
		if n < 1 || n > bench.MaxClients {
			return harness.Benchmark{}, bench.UsageErrorf("--readers must be from 1 to %d, not %d", bench.MaxClients, n)
		}
	}
	b := &retrieval{Settings: s, table: t}
	return harness.Benchmark{
		Name:  retrievalName,
		About: "All rows of TPC-H's " + s.Table + " into memory: an operation is the whole table.",
		Study: &report.Study{
			Author: "SPL", Title: "How Slow Is Database I/O?", Date: "2022",
			Sentence: "Out of Oracle and MySQL, rows came into a program's memory at %s times the speed of a text file; as objects of the Go client, they come out of Crowfoot at %s times.",
		},
		Check: bench.Settings.CheckEmbedded, Prepare: b.prepare, After: b.profileMissed, Close: b.close, Figures: func(bench.Settings) []report.Figure { return b.figures() },
		Grids: func(r *report.Report) []report.Grid { return []report.Grid{b.grid(r)} },
	}, nil
}

const retrievalName = "retrieval"

// Settings are the settings that only this benchmark has.
type Settings struct {
	Table    string // customer or orders
	Readers  []int  // numbers of readers that share the table; each number has an experiment of its own
	Columnar bool   // true if the server keeps a columnar copy of the table
	Postgres string // DSN, in the syntax of pgx, of a PostgreSQL database that gets a copy of the rows; "" for none
	MySQL    string // DSN of a MySQL or MariaDB database that gets a copy of the rows; "" for none
	Python   string // executable of Python, whose libraries read the rows from files and from the server; "" for none
	Java     string // executable "java" of a JDK
	Profile  string // folder for profiles of paths that miss their targets; "" for none
	Jars     string // Java's class path with the program SPL (java.go) and with JDBC drivers; "" for none
}

// retrieval is the state of a run of this benchmark.
type retrieval struct {
	Settings
	table   *retrievedTable
	rows    int64 // number of rows in the table
	address string
	raw     *rawClient
	// connections holds one connection to the target for each reader. They are separate from the target's own client:
	// each connection has a client of its own, with a single gRPC connection.
	connections []*harness.Server
	// canned is a server that sends recorded messages of the target again. rawCanned and flightCanned are its clients
	// for Spanner's API and for Flight SQL.
	canned       *harness.Server
	rawCanned    *rawClient
	flightCanned *flightClient
	recorded     []string // names of the files with the messages that canned sends
	flightSQL    *flightClient
	schema       *arrow.Schema // schema of the table's rows
	files        []retrievedFile
	rewritten    string   // name of a Parquet file written by pyarrow
	composite    string   // name of the file in SPL's columnar format
	temporary    []string // names of further files that close removes
	others       []otherDatabase
	python, java *worker
	missing      []missingTool
	rowBytes     float64              // average length of a row as text, in bytes
	published    []publishedRetrieval // what the study in figures.go has published for the table
	experiments  []harness.Experiment
}

// missingTool is a tool that the run does not have. The field flag is the flag or command that would provide the tool.
type missingTool struct{ name, flag string }

func (b *retrieval) lacks(name, flag string) { b.missing = append(b.missing, missingTool{name, flag}) }

func (b *retrieval) mostReaders() int { return slices.Max(append([]int{1}, b.Readers...)) }

// prepare creates and fills the table on the server and in the other databases that the run compares. It records the
// messages of one read of the table and starts the canned server, which sends these messages again.
func (b *retrieval) prepare(ctx context.Context, r *harness.Runner) ([]harness.Experiment, error) {
	b.rows, b.address = int64(r.Rows), r.Target.Address
	for _, step := range []func(context.Context, *harness.Runner) error{b.load, b.copyTable, b.connect, b.startCanned, b.writeFiles, b.otherDatabases, b.startPython, b.startJava} {
		if err := step(ctx, r); err != nil {
			return nil, err
		}
	}
	for _, m := range b.missing {
		r.Fact("not compared: %s; %s brings it", m.name, m.flag)
	}
	b.experiments = []harness.Experiment{b.oneStream()}
	for _, n := range b.Readers {
		b.experiments = append(b.experiments, b.parallel(n))
	}
	b.experiments = append(b.experiments, b.aggregate())
	return b.experiments, nil
}

// load creates the table if it does not exist, and fills it if it has fewer rows than the settings ask for.
func (b *retrieval) load(ctx context.Context, r *harness.Runner) error {
	if err := r.Target.CreateTables(ctx, b.table.ddl); err != nil {
		return err
	}
	filled, err := r.Target.Filled(ctx, b.table.name, r.Rows)
	if err != nil {
		return err
	}
	if !filled {
		r.Screen.Note("making the pool of TPC-H's comments")
		took, err := r.Target.Fill(ctx, r.Screen, b.table.name, r.Rows, func(first, last int64) []*spanner.Mutation { return b.table.mutations(b.table, b.rows, first, last) })
		if err != nil {
			return err
		}
		r.Fact("loaded %d rows of %s by mutations at %.0f rows/s", r.Rows, b.table.name, float64(r.Rows)/took.Seconds())
	}
	b.rowBytes, b.published = b.table.textBytes(b.rows), b.table.published
	r.Fact("a row of %s is %.0f bytes as text", b.table.name, b.rowBytes)
	return nil
}

// connect creates the further clients of the target that this benchmark needs.
func (b *retrieval) connect(ctx context.Context, r *harness.Runner) (err error) {
	if b.raw, err = dialRaw(ctx, b.address, r.Target.DatabaseName); err != nil {
		return err
	}
	for range b.mostReaders() {
		c := &harness.Server{Address: b.address, Options: []option.ClientOption{option.WithGRPCConnectionPool(1)}}
		b.connections = append(b.connections, c)
		if err := c.Connect(ctx, r.Target.DatabaseName); err != nil {
			return err
		}
	}
	b.flightSQL, err = dialFlight(b.address, r.Target.DatabaseName)
	return err
}

// startCanned records the messages of one read with SQL and of one with Flight SQL. Then it starts the canned server,
// which only sends these messages again.
func (b *retrieval) startCanned(ctx context.Context, r *harness.Runner) error {
	record := func(name string, write func(io.Writer) error) error {
		f, err := os.Create(filepath.Join(r.Target.Root, name))
		if err != nil {
			return err
		}
		b.recorded = append(b.recorded, f.Name())
		out := bufio.NewWriterSize(f, 1<<20)
		if err := errors.Join(write(out), out.Flush(), f.Close()); err != nil {
			return fmt.Errorf("record %s: %w", name, err)
		}
		return nil
	}
	b.canned = new(harness.Server)
	return inTurn(
		func() error {
			return record("frames", func(w io.Writer) error { return b.raw.record(ctx, b.table.query(), w) })
		},
		func() error {
			return record("batches", func(w io.Writer) error { return b.flightSQL.recordFlight(ctx, b.table.query(), w) })
		},
		func() error {
			return b.canned.Start(ctx, "", "bench", "ceiling", "--frames", b.recorded[0], "--batches", b.recorded[1])
		},
		func() (err error) {
			b.rawCanned, err = dialRaw(ctx, b.canned.Address, r.Target.DatabaseName)
			return err
		},
		func() (err error) {
			b.flightCanned, err = dialFlight(b.canned.Address, r.Target.DatabaseName)
			return err
		},
		func() error { return b.canned.Connect(ctx, r.Target.DatabaseName) },
	)
}

// The name of the experiment oneStream, and the names of its paths.
const (
	oneStream    = "one_stream"
	rawSQL       = "SQL, hand-written decoder"
	rawREAD      = "READ, hand-written decoder"
	rawCanned    = "canned frames, hand-written decoder"
	officialSQL  = "SQL, Go client"
	officialREAD = "READ, Go client"
	cannedGo     = "canned frames, Go client"
	viaFlight    = "Flight SQL"
	twoFlights   = "Flight SQL, two streams"
	cannedFlight = "canned batches, Flight SQL"
)

// How the servers encode the rows of their answers: the format, and the compression.
const (
	rowCodec    = "PartialResultSet, none"
	flightCodec = "Arrow IPC, none"
)

// oneStream returns the experiment in which each path reads the table in one stream.
func (b *retrieval) oneStream() harness.Experiment {
	e := harness.Experiment{Name: oneStream, Title: "all rows, one stream", Untagged: true}
	e.Paths = []harness.Path{
		{Name: officialSQL, Method: "ExecuteStreamingSql", Operation: b.bySQL(b.table.query()), Codec: rowCodec},
		{Name: officialREAD, Method: "StreamingRead", Operation: b.byREAD, Codec: rowCodec},
		{Name: cannedGo, Method: "ExecuteStreamingSql", Operation: b.bySQL(b.table.query()), Codec: rowCodec, Server: b.canned},
		{Name: rawSQL, Method: "ExecuteStreamingSql", Operation: b.byRaw(b.raw, b.raw.sql(b.table.query())), Codec: rowCodec},
		{Name: rawREAD, Method: "StreamingRead", Operation: b.byRaw(b.raw, b.raw.read(b.table.name, b.table.columns)), Codec: rowCodec},
		{Name: rawCanned, Method: "ExecuteStreamingSql", Operation: b.byRaw(b.rawCanned, b.rawCanned.sql(b.table.query())), Codec: rowCodec, Server: b.canned},
		{Name: viaFlight, Method: "DoGet", Operation: b.byFlight(1), Codec: flightCodec},
		{Name: twoFlights, Method: "DoGet", Operation: b.byFlight(2), Codec: flightCodec, Parallel: true},
		{Name: cannedFlight, Method: "DoGet", Operation: b.byCannedFlight(1), Codec: flightCodec, Server: b.canned},
	}
	e.Paths = b.fromTarget(slices.Concat(e.Paths, b.fromADBC(), b.fromFiles(1), b.fromOthers(1), b.fromPython(1), b.fromJava()))
	for i := range e.Paths {
		e.Paths[i].Clients = 1
	}
	e.Pairs = [][2]string{{viaFlight, textTitle}, {viaFlight, parquetTitle}, {viaFlight, cannedFlight}, {viaFlight, rawSQL}, {officialSQL, cannedGo}, {officialREAD, officialSQL},
		{rawSQL, rawCanned}, {rawREAD, rawSQL}, {rawSQL, officialSQL}}
	return e
}

// whole returns an error unless the operation has read every row of the table.
func (b *retrieval) whole(rows int64, err error) (int, error) {
	if err == nil && rows != b.rows {
		err = fmt.Errorf("read %d rows of %d", rows, b.rows)
	}
	return int(rows), err
}

func (b *retrieval) bySQL(query string) harness.Operation {
	return func(ctx context.Context, c harness.Call) (int, error) {
		return b.whole(b.table.objects(c.Client.Single().Query(ctx, spanner.NewStatement(query))))
	}
}

func (b *retrieval) byREAD(ctx context.Context, c harness.Call) (int, error) {
	rows, err := b.table.objects(c.Client.Single().Read(ctx, b.table.name, spanner.AllKeys(), b.table.columns))
	return b.whole(rows, err)
}

func (b *retrieval) byRaw(c *rawClient, request rawRequest) harness.Operation {
	return func(ctx context.Context, _ harness.Call) (int, error) {
		rows, err := c.count(ctx, request)
		return b.whole(rows, err)
	}
}

// byFlight returns an operation that reads the table by Arrow Flight SQL into Arrow's record batches, with n streams.
func (b *retrieval) byFlight(n int) harness.Operation {
	return b.flightFrom(b.flightSQL, b.table.query(), n)
}

func (b *retrieval) byCannedFlight(n int) harness.Operation {
	return b.flightFrom(b.flightCanned, b.table.query(), n)
}

func (b *retrieval) flightFrom(c *flightClient, query string, n int) harness.Operation {
	return func(ctx context.Context, _ harness.Call) (int, error) {
		rows, err := c.count(ctx, query, n)
		return b.whole(rows, err)
	}
}

// close ends the connections and processes that prepare has started, and removes the files that prepare has written.
func (b *retrieval) close() error {
	errs := []error{b.raw.close(), b.rawCanned.close(), b.flightSQL.close(), b.flightCanned.close(), b.python.stop(), b.java.stop()}
	for _, c := range b.connections {
		c.Disconnect()
	}
	for _, d := range b.others {
		errs = append(errs, d.close())
	}
	if b.canned != nil {
		errs = append(errs, b.canned.Stop())
	}
	for _, f := range b.files {
		errs = append(errs, os.Remove(f.name))
	}
	for _, name := range append(b.recorded, b.temporary...) {
		if err := os.Remove(name); !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// retrievedTable is a table of TPC-H.
type retrievedTable struct {
	name    string
	columns []string
	ddl     string
	// mutations returns the mutations that insert rows first to last-1 of a table with the given number of rows.
	mutations func(t *retrievedTable, rows, first, last int64) []*spanner.Mutation
	// objects reads rows into objects in memory and returns their number.
	objects func(*spanner.RowIterator) (int64, error)
	// scan returns a function that copies a row of another database into an object in memory.
	scan func() func(scanRow) error
	// splTypes lists the types of the columns in the notation of the program SPL (java.go).
	splTypes []string
	// grouped and summed are the names of two columns. The aggregate query groups the rows by the first column, and
	// computes the sum and the average of the second one.
	grouped, summed string
	// writeText writes a table with the given number of rows as text.
	writeText func(w io.Writer, rows int64) error
	// textBytes returns the average length in bytes of a row as text. It uses the first rows of a table with the given
	// number of rows.
	textBytes func(rows int64) float64
	// published holds the rows per second that the study in figures.go has published for this table.
	published []publishedRetrieval
}

func (t *retrievedTable) query() string {
	return "SELECT " + strings.Join(t.columns, ", ") + " FROM " + t.name
}

// retrievedTables holds the tables of the published study (figures.go), by the value of the flag --table. TPC-H's
// amounts of money are FLOAT64, as in the file format of the study's authors.
var retrievedTables = map[string]*retrievedTable{
	"customer": {
		name:    "customer",
		columns: []string{"c_custkey", "c_name", "c_address", "c_nationkey", "c_phone", "c_acctbal", "c_mktsegment", "c_comment"},
		ddl: `CREATE TABLE IF NOT EXISTS customer (c_custkey INT64 NOT NULL, c_name STRING(25) NOT NULL, c_address STRING(40) NOT NULL, c_nationkey INT64 NOT NULL,
			c_phone STRING(15) NOT NULL, c_acctbal FLOAT64 NOT NULL, c_mktsegment STRING(10) NOT NULL, c_comment STRING(117) NOT NULL) PRIMARY KEY (c_custkey)`,
		mutations: customerMutations, objects: customerObjects, scan: customerScan,
		splTypes: []string{"long", "string", "string", "long", "string", "float", "string", "string"}, grouped: "c_mktsegment", summed: "c_acctbal",
		writeText: func(w io.Writer, rows int64) error { return writeText(w, tpch.Customers(0, rows)) },
		textBytes: func(rows int64) float64 { return averageText(tpch.Customers(0, min(rows, widthRows))) },
		published: publishedCustomer,
	},
	"orders": {
		name:    "orders",
		columns: []string{"o_orderkey", "o_custkey", "o_orderstatus", "o_totalprice", "o_orderdate", "o_orderpriority", "o_clerk", "o_shippriority", "o_comment"},
		ddl: `CREATE TABLE IF NOT EXISTS orders (o_orderkey INT64 NOT NULL, o_custkey INT64 NOT NULL, o_orderstatus STRING(1) NOT NULL, o_totalprice FLOAT64 NOT NULL,
			o_orderdate DATE NOT NULL, o_orderpriority STRING(15) NOT NULL, o_clerk STRING(15) NOT NULL, o_shippriority INT64 NOT NULL, o_comment STRING(79) NOT NULL) PRIMARY KEY (o_orderkey)`,
		mutations: orderMutations, objects: orderObjects, scan: orderScan,
		splTypes: []string{"long", "long", "string", "float", "date", "string", "string", "long", "string"}, grouped: "o_orderpriority", summed: "o_totalprice",
		writeText: func(w io.Writer, rows int64) error { return writeText(w, tpch.Orders(orderScale(rows), 0, rows)) },
		textBytes: func(rows int64) float64 { return averageText(tpch.Orders(orderScale(rows), 0, min(rows, widthRows))) },
		published: publishedOrders,
	},
}
