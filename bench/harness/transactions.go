package harness

import (
	"context"

	"cloud.google.com/go/spanner"

	"github.com/crowfoot-db/crowfoot/bench/report"
)

// transactionsQuery finds the statistics of the transactions with a given tag, for each minute of the run.
const transactionsQuery = `SELECT commit_attempt_count, avg_total_latency_seconds, avg_commit_latency_seconds, read_columns
FROM SPANNER_SYS.TXN_STATS_TOP_MINUTE WHERE interval_end > @since AND transaction_tag = @tag`

// transactionsOf queries the server's statistics for the transactions of a path. It returns nil if the server has
// none.
func (r *Runner) transactionsOf(ctx context.Context, m *report.Measure) *report.Transactions {
	ctx, cancel := context.WithTimeout(ctx, StatisticsTimeout)
	defer cancel()
	t := new(report.Transactions)
	err := r.Target.Client.Single().Query(ctx, spanner.Statement{SQL: transactionsQuery, Params: map[string]any{"since": r.began, "tag": m.Tag}}).Do(func(row *spanner.Row) error {
		var commits int64
		var total, commit float64
		var columns []string
		if err := row.Columns(&commits, &total, &commit, &columns); err != nil {
			return err
		}
		t.Add(commits, total*1e6, commit*1e6, columns)
		return nil
	})
	if err != nil || t.Commits == 0 {
		return nil // the report shows the result of its own query of this table: an error or no rows
	}
	return t
}
