package bench

import (
	"context"
	"fmt"
	"time"

	"cloud.google.com/go/spanner"
)

// PollStatistics are what the server says of the polls of a run: QUERY_STATS of all minutes in which there were any. Averages are of one poll.
type PollStatistics struct {
	Text        string  `json:"text"`
	Polls       int64   `json:"polls"`
	CPU         float64 `json:"avg_cpu_seconds"` // the Java application's "average poll time"
	Latency     float64 `json:"avg_latency_seconds"`
	Rows        float64 `json:"avg_rows"`
	RowsScanned float64 `json:"avg_rows_scanned"`
}

// Share is the CPU time of the polls as a share of one core over the time of a run, as the Java application works it out for a minute.
func (p PollStatistics) Share(lasted time.Duration) float64 {
	return p.CPU * float64(p.Polls) / lasted.Seconds()
}

// IndexRows is how many rows of the index a poll read for each row that it returned: the others that it scanned are of the table, one for
// each row returned. 0 if no rows were returned.
func (p PollStatistics) IndexRows() float64 {
	if p.Rows == 0 {
		return 0
	}
	return (p.RowsScanned - p.Rows) / p.Rows
}

// pollStatistics finds the polls by their request tag. Their text, which the Java application goes by, is the same for all polls of a run but for
// those of the next pages.
const pollStatistics = `SELECT ANY_VALUE(text HAVING MAX execution_count), SUM(execution_count),
  SUM(avg_cpu_seconds * execution_count) / SUM(execution_count), SUM(avg_latency_seconds * execution_count) / SUM(execution_count),
  SUM(avg_rows * execution_count) / SUM(execution_count), SUM(avg_rows_scanned * execution_count) / SUM(execution_count)
FROM SPANNER_SYS.QUERY_STATS_TOP_MINUTE
WHERE interval_end > @since AND request_tag = @tag
HAVING COUNT(*) > 0`

// polls asks for the statistics of the polls of a tag; nil if the server has none.
func (w *watchRun) polls(ctx context.Context, tag string) (*PollStatistics, error) {
	ctx, cancel := context.WithTimeout(ctx, statisticsLimit)
	defer cancel()
	var found *PollStatistics
	it := w.target.client.Single().Query(ctx, spanner.Statement{SQL: pollStatistics, Params: map[string]any{"since": w.began, "tag": tag}})
	err := it.Do(func(r *spanner.Row) error {
		found = new(PollStatistics)
		return r.Columns(&found.Text, &found.Polls, &found.CPU, &found.Latency, &found.Rows, &found.RowsScanned)
	})
	return found, err
}

// askPolls completes the results by what the server says, and waits for it as long as the settings permit: a minute's row appears when it is over.
func (w *watchRun) askPolls(ctx context.Context) error {
	if _, err := w.polls(ctx, ""); err != nil {
		w.fact("the server has no statistics of queries: %s", oneLine(err))
		return nil
	}
	last := time.Now().Truncate(time.Minute).Add(time.Minute + statisticsMargin)
	if time.Until(last) <= w.StatisticsWait {
		w.screen.note(fmt.Sprintf("waiting %.0f s for the server's statistics of the last minute", time.Until(last).Seconds()))
		if err := wait(ctx, time.Until(last)); err != nil {
			return err
		}
	}
	missing := 0
	for _, r := range w.report.Results {
		var err error
		if r.Polls, err = w.polls(ctx, r.tag); err != nil {
			return err
		}
		if r.Polls == nil && r.Watching.Source == Poll {
			missing++
		}
	}
	switch waited := time.Now().After(last); {
	case missing > 0 && !waited:
		w.fact("the server's statistics of %d of %d settings are missing: they come when a minute is over, and --stats-wait %v was too short", missing, len(w.report.Results), w.StatisticsWait)
	case !waited:
		w.fact("the server's statistics lack the last minute: --stats-wait %v was too short for it", w.StatisticsWait)
	case missing > 0:
		w.fact("the server has no statistics of %d of %d settings", missing, len(w.report.Results))
	}
	return nil
}
