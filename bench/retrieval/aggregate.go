package retrieval

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"cloud.google.com/go/spanner"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/crowfoot-db/crowfoot/bench/harness"
)

const (
	aggregated      = "aggregate"
	insideRows      = "inside Crowfoot, row store"
	insideCopy      = "inside Crowfoot, columnar copy"
	overText        = "text (TBL), by our cursor"
	overFlight      = "rows taken out by Flight SQL"
	overGoClient    = "rows taken out by SQL, Go client"
	insideDuckDB    = "inside DuckDB, Parquet"
	insidePrefix    = "inside "
	aggregateMethod = "ExecuteStreamingSql"
)

// aggregate returns an experiment in which each path computes the same aggregate query: inside a database, from a text
// file, or from rows that a client reads. According to the study that this benchmark repeats (figures.go), such a query
// is fast inside a database, but slow if a client reads the rows and computes the result.
func (b *retrieval) aggregate() harness.Experiment {
	t := b.table
	e := harness.Experiment{Name: aggregated, Title: fmt.Sprintf("count, sum and avg of %s by %s", t.summed, t.grouped), Untagged: true}
	e.Paths = []harness.Path{
		{Name: insideRows, Method: aggregateMethod, Clients: 1, Copy: copyOff, Operation: b.aggregateInside(fromRowStore + t.aggregate(t.name))},
		{Name: overText, Clients: 1, Local: true, Codec: b.files[0].codec, Operation: func(ctx context.Context, _ harness.Call) (int, error) {
			return b.totals(func(visit func(arrow.RecordBatch) error) error { return b.eachBatch(ctx, b.files[0], 1, visit) })
		}},
		{Name: overFlight, Method: "DoGet", Clients: 1, Codec: flightCodec, Copy: b.copyUse(), Operation: func(ctx context.Context, _ harness.Call) (int, error) {
			return b.totals(func(visit func(arrow.RecordBatch) error) error { return b.flightSQL.each(ctx, t.query(), 1, visit) })
		}},
		{Name: overGoClient, Method: aggregateMethod, Clients: 1, Codec: rowCodec, Copy: b.copyUse(), Operation: b.aggregateObjects},
	}
	if b.Columnar {
		e.Paths = append(e.Paths, harness.Path{Name: insideCopy, Method: aggregateMethod, Clients: 1, Copy: copyOn, Operation: b.aggregateInside(fromCopy + t.aggregate(t.name))})
	}
	for _, d := range b.others {
		e.Paths = append(e.Paths, harness.Path{Name: insidePrefix + d.name, Clients: 1, Foreign: true, Server: d.server(), Operation: func(ctx context.Context, _ harness.Call) (int, error) {
			rows := int64(0)
			err := d.rows(ctx, 0, t.aggregate(relationalPrefix+t.name), func(scan scanRow) error {
				var key string
				var n int64
				var sum, average float64
				defer func() { rows += n }()
				return scan(&key, &n, &sum, &average)
			})
			return b.whole(rows, err)
		}})
	}
	if b.python.can("duckdb") {
		file := b.file(parquetTitle)
		e.Paths = append(e.Paths, b.byWorker(b.python, insideDuckDB, file.codec, "duckdb_aggregate", t.aggregate("read_parquet('"+file.name+"')"), "1"))
	}
	e.Pairs = harness.AgainstFirst(e.Paths)
	return e
}

// aggregate returns the aggregate query. The parameter from stands after FROM in its text: the name of a
// table, or an expression that takes the place of a table.
func (t *retrievedTable) aggregate(from string) string {
	return fmt.Sprintf("SELECT %[1]s, COUNT(*), SUM(%[2]s), AVG(%[2]s) FROM %[3]s GROUP BY %[1]s", t.grouped, t.summed, from)
}

// aggregateInside returns an operation that runs an aggregate query. The second column of the query's result is the
// number of rows in each group. The operation returns the sum of these numbers.
func (b *retrieval) aggregateInside(query string) harness.Operation {
	return func(ctx context.Context, c harness.Call) (int, error) {
		rows := int64(0)
		err := c.Client.Single().Query(ctx, spanner.NewStatement(query)).Do(func(r *spanner.Row) error {
			var n int64
			defer func() { rows += n }()
			return r.Column(1, &n)
		})
		return b.whole(rows, err)
	}
}

// total holds the number of rows in a group and the sum of a column over them.
type total struct {
	rows int64
	sum  float64
}

// totals computes the aggregate from record batches, and returns the number of rows. The parameter each is a function
// that calls visit(batch) for every batch.
func (b *retrieval) totals(each func(visit func(arrow.RecordBatch) error) error) (int, error) {
	groups := map[string]*total{}
	err := each(func(batch arrow.RecordBatch) error {
		keys, okKeys := columnNamed(batch, b.table.grouped).(*array.String)
		values, okValues := columnNamed(batch, b.table.summed).(*array.Float64)
		if !okKeys || !okValues {
			return fmt.Errorf("the batch has no columns %s and %s: %s", b.table.grouped, b.table.summed, batch.Schema())
		}
		for i, v := range values.Float64Values() {
			g := groups[keys.Value(i)]
			if g == nil {
				g = new(total)
				groups[strings.Clone(keys.Value(i))] = g
			}
			g.rows++
			g.sum += v
		}
		return nil
	})
	return b.whole(rowsOfGroups(groups), err)
}

func columnNamed(batch arrow.RecordBatch, name string) arrow.Array {
	for i, f := range batch.Schema().Fields() {
		if f.Name == name {
			return batch.Column(i)
		}
	}
	return nil
}

func rowsOfGroups(groups map[string]*total) (rows int64) {
	for _, g := range groups {
		rows += g.rows
	}
	return rows
}

// aggregateObjects reads all rows with the Go client and aggregates them.
func (b *retrieval) aggregateObjects(ctx context.Context, c harness.Call) (int, error) {
	groups := map[string]*total{}
	key, value := slices.Index(b.table.columns, b.table.grouped), slices.Index(b.table.columns, b.table.summed)
	err := c.Client.Single().Query(ctx, spanner.NewStatement(b.table.query())).Do(func(r *spanner.Row) error {
		var k string
		var v float64
		if err := inTurn(func() error { return r.Column(key, &k) }, func() error { return r.Column(value, &v) }); err != nil {
			return err
		}
		g := groups[k]
		if g == nil {
			g = new(total)
			groups[k] = g
		}
		g.rows++
		g.sum += v
		return nil
	})
	return b.whole(rowsOfGroups(groups), err)
}
