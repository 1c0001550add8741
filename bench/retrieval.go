package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"cloud.google.com/go/spanner"
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/crowfoot-db/crowfoot/bench/tpch"
)

// Retrieval takes all rows of a table out of the database, by each way that there is, and puts the same rows' way out of a file beside them.
func Retrieval(s RetrievalSettings) (Benchmark, error) {
	t := retrievedTables[s.Table]
	if t == nil {
		return Benchmark{}, fmt.Errorf("--table must be customer or orders, not %q", s.Table)
	}
	for _, n := range s.Readers {
		if n < 1 || n > maxClients {
			return Benchmark{}, fmt.Errorf("--readers must be from 1 to %d, not %d", maxClients, n)
		}
	}
	b := &retrieval{RetrievalSettings: s, table: t}
	return Benchmark{
		name:    retrievalName,
		about:   "All rows of TPC-H's " + s.Table + " into memory: an operation is the whole table.",
		study:   &Study{Author: "SPL", Title: "How Slow Is Database I/O?", Date: "2022"},
		prepare: b.prepare, close: b.close, figures: func(Settings) []Figure { return b.figures() },
	}, nil
}

const retrievalName = "retrieval"

// RetrievalSettings are those of Retrieval alone.
type RetrievalSettings struct {
	Table   string // customer or orders
	Readers []int  // that share the table; everything is repeated for each
}

// retrieval is the state of a run of Retrieval.
type retrieval struct {
	RetrievalSettings
	table *retrievedTable
	rows  int64 // in the table
	raw   *rawClient
	// canned streams the target's own frames again, as they were recorded; canned by the client of each kind.
	canned    *server
	rawCanned *rawClient
	frames    string // the file of the frames
	flight    *flightClient
	schema    *arrow.Schema // of the table
	files     []retrievedFile
}

// prepare makes and fills the table, records the frames of one reading of it, and starts the server that gives them out again.
func (b *retrieval) prepare(ctx context.Context, r *run) ([]experiment, error) {
	b.rows = int64(r.Rows)
	if err := b.load(ctx, r); err != nil {
		return nil, err
	}
	var err error
	if r.target.process == nil {
		return nil, errors.New("retrieval needs the embedded server and takes no --database")
	}
	if b.raw, err = dialRaw(ctx, r.target.address, r.target.database); err != nil {
		return nil, err
	}
	if err := b.startCanned(ctx, r); err != nil {
		return nil, err
	}
	if b.flight, err = dialFlight(r.target.address, r.target.database); err != nil {
		return nil, err
	}
	if err := b.writeFiles(ctx, r); err != nil {
		return nil, err
	}
	list := []experiment{b.oneStream()}
	for _, n := range b.Readers {
		list = append(list, b.parallel(n))
	}
	return list, nil
}

// load makes the table, if it has not as many rows.
func (b *retrieval) load(ctx context.Context, r *run) error {
	if err := r.target.createTables(ctx, b.table.ddl); err != nil {
		return err
	}
	filled, err := r.target.filled(ctx, b.table.name, r.Rows)
	if err != nil {
		return err
	}
	if !filled {
		r.screen.note("making the pool of TPC-H's comments")
		took, err := r.target.fill(ctx, r.screen, b.table.name, r.Rows, func(first, last int64) []*spanner.Mutation { return b.table.mutations(b.table, b.rows, first, last) })
		if err != nil {
			return err
		}
		r.fact("loaded %d rows of %s by mutations at %.0f rows/s", r.Rows, b.table.name, float64(r.Rows)/took.Seconds())
	}
	r.report.rowBytes, r.report.published = b.table.textBytes(b.rows), b.table.published
	r.fact("a row of %s is %.0f bytes as text", b.table.name, r.report.rowBytes)
	return nil
}

// startCanned records the frames of a reading by SQL and starts a server that does nothing but send them.
func (b *retrieval) startCanned(ctx context.Context, r *run) (err error) {
	f, err := os.Create(filepath.Join(r.target.root, "frames"))
	if err != nil {
		return err
	}
	b.frames = f.Name()
	if err := errors.Join(b.raw.record(ctx, b.table.query(), f), f.Close()); err != nil {
		return fmt.Errorf("record frames: %w", err)
	}
	b.canned = new(server)
	if err := b.canned.start(ctx, "", "bench", "ceiling", "--frames", b.frames); err != nil {
		return err
	}
	if b.rawCanned, err = dialRaw(ctx, b.canned.address, r.target.database); err != nil {
		return err
	}
	return b.canned.connect(ctx, r.target.database)
}

// The paths.
const (
	oneStream    = "one_stream"
	rawSQL       = "SQL, hand-written decoder"
	rawREAD      = "READ, hand-written decoder"
	rawCanned    = "canned frames, hand-written decoder"
	officialSQL  = "SQL, Go client"
	officialREAD = "READ, Go client"
	cannedGo     = "canned frames, Go client"
	viaFlight    = "Flight SQL"
)

// oneStream is the table in one stream.
func (b *retrieval) oneStream() experiment {
	e := experiment{name: oneStream, title: "all rows, one stream", untagged: true}
	e.paths = []path{
		{name: officialSQL, method: "ExecuteStreamingSql", op: b.bySQL, clients: 1},
		{name: officialREAD, method: "StreamingRead", op: b.byREAD, clients: 1},
		{name: cannedGo, method: "ExecuteStreamingSql", op: b.bySQL, clients: 1, on: b.canned},
		{name: rawSQL, method: "ExecuteStreamingSql", op: b.byRaw(b.raw, b.raw.sql(b.table.query())), clients: 1},
		{name: rawREAD, method: "StreamingRead", op: b.byRaw(b.raw, b.raw.read(b.table.name, b.table.columns)), clients: 1},
		{name: rawCanned, method: "ExecuteStreamingSql", op: b.byRaw(b.rawCanned, b.rawCanned.sql(b.table.query())), clients: 1, on: b.canned},
		{name: viaFlight, method: "DoGet", op: b.byFlight(1), clients: 1},
	}
	e.paths = append(e.paths, b.fromFiles(1)...)
	e.pairs = [][2]string{{viaFlight, b.files[0].title}, {viaFlight, b.files[1].title}, {viaFlight, rawSQL}, {officialSQL, cannedGo}, {officialREAD, officialSQL}, {rawSQL, rawCanned}, {rawREAD, rawSQL}, {rawSQL, officialSQL}}
	return e
}

// whole checks the number of rows of an operation.
func (b *retrieval) whole(rows int64, err error) (int, error) {
	if err == nil && rows != b.rows {
		err = fmt.Errorf("read %d rows of %d", rows, b.rows)
	}
	return int(rows), err
}

func (b *retrieval) bySQL(ctx context.Context, c call) (int, error) {
	rows, err := b.table.objects(c.client.Single().Query(ctx, spanner.NewStatement(b.table.query())))
	return b.whole(rows, err)
}

func (b *retrieval) byREAD(ctx context.Context, c call) (int, error) {
	rows, err := b.table.objects(c.client.Single().Read(ctx, b.table.name, spanner.AllKeys(), b.table.columns))
	return b.whole(rows, err)
}

func (b *retrieval) byRaw(c *rawClient, request rawRequest) operation {
	return func(ctx context.Context, _ call) (int, error) {
		rows, err := c.count(ctx, request)
		return b.whole(rows, err)
	}
}

// byFlight reads by Arrow Flight SQL into Arrow's record batches.
func (b *retrieval) byFlight(n int) operation {
	return func(ctx context.Context, _ call) (int, error) {
		rows, err := b.flight.count(ctx, b.table.query(), n)
		return b.whole(rows, err)
	}
}

// The targets that are ratios of two of these paths. Those of the server's CPU time of a row are in the table of rows per second.
func (b *retrieval) figures() []Figure {
	return []Figure{
		{Name: "Flight SQL, one stream / text, one thread", Metric: Throughput, Left: Ref{oneStream, viaFlight}, Right: Ref{oneStream, fileFormats[0].title}, Target: 2, AtLeast: true},
		{Name: "row cursor, hand-written decoder / canned frames", Metric: Throughput, Left: Ref{oneStream, rawSQL}, Right: Ref{oneStream, rawCanned}, Target: 0.8, AtLeast: true},
		{Name: "row cursor, Go client / canned frames", Metric: Throughput, Left: Ref{oneStream, officialSQL}, Right: Ref{oneStream, cannedGo}, Target: 0.95, AtLeast: true},
	}
}

// close ends what prepare has started.
func (b *retrieval) close() error {
	errs := []error{b.raw.close(), b.rawCanned.close(), b.flight.close()}
	for _, f := range b.files {
		errs = append(errs, os.Remove(f.name))
	}
	if b.canned != nil {
		errs = append(errs, b.canned.stop())
	}
	if b.frames != "" {
		errs = append(errs, os.Remove(b.frames))
	}
	return errors.Join(errs...)
}

// retrievedTable is a table of TPC-H.
type retrievedTable struct {
	name    string
	columns []string
	ddl     string
	// mutations are those of rows first to last-1 of a table of so many rows.
	mutations func(t *retrievedTable, rows, first, last int64) []*spanner.Mutation
	// objects reads rows into objects in memory and counts them.
	objects func(*spanner.RowIterator) (int64, error)
	// writeText writes a table of so many rows as text.
	writeText func(w io.Writer, rows int64) error
	// textBytes is how long a row is as text, on average of the first ones of a table of so many rows.
	textBytes func(rows int64) float64
	// published are the rows per second of the study.
	published []publishedRetrieval
}

// publishedRetrieval is a line of the study's table.
type publishedRetrieval struct {
	way  string
	rows float64 // per second
}

func (t *retrievedTable) query() string {
	return "SELECT " + strings.Join(t.columns, ", ") + " FROM " + t.name
}

// retrievedTables are the tables of the study, by the names that --table takes. TPC-H's money is FLOAT64 here, as in the study's own format.
var retrievedTables = map[string]*retrievedTable{
	"customer": {
		name:    "customer",
		columns: []string{"c_custkey", "c_name", "c_address", "c_nationkey", "c_phone", "c_acctbal", "c_mktsegment", "c_comment"},
		ddl: `CREATE TABLE IF NOT EXISTS customer (c_custkey INT64 NOT NULL, c_name STRING(25) NOT NULL, c_address STRING(40) NOT NULL, c_nationkey INT64 NOT NULL,
			c_phone STRING(15) NOT NULL, c_acctbal FLOAT64 NOT NULL, c_mktsegment STRING(10) NOT NULL, c_comment STRING(117) NOT NULL) PRIMARY KEY (c_custkey)`,
		mutations: customerMutations, objects: customerObjects,
		writeText: func(w io.Writer, rows int64) error { return writeText(w, tpch.Customers(0, rows)) },
		textBytes: func(rows int64) float64 { return averageText(tpch.Customers(0, min(rows, widthRows))) },
		published: []publishedRetrieval{{"Oracle, JDBC", 107_000}, {"MySQL, JDBC", 79_000}, {"text file, SPL", 714_000}},
	},
	"orders": {
		name:    "orders",
		columns: []string{"o_orderkey", "o_custkey", "o_orderstatus", "o_totalprice", "o_orderdate", "o_orderpriority", "o_clerk", "o_shippriority", "o_comment"},
		ddl: `CREATE TABLE IF NOT EXISTS orders (o_orderkey INT64 NOT NULL, o_custkey INT64 NOT NULL, o_orderstatus STRING(1) NOT NULL, o_totalprice FLOAT64 NOT NULL,
			o_orderdate DATE NOT NULL, o_orderpriority STRING(15) NOT NULL, o_clerk STRING(15) NOT NULL, o_shippriority INT64 NOT NULL, o_comment STRING(79) NOT NULL) PRIMARY KEY (o_orderkey)`,
		mutations: orderMutations, objects: orderObjects,
		writeText: func(w io.Writer, rows int64) error { return writeText(w, tpch.Orders(orderScale(rows), 0, rows)) },
		textBytes: func(rows int64) float64 { return averageText(tpch.Orders(orderScale(rows), 0, min(rows, widthRows))) },
		published: []publishedRetrieval{{"text file, SPL", 621_000}, {"composite table, SPL", 1_830_000}},
	},
}
