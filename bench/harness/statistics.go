package harness

import (
	"context"
	"fmt"
	"strings"
	"time"

	"cloud.google.com/go/spanner"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/crowfoot-db/crowfoot/bench/report"
)

// statistics are queries of SPANNER_SYS like those that the author of the published studies of reads and writes used.
// @since is the beginning of the run.
var statistics = []report.Statistic{
	{Title: "Queries and DML, by request tag", SQL: `SELECT interval_end, request_tag, execution_count,
  avg_latency_seconds, avg_cpu_seconds, avg_rows, avg_rows_scanned, avg_bytes, avg_remote_server_calls, SUBSTR(text, 1, 60) AS text
FROM SPANNER_SYS.QUERY_STATS_TOP_MINUTE
WHERE interval_end > @since ORDER BY interval_end, request_tag, text`},
	{Title: "Reads, by request tag", SQL: `SELECT interval_end, request_tag, execution_count,
  avg_cpu_seconds, avg_rows, avg_bytes, avg_locking_delay_seconds, avg_client_wait_seconds, read_columns
FROM SPANNER_SYS.READ_STATS_TOP_MINUTE
WHERE interval_end > @since ORDER BY interval_end, request_tag`},
	{Title: "Transactions, by transaction tag", SQL: `SELECT interval_end, transaction_tag, commit_attempt_count,
  commit_abort_count, avg_participants, avg_total_latency_seconds, avg_commit_latency_seconds, avg_bytes, read_columns, write_constructive_columns
FROM SPANNER_SYS.TXN_STATS_TOP_MINUTE
WHERE interval_end > @since ORDER BY interval_end, transaction_tag`},
	{Title: "Waiting for locks", SQL: `SELECT interval_end, total_lock_wait_seconds
FROM SPANNER_SYS.LOCK_STATS_TOTAL_MINUTE
WHERE interval_end > @since ORDER BY interval_end`},
	{Title: "Splits, the hottest first", SQL: `SELECT interval_end, split_start, split_limit, cpu_usage_score, affected_tables, unsplittable_reasons
FROM SPANNER_SYS.SPLIT_STATS_TOP_MINUTE
WHERE interval_end > @since ORDER BY interval_end, cpu_usage_score DESC, split_start`},
}

// StatisticsMargin is the longest time after the end of an interval that the server may take to show the interval's
// rows.
const StatisticsMargin = 3 * time.Second

// serverStatistics adds the server's own statistics to the report. The statistics of the last minute appear when the
// minute is over. serverStatistics waits for them only if that takes at most StatisticsWait. If a query fails, the
// report shows the error, but the run succeeds, because all measurements are done.
func (r *Runner) serverStatistics(ctx context.Context) {
	if r.Study {
		r.Screen.Note("waiting for the server's statistics of the last interval")
		if Wait(ctx, time.Until(r.intervalEnd)+StatisticsMargin) != nil {
			r.Results.Facts = append(r.Results.Facts, "interrupted while waiting for the server's statistics of the last interval")
			return
		}
		r.averages(ctx)
	}
	last := time.Now().Truncate(time.Minute).Add(time.Minute + StatisticsMargin)
	if probe := r.ask(ctx, statistics[0]); probe.Error == "" && time.Until(last) <= r.StatisticsWait {
		r.Screen.Note(fmt.Sprintf("waiting %.0f s for the server's statistics of the last minute", time.Until(last).Seconds()))
		if Wait(ctx, time.Until(last)) != nil {
			r.Results.Facts = append(r.Results.Facts, "interrupted while waiting for the server's statistics of the last minute")
			return
		}
	}
	for _, s := range statistics {
		r.Results.Statistics = append(r.Results.Statistics, r.ask(ctx, s))
	}
	for _, m := range r.Results.Measures {
		r.cpuFromStatistics(ctx, m)
		if m.Commits() && m.Tag != "" {
			m.Transactions = r.transactionsOf(ctx, m)
		}
	}
}

// StatisticsTimeout is the longest time that one query of statistics may take.
const StatisticsTimeout = 20 * time.Second

func (r *Runner) ask(ctx context.Context, s report.Statistic) report.Statistic {
	ctx, cancel := context.WithTimeout(ctx, StatisticsTimeout)
	defer cancel()
	if err := r.statisticRows(ctx, &s, map[string]any{"since": r.began}, func(*spanner.Row) error { return nil }); err != nil {
		s.Error = report.OneLine(err)
	}
	return s
}

// statisticRows runs the query of a statistic. It stores the rows as text in s and calls scan with each row.
func (r *Runner) statisticRows(ctx context.Context, s *report.Statistic, params map[string]any, scan func(*spanner.Row) error) error {
	it := r.Target.Client.Single().Query(ctx, spanner.Statement{SQL: s.SQL, Params: params})
	err := it.Do(func(row *spanner.Row) error {
		values := make([]string, row.Size())
		for i := range values {
			values[i] = valueText(row.ColumnValue(i))
		}
		s.Rows = append(s.Rows, values)
		return scan(row)
	})
	for _, f := range it.Metadata.GetRowType().GetFields() {
		s.Columns = append(s.Columns, f.Name)
	}
	return err
}

// valueText formats a value that has the encoding of the API.
func valueText(v *structpb.Value) string {
	switch k := v.GetKind().(type) {
	case *structpb.Value_NullValue:
		return report.NullText
	case *structpb.Value_StringValue:
		return k.StringValue
	case *structpb.Value_NumberValue:
		return fmt.Sprintf("%.6g", k.NumberValue)
	case *structpb.Value_ListValue:
		var parts []string
		for _, e := range k.ListValue.GetValues() {
			parts = append(parts, valueText(e))
		}
		return strings.Join(parts, ", ")
	}
	return fmt.Sprint(v.AsInterface())
}

// cpuQueries holds the names of the statistics tables with the CPU time of tagged requests, by API method. Commit is
// missing because TXN_STATS has no column for CPU time.
var cpuQueries = map[string]string{
	"ExecuteStreamingSql": "QUERY_STATS_TOP_MINUTE",
	"StreamingRead":       "READ_STATS_TOP_MINUTE",
}

// cpuFromStatistics reads the CPU time of a path from SPANNER_SYS if the run cannot read it from the server's process.
func (r *Runner) cpuFromStatistics(ctx context.Context, m *report.Measure) {
	table, ok := cpuQueries[m.Method]
	if m.CPU != nil || !ok || m.Operations == 0 || m.Tag == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, StatisticsTimeout)
	defer cancel()
	it := r.Target.Client.Single().Query(ctx, spanner.Statement{
		SQL: `SELECT 1e6 * SUM(avg_cpu_seconds * execution_count) / SUM(execution_count) FROM SPANNER_SYS.` + table + `
WHERE interval_end > @since AND request_tag = @tag`,
		Params: map[string]any{"since": r.began, "tag": m.Tag},
	})
	defer it.Stop()
	row, err := it.Next()
	if err != nil {
		return // the report shows the error of its own query of this table
	}
	var cpu spanner.NullFloat64
	if row.Columns(&cpu) == nil && cpu.Valid {
		m.CPU, m.CPUSource = &cpu.Float64, "SPANNER_SYS"
	}
}
