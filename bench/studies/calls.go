package studies

import (
	"context"

	"cloud.google.com/go/spanner"

	"github.com/crowfoot-db/crowfoot/bench/harness"
)

// query is a query in a single-use read-only transaction.
type query struct {
	sql  string
	draw func(harness.Call) map[string]any // chooses random values of the parameters
}

// path returns a path that runs the query. Its operation fails if the query does not return the wanted number of rows.
func (q query) path(want int) harness.Path {
	return harness.Path{Name: viaSQL, Method: "ExecuteStreamingSql", StatisticsKeys: []harness.StatisticsKey{{Text: q.sql}}, Operation: func(ctx context.Context, c harness.Call) (int, error) {
		st := spanner.Statement{SQL: q.sql, Params: q.draw(c)}
		return harness.ExpectRows(c.Client.Single().QueryWithOptions(ctx, st, spanner.QueryOptions{RequestTag: c.Tag}), want)
	}}
}

// read is a read of usertable, or of its index, in a single-use read-only transaction.
type read struct {
	index   string   // "" for the table
	columns []string // nil for all of the table
	draw    func(harness.Call) spanner.KeySet
}

func (r read) names() []string {
	if r.columns == nil {
		return userColumns
	}
	return r.columns
}

func (r read) asked() harness.StatisticsKey {
	source := r.index
	if source == "" {
		source = userTable
	}
	return harness.StatisticsKey{Source: source, Columns: r.names()}
}

func (r read) rows(ctx context.Context, c harness.Call) *spanner.RowIterator {
	return c.Client.Single().ReadWithOptions(ctx, userTable, r.draw(c), r.names(), &spanner.ReadOptions{Index: r.index, RequestTag: c.Tag})
}

// path returns a path that performs the read. Its operation fails if the read does not return the wanted number of
// rows.
func (r read) path(want int) harness.Path {
	return harness.Path{Name: viaREAD, Method: "StreamingRead", StatisticsKeys: []harness.StatisticsKey{r.asked()}, Operation: func(ctx context.Context, c harness.Call) (int, error) {
		return harness.ExpectRows(r.rows(ctx, c), want)
	}}
}
