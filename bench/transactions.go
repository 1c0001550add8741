package bench

import (
	"context"
	"strings"

	"cloud.google.com/go/spanner"
)

// Transactions are the server's statistics of a path's transactions. They match the transaction details in the study.
// Latencies are in microseconds.
type Transactions struct {
	Commits       int64    `json:"commits"`
	Latency       float64  `json:"avg_total_latency_us"`
	CommitLatency float64  `json:"avg_commit_latency_us"`
	ReadColumns   []string `json:"read_columns"`
}

// transactionsQuery finds the statistics of the transactions with a tag, for each minute of the run.
const transactionsQuery = `SELECT commit_attempt_count, avg_total_latency_seconds, avg_commit_latency_seconds, read_columns
FROM SPANNER_SYS.TXN_STATS_TOP_MINUTE WHERE interval_end > @since AND transaction_tag = @tag`

// transactionsOf queries the statistics of a path's transactions. It returns nil if the server has none.
func (r *run) transactionsOf(ctx context.Context, m *Measure) *Transactions {
	ctx, cancel := context.WithTimeout(ctx, statisticsLimit)
	defer cancel()
	t := new(Transactions)
	err := r.target.client.Single().Query(ctx, spanner.Statement{SQL: transactionsQuery, Params: map[string]any{"since": r.began, "tag": m.Tag}}).Do(func(row *spanner.Row) error {
		var commits int64
		var total, commit float64
		var columns []string
		if err := row.Columns(&commits, &total, &commit, &columns); err != nil {
			return err
		}
		t.add(commits, total*1e6, commit*1e6, columns)
		return nil
	})
	if err != nil || t.Commits == 0 {
		return nil // the statistics in the report show the reason
	}
	return t
}

// add adds an interval. Its averages are in microseconds.
func (t *Transactions) add(commits int64, total, commit float64, columns []string) {
	all := float64(t.Commits + commits)
	if all == 0 {
		return
	}
	before, added := float64(t.Commits)/all, float64(commits)/all
	t.Latency, t.CommitLatency = t.Latency*before+total*added, t.CommitLatency*before+commit*added
	t.Commits += commits
	t.ReadColumns = columns
}

// existence reports whether the transactions looked up rows by their key, which appears as a read of _exists.
func (t *Transactions) existence() string {
	if t == nil {
		return notKnown
	}
	for _, c := range t.ReadColumns {
		if strings.HasSuffix(c, "._exists") {
			return "yes"
		}
	}
	return "no"
}
