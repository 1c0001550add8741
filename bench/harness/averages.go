package harness

import (
	"context"
	"fmt"
	"time"

	"cloud.google.com/go/spanner"

	"github.com/crowfoot-db/crowfoot/bench/report"
)

// enterInterval waits until the next interval of the server's statistics begins, if the experiment must start in a new
// interval. If StatisticsWait is 0, it never waits.
func (r *Runner) enterInterval(ctx context.Context, e Experiment) error {
	if e.Interval == OwnInterval && r.StatisticsWait > 0 {
		return r.awaitInterval(ctx)
	}
	return nil
}

// leaveInterval records in which interval of the server's statistics the experiment ran, if all its executions fell
// into that interval.
func (r *Runner) leaveInterval(first int, e Experiment) {
	if e.Interval == anyInterval || r.intervalEnd.IsZero() {
		return
	}
	if time.Now().After(r.intervalEnd) {
		r.Fact("%s took longer than its interval of the server's statistics, %s: no averages", e.Title, r.Interval)
		return
	}
	for _, m := range r.Results.Measures[first:] {
		r.intervals[m] = r.intervalEnd
	}
}

// awaitInterval waits until an interval of the server's statistics begins. The executions after the wait are then the
// only ones in that interval.
func (r *Runner) awaitInterval(ctx context.Context) error {
	length := r.Interval.Length()
	began := time.Now().Truncate(length).Add(length)
	r.Screen.Note(fmt.Sprintf("waiting %.0f s for an interval of the server's statistics to begin", time.Until(began).Seconds()))
	if err := Wait(ctx, time.Until(began)+intervalMargin); err != nil {
		return err
	}
	r.intervalEnd = began.Add(length)
	return nil
}

// intervalMargin is the largest difference between the clocks of server and client that the run tolerates.
const intervalMargin = 500 * time.Millisecond

func Wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// The queries of the server's statistics in the published study of reads. They select a query or a read by its
// fingerprint, and an interval by its end. %s stands for the name of the table, which ends in MINUTE or 10MINUTE.
const (
	queryAverages = `SELECT text, execution_count, avg_latency_seconds, avg_cpu_seconds, avg_rows, avg_bytes, avg_remote_server_calls
FROM SPANNER_SYS.%s WHERE text_fingerprint = @fingerprint AND interval_end = @end`
	readAverages = `SELECT read_columns, execution_count, avg_cpu_seconds, avg_leader_refresh_delay_seconds, avg_rows, avg_bytes
FROM SPANNER_SYS.%s WHERE fprint = @fingerprint AND interval_end = @end`
)

// averages queries the statistics of every path that ran within one interval, and adds the results to the report.
func (r *Runner) averages(ctx context.Context) {
	for _, m := range r.Results.Measures {
		end := r.intervals[m]
		if end.IsZero() || m.Operations == 0 {
			continue
		}
		for _, call := range r.asked[m] {
			s, a, err := r.averagesOf(ctx, call, end)
			s.Title = fmt.Sprintf("%s, %s, by fingerprint, in the interval that ended at %s", m.Title, m.Path, end.UTC().Format(time.RFC3339))
			if err != nil {
				s.Error = report.OneLine(err)
			} else {
				m.Averages = append(m.Averages, a)
			}
			r.Results.Statistics = append(r.Results.Statistics, s)
		}
	}
}

// averagesOf finds the fingerprint of a call, and then runs queryAverages or readAverages with that fingerprint.
func (r *Runner) averagesOf(ctx context.Context, call StatisticsKey, end time.Time) (s report.Statistic, a report.Averages, err error) {
	ctx, cancel := context.WithTimeout(ctx, StatisticsTimeout)
	defer cancel()
	a.End, a.Table, s.SQL = end, "READ_STATS_TOP_"+r.Interval.Suffix(), readAverages
	find, scan := r.readFingerprint, averagesOfRead
	if call.Text != "" {
		a.Table, s.SQL = "QUERY_STATS_TOP_"+r.Interval.Suffix(), queryAverages
		find, scan = r.queryFingerprint, averagesOfQuery
	}
	s.SQL = fmt.Sprintf(s.SQL, a.Table)
	if a.Fingerprint, err = find(ctx, a.Table, call, end); err == nil {
		err = r.statisticRows(ctx, &s, map[string]any{"fingerprint": a.Fingerprint, "end": end}, func(row *spanner.Row) error { return scan(&a, row) })
	}
	return s, a, err
}

func averagesOfQuery(a *report.Averages, row *spanner.Row) error {
	var text string
	var latency, calls float64
	err := row.Columns(&text, &a.Executions, &latency, &a.CPU, &a.Rows, &a.Bytes, &calls)
	latency, a.CPU = latency*1e6, a.CPU*1e6
	a.Latency, a.RemoteCalls = &latency, &calls
	return err
}

func averagesOfRead(a *report.Averages, row *spanner.Row) error {
	var columns []string
	var delay float64
	err := row.Columns(&columns, &a.Executions, &a.CPU, &delay, &a.Rows, &a.Bytes)
	delay, a.CPU = delay*1e6, a.CPU*1e6
	a.LeaderRefreshDelay = &delay
	return err
}

// queryFingerprint returns the TEXT_FINGERPRINT under which a statistics table lists the query with the text call.Text
// in the interval that ended at the time end.
func (r *Runner) queryFingerprint(ctx context.Context, table string, call StatisticsKey, end time.Time) (fingerprint int64, err error) {
	found := false
	s := report.Statistic{SQL: "SELECT text_fingerprint FROM SPANNER_SYS." + table + " WHERE text = @text AND interval_end = @end"}
	err = r.statisticRows(ctx, &s, map[string]any{"text": call.Text, "end": end}, func(row *spanner.Row) error {
		found = true
		return row.Column(0, &fingerprint)
	})
	return fingerprint, orMissing(err, found, table, end)
}

// readFingerprint returns the FPRINT under which a statistics table lists a read in the interval that ended at the time
// end. It recognizes the read by its table or index and its columns, which the parameter call holds.
func (r *Runner) readFingerprint(ctx context.Context, table string, call StatisticsKey, end time.Time) (fingerprint int64, err error) {
	found := false
	s := report.Statistic{SQL: "SELECT fprint, read_columns FROM SPANNER_SYS." + table + " WHERE interval_end = @end"}
	err = r.statisticRows(ctx, &s, map[string]any{"end": end}, func(row *spanner.Row) error {
		var fprint int64
		var columns []string
		if err := row.Columns(&fprint, &columns); err != nil {
			return err
		}
		if call.Reads(columns) {
			fingerprint, found = fprint, true
		}
		return nil
	})
	return fingerprint, orMissing(err, found, table, end)
}

func orMissing(err error, found bool, table string, end time.Time) error {
	if err == nil && !found {
		err = fmt.Errorf("%s has no such execution in the interval that ended at %s", table, end.UTC().Format(time.RFC3339))
	}
	return err
}
