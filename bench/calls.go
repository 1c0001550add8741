package bench

import (
	"context"

	"cloud.google.com/go/spanner"
)

// query is a single-use query.
type query struct {
	sql  string
	draw func(call) map[string]any // draws the parameters
}

// path returns a path that runs the query. Its operation fails unless the query returns want rows.
func (q query) path(want int) path {
	return path{name: viaSQL, method: "ExecuteStreamingSql", asked: []asked{{text: q.sql}}, op: func(ctx context.Context, c call) (int, error) {
		st := spanner.Statement{SQL: q.sql, Params: q.draw(c)}
		return rowsOf(c.client.Single().QueryWithOptions(ctx, st, spanner.QueryOptions{RequestTag: c.tag}), want)
	}}
}

// read is a single-use read of the study's table, or of its index.
type read struct {
	index   string   // "" for the table
	columns []string // nil for all of the table
	draw    func(call) spanner.KeySet
}

func (r read) names() []string {
	if r.columns == nil {
		return userColumns
	}
	return r.columns
}

func (r read) asked() asked {
	source := r.index
	if source == "" {
		source = userTable
	}
	return asked{source: source, columns: r.names()}
}

func (r read) rows(ctx context.Context, c call) *spanner.RowIterator {
	return c.client.Single().ReadWithOptions(ctx, userTable, r.draw(c), r.names(), &spanner.ReadOptions{Index: r.index, RequestTag: c.tag})
}

// path returns a path that performs the read. Its operation fails unless the read returns want rows.
func (r read) path(want int) path {
	return path{name: viaREAD, method: "StreamingRead", asked: []asked{r.asked()}, op: func(ctx context.Context, c call) (int, error) {
		return rowsOf(r.rows(ctx, c), want)
	}}
}
