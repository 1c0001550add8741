package watchers

import (
	"context"
	"fmt"
	"time"

	"cloud.google.com/go/spanner"

	"github.com/crowfoot-db/crowfoot/bench/harness"
	"github.com/crowfoot-db/crowfoot/bench/report"
)

// PollStatistics holds the server's statistics of the polls of a side, summed over all minutes with polls. Averages
// are per poll.
type PollStatistics struct {
	Text        string  `json:"text"`
	Polls       int64   `json:"polls"`
	CPU         float64 `json:"avg_cpu_seconds"` // Published.Poll is the published value of the same quantity
	Latency     float64 `json:"avg_latency_seconds"`
	Rows        float64 `json:"avg_rows"`
	RowsScanned float64 `json:"avg_rows_scanned"`
	// Minutes holds the averages of each minute, in order.
	Minutes []PollMinute `json:"minutes"`
}

// PollMinute holds the server's averages for the polls of one minute.
type PollMinute struct {
	CPU         float64 `json:"avg_cpu_seconds"`
	RowsScanned float64 `json:"avg_rows_scanned"`
}

// Share returns the CPU time of the polls divided by the duration of a run, which is a share of one core. The benchmark
// application of Google's Spanner Change Watcher computes the same value for one minute.
func (p PollStatistics) Share(lasted time.Duration) float64 {
	return p.CPU * float64(p.Polls) / lasted.Seconds()
}

// IndexRows returns how many index rows a poll read for each row that it returned. For each returned row, a poll also
// scans a row of the table, which does not count. IndexRows returns 0 if no rows were returned.
func (p PollStatistics) IndexRows() float64 {
	if p.Rows == 0 {
		return 0
	}
	return (p.RowsScanned - p.Rows) / p.Rows
}

// pollStatistics finds the polls of a side by their request tag, minute by minute. Polls that read further pages have
// another text than the other polls, so the query returns the most frequent text. The benchmark application of Google's
// Spanner Change Watcher finds polls by their text, and not by a tag.
const pollStatistics = `SELECT ANY_VALUE(text HAVING MAX execution_count), SUM(execution_count),
  SUM(avg_cpu_seconds * execution_count), SUM(avg_latency_seconds * execution_count), SUM(avg_rows * execution_count), SUM(avg_rows_scanned * execution_count)
FROM SPANNER_SYS.QUERY_STATS_TOP_MINUTE
WHERE interval_end > @since AND request_tag = @tag
GROUP BY interval_end ORDER BY interval_end`

// polls queries the statistics of the polls with the given tag. It returns nil if the server has none.
func (w *watchRun) polls(ctx context.Context, tag string) (*PollStatistics, error) {
	ctx, cancel := context.WithTimeout(ctx, harness.StatisticsTimeout)
	defer cancel()
	sum, most := new(PollStatistics), int64(0)
	it := w.target.Client.Single().Query(ctx, spanner.Statement{SQL: pollStatistics, Params: map[string]any{"since": w.began, "tag": tag}})
	err := it.Do(func(r *spanner.Row) error {
		var text string
		var polls int64
		var cpu, latency, rows, scanned float64
		if err := r.Columns(&text, &polls, &cpu, &latency, &rows, &scanned); err != nil {
			return err
		}
		if polls > most {
			most, sum.Text = polls, text
		}
		n := float64(polls)
		sum.Minutes = append(sum.Minutes, PollMinute{cpu / n, scanned / n})
		sum.Polls, sum.CPU, sum.Latency, sum.Rows, sum.RowsScanned = sum.Polls+polls, sum.CPU+cpu, sum.Latency+latency, sum.Rows+rows, sum.RowsScanned+scanned
		return nil
	})
	if err != nil || sum.Polls == 0 {
		return nil, err
	}
	n := float64(sum.Polls)
	sum.CPU, sum.Latency, sum.Rows, sum.RowsScanned = sum.CPU/n, sum.Latency/n, sum.Rows/n, sum.RowsScanned/n
	return sum, nil
}

// overMinutes returns the spread of a figure over the minutes. It calls the given function to get the figure of a
// minute.
func (p *PollStatistics) overMinutes(of func(PollMinute) float64) *report.Spread {
	var values []float64
	for _, m := range p.Minutes {
		values = append(values, of(m))
	}
	return report.SpreadOf(values)
}

// askPolls adds the server's statistics of the polls to the results. The statistics of a minute appear only after that
// minute. askPolls waits for those of the last minute if that takes at most StatisticsWait.
func (w *watchRun) askPolls(ctx context.Context) error {
	if _, err := w.polls(ctx, ""); err != nil {
		w.fact("the server has no statistics of queries: %s", report.OneLine(err))
		return nil
	}
	last := time.Now().Truncate(time.Minute).Add(time.Minute + harness.StatisticsMargin)
	if time.Until(last) <= w.StatisticsWait {
		w.screen.Note(fmt.Sprintf("waiting %.0f s for the server's statistics of the last minute", time.Until(last).Seconds()))
		if err := harness.Wait(ctx, time.Until(last)); err != nil {
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
