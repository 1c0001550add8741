package bench

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"cloud.google.com/go/spanner"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
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

// aggregate compares one aggregate query inside databases, over text, and over rows that a client reads. The study
// calls the first fast and the last slow.
func (b *retrieval) aggregate() experiment {
	t := b.table
	e := experiment{name: aggregated, title: fmt.Sprintf("count, sum and avg of %s by %s", t.summed, t.grouped), untagged: true}
	e.paths = []path{
		{name: insideRows, method: aggregateMethod, clients: 1, copy: copyOff, op: b.aggregateInside(fromRowStore + t.aggregate(t.name))},
		{name: overText, clients: 1, local: true, codec: b.files[0].codec, op: func(ctx context.Context, _ call) (int, error) {
			return b.totals(func(visit func(arrow.RecordBatch) error) error { return b.eachBatch(ctx, b.files[0], 1, visit) })
		}},
		{name: overFlight, method: "DoGet", clients: 1, codec: flightCodec, copy: b.copyUse(), op: func(ctx context.Context, _ call) (int, error) {
			return b.totals(func(visit func(arrow.RecordBatch) error) error { return b.flightSQL.each(ctx, t.query(), 1, visit) })
		}},
		{name: overGoClient, method: aggregateMethod, clients: 1, codec: rowCodec, copy: b.copyUse(), op: b.aggregateObjects},
	}
	if b.Columnar {
		e.paths = append(e.paths, path{name: insideCopy, method: aggregateMethod, clients: 1, copy: copyOn, op: b.aggregateInside(fromCopy + t.aggregate(t.name))})
	}
	for _, d := range b.others {
		e.paths = append(e.paths, path{name: insidePrefix + d.name, clients: 1, peer: true, on: d.server(), op: func(ctx context.Context, _ call) (int, error) {
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
		e.paths = append(e.paths, b.byWorker(b.python, insideDuckDB, file.codec, "duckdb_aggregate", t.aggregate("read_parquet('"+file.name+"')"), "1"))
	}
	e.pairs = against(e.paths)
	return e
}

// aggregate returns the aggregate query over a table, or over an expression in place of a table.
func (t *retrievedTable) aggregate(from string) string {
	return fmt.Sprintf("SELECT %[1]s, COUNT(*), SUM(%[2]s), AVG(%[2]s) FROM %[3]s GROUP BY %[1]s", t.grouped, t.summed, from)
}

// aggregateInside runs an aggregate query. The second column of its result is the number of rows in each group.
func (b *retrieval) aggregateInside(query string) operation {
	return func(ctx context.Context, c call) (int, error) {
		rows := int64(0)
		err := c.client.Single().Query(ctx, spanner.NewStatement(query)).Do(func(r *spanner.Row) error {
			var n int64
			defer func() { rows += n }()
			return r.Column(1, &n)
		})
		return b.whole(rows, err)
	}
}

// total holds the number of rows in a group and their sum.
type total struct {
	rows int64
	sum  float64
}

// totals aggregates the batches that each visits. It returns the number of rows.
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
func (b *retrieval) aggregateObjects(ctx context.Context, c call) (int, error) {
	groups := map[string]*total{}
	key, value := slices.Index(b.table.columns, b.table.grouped), slices.Index(b.table.columns, b.table.summed)
	err := c.client.Single().Query(ctx, spanner.NewStatement(b.table.query())).Do(func(r *spanner.Row) error {
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
