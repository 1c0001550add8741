package studies

import (
	"context"
	"errors"
	"fmt"
	"time"

	"cloud.google.com/go/spanner"
	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	"github.com/google/uuid"

	"github.com/crowfoot-db/crowfoot/bench"
	"github.com/crowfoot-db/crowfoot/bench/harness"
	"github.com/crowfoot-db/crowfoot/bench/report"
)

// Schema measures the cost of schema objects. It measures how fast CREATE INDEX is while other clients write rows, and
// how fast these writes are. It inserts rows one by one into tables with foreign keys or UNIQUE indexes, and compares
// this with inserts into a table that has the same columns but no constraints. It also measures the creation of
// databases. It needs the embedded server.
func Schema() harness.Benchmark {
	return harness.Benchmark{Name: "schema", About: schemaAbout, Check: bench.Settings.CheckEmbedded, Prepare: prepareSchema, Figures: func(bench.Settings) []report.Figure { return schemaFigures }}
}

const schemaAbout = "Compared is what one-row inserts cost with and without constraints, and how long writes take beside CREATE INDEX and alone: lower is better. " +
	"How many rows a second CREATE INDEX goes over: higher is better."

const (
	createIndex   = "create_index"
	besideIndex   = "writes_beside_index"
	checkedInsert = "checked_insert"

	viaIndex      = "CREATE INDEX beside writes"
	alone         = "alone"
	besideDDL     = "beside CREATE INDEX"
	unchecked     = "without"
	foreignKeys   = "3 foreign keys"
	uniqueIndexes = "3 UNIQUE indexes"

	// besideRate is the number of writes per second during CREATE INDEX. besideClients is the number of clients that
	// send them. There are so many clients that a write that is due does not have to wait for writes in progress.
	besideRate    = 500
	besideClients = 64
)

var schemaFigures = []report.Figure{
	{Name: "CREATE INDEX beside 500 writes a second, rows per second", Metric: report.RowThroughput, Left: report.RefTo(createIndex, viaIndex), Target: 150_000, AtLeast: true},
	{Name: "p99 of writes, beside CREATE INDEX / alone", Metric: report.P99Latency, Left: report.RefTo(besideIndex, besideDDL), Right: report.RefTo(besideIndex, alone), Target: 3},
	{Name: "one-row insert with 3 foreign keys / without, server CPU", Metric: report.ServerCPU, Left: report.RefTo(checkedInsert, foreignKeys), Right: report.RefTo(checkedInsert, unchecked), Target: 2},
	{Name: "one-row insert with 3 UNIQUE indexes / without, server CPU", Metric: report.ServerCPU, Left: report.RefTo(checkedInsert, uniqueIndexes), Right: report.RefTo(checkedInsert, unchecked), Target: 2},
}

func prepareSchema(ctx context.Context, r *harness.Runner) ([]harness.Experiment, error) {
	if r.Control == "" {
		if err := createDatabases(ctx, r); err != nil {
			return nil, err
		}
	}
	if err := r.Target.CreateTables(ctx, checkedDDL()...); err != nil {
		return nil, err
	}
	if _, err := r.Fill(ctx, checkedParent, checkedParents, func(i int64) []*spanner.Mutation {
		return []*spanner.Mutation{spanner.InsertOrUpdate(checkedParent, []string{"Id"}, []any{i})}
	}); err != nil {
		return nil, err
	}
	if err := r.Target.CreateTables(ctx, pointsDDL()); err != nil {
		return nil, err
	}
	if _, err := r.Fill(ctx, pointsTable, r.Rows, pointsRow); err != nil {
		return nil, err
	}
	select {
	case <-time.After(min(idleAfterLoad, r.Each)):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return []harness.Experiment{indexing(r), writesBeside(r), checkedInserts()}, nil
}

// indexing returns the experiment that creates and drops an index again and again while other clients write.
func indexing(r *harness.Runner) harness.Experiment {
	op := func(ctx context.Context, _ harness.Call) (int, error) { return r.Rows, makeIndex(ctx, r) }
	return harness.Experiment{Name: createIndex, Title: fmt.Sprintf("CREATE INDEX over %d rows of 1 kB beside %d writes a second", r.Rows, besideRate), Paths: []harness.Path{
		{Name: viaIndex, Method: "UpdateDatabaseDdl", Operation: op, Clients: 1, Beside: func(ctx context.Context, stop <-chan struct{}) error { return writing(ctx, r, stop) }},
	}}
}

// pollEvery is the time between two polls of a CREATE INDEX operation. The official client polls every second or less
// often, which is too long compared with the measured time.
const pollEvery = 10 * time.Millisecond

// makeIndex creates an index and drops it.
func makeIndex(ctx context.Context, r *harness.Runner) error {
	op, err := r.Target.Admin.UpdateDatabaseDdl(ctx, &databasepb.UpdateDatabaseDdlRequest{
		Database: r.Target.DatabaseName, Statements: []string{"CREATE INDEX CrowfootBenchIndex ON " + pointsTable + " (F0)", "DROP INDEX CrowfootBenchIndex"},
	})
	for err == nil && !op.Done() {
		select {
		case <-time.After(pollEvery):
			err = op.Poll(ctx)
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	return err
}

// writing writes rows at besideRate until stop closes.
func writing(ctx context.Context, r *harness.Runner, stop <-chan struct{}) error {
	l := &harness.LoadGenerator{Operation: writePoint(int64(r.Rows)), Client: r.Target.Client, Clients: besideClients, Rate: besideRate, Duration: r.Each + harness.Overtime, ServerEnded: r.Target.Ended()}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-stop:
			cancel(errStopped)
		case <-ctx.Done():
		}
	}()
	if err := l.Run(ctx, func(report.Window) {}); !errors.Is(context.Cause(ctx), errStopped) {
		return err
	}
	return nil
}

// errStopped is the cause with which the function writing cancels its load when stop closes.
var errStopped = errors.New("stopped")

func writePoint(rows int64) harness.Operation {
	return func(ctx context.Context, c harness.Call) (int, error) {
		_, err := c.Client.Apply(ctx, pointsRow(c.Int64N(rows)), spanner.ApplyAtLeastOnce())
		return 1, err
	}
}

// writesBeside returns an experiment that compares the same writes with and without a CREATE INDEX at the same time.
func writesBeside(r *harness.Runner) harness.Experiment {
	write := harness.Path{Name: alone, Method: "Commit", Operation: writePoint(int64(r.Rows)), Clients: besideClients}
	beside := write.As(besideDDL, nil)
	beside.Beside = func(ctx context.Context, stop <-chan struct{}) error {
		for {
			if err := makeIndex(ctx, r); err != nil {
				return err
			}
			select {
			case <-stop:
				return nil
			default:
			}
		}
	}
	return harness.Experiment{
		Name: besideIndex, Title: fmt.Sprintf("%d writes a second of one row of 1 kB", besideRate), Rate: besideRate,
		Paths: []harness.Path{write, beside}, Pairs: [][2]string{{besideDDL, alone}},
	}
}

const (
	checkedParent  = "CrowfootBenchParent"
	checkedParents = 10_000
)

// checkedTables holds for each path the name of the table that it writes.
var checkedTables = map[string]string{unchecked: "CrowfootBenchPlain", foreignKeys: "CrowfootBenchForeign", uniqueIndexes: "CrowfootBenchUnique"}

var checkedColumns = []string{"Id", "A", "B", "C"}

func checkedDDL() []string {
	const columns = " (Id STRING(36) NOT NULL, A INT64, B INT64, C INT64"
	list := []string{
		"CREATE TABLE IF NOT EXISTS " + checkedParent + " (Id INT64 NOT NULL) PRIMARY KEY (Id)",
		"CREATE TABLE IF NOT EXISTS " + checkedTables[unchecked] + columns + ") PRIMARY KEY (Id)",
		"CREATE TABLE IF NOT EXISTS " + checkedTables[uniqueIndexes] + columns + ") PRIMARY KEY (Id)",
	}
	foreign := "CREATE TABLE IF NOT EXISTS " + checkedTables[foreignKeys] + columns
	for _, c := range checkedColumns[1:] {
		foreign += fmt.Sprintf(", CONSTRAINT CrowfootBenchForeign%s FOREIGN KEY (%s) REFERENCES %s (Id)", c, c, checkedParent)
		list = append(list, fmt.Sprintf("CREATE UNIQUE INDEX IF NOT EXISTS CrowfootBenchUnique%s ON %s (%s)", c, checkedTables[uniqueIndexes], c))
	}
	return append(list, foreign+") PRIMARY KEY (Id)")
}

// checkedInserts returns an experiment that compares inserts into three tables with the same columns: one without
// constraints, one with foreign keys to rows that exist, and one with UNIQUE indexes.
func checkedInserts() harness.Experiment {
	parent := func(c harness.Call) int64 { return c.Int64N(checkedParents) }
	random := func(c harness.Call) int64 { return c.Int64() }
	insert := func(name string, draw func(harness.Call) int64) harness.Path {
		return harness.Path{Name: name, Method: "Commit", Operation: func(ctx context.Context, c harness.Call) (int, error) {
			m := spanner.Insert(checkedTables[name], checkedColumns, []any{uuid.NewString(), draw(c), draw(c), draw(c)})
			_, err := c.Client.Apply(ctx, []*spanner.Mutation{m}, spanner.ApplyAtLeastOnce())
			return 1, err
		}}
	}
	e := harness.Experiment{Name: checkedInsert, Title: "insert of one row with constraints and without", Paths: []harness.Path{
		insert(unchecked, random), insert(foreignKeys, parent), insert(uniqueIndexes, random),
	}}
	e.Pairs = harness.AgainstFirst(e.Paths)
	return e
}
