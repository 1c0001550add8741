package report

import (
	"fmt"
	"slices"
	"strings"
)

// averagesGrid returns the table of the server's averages that the benchmark's study has published. Our averages stand
// below each line of the study.
func (r *Report) averagesGrid(benchmark string) Grid {
	g := Grid{
		Title: "The study's table: the server's averages of one interval",
		Note: fmt.Sprintf("The study: ten minutes, 10MINUTE tables. This run: SPANNER_SYS.*_TOP_%s, by TEXT_FINGERPRINT and FPRINT. A READ of scattered keys counts once for each split in the study, "+
			"once in all here; - is a column that the statistics do not have.", r.Settings.Interval.Suffix()),
		Left: 3, Lines: [][]string{{"workload", "path", "whose", "executions", "latency ms", "CPU ms", "leader refresh ms", "rows", "bytes", "remote calls"}},
	}
	for _, m := range r.MeasuresOf(benchmark) {
		if len(m.Averages) == 0 {
			continue
		}
		if published, ok := r.Published[Ref{m.Experiment, m.Path}]; ok {
			g.Lines = append(g.Lines, append([]string{m.Title, m.Path, "study"}, published.cells()...))
		}
		for _, a := range m.Averages {
			g.Lines = append(g.Lines, append([]string{m.Title, m.Path, "this run"}, a.cells()...))
		}
	}
	return g
}

// callsGrid returns a table of the calls that make up the mean latency of an operation.
func (r *Report) callsGrid(benchmark string) Grid {
	g := Grid{
		Title: "What an operation is made of",
		Note: "Calls of one operation as the server counted them, with the mean latency of a call at the server, in ms; their sum; the rest of the mean latency at the client, which is network and client. " +
			"Commit latency and reads of _exists are those of SPANNER_SYS.TXN_STATS_TOP_MINUTE.",
		Left: 2, Lines: [][]string{{"path", "calls (ms of each)", "client ms", "server ms", "rest ms", "commit ms", "reads _exists"}},
	}
	group := -1
	for _, m := range r.MeasuresOf(benchmark) {
		server, rest, ok := m.atServer()
		if !ok {
			continue
		}
		if m.Group != group {
			group = m.Group
			g.Lines = append(g.Lines, []string{r.groupTitle(m)})
		}
		var calls []string
		for _, c := range m.Calls {
			calls = append(calls, fmt.Sprintf("%.2f %s (%s)", c.PerOperation, c.Method, thousandths(c.Latency)))
		}
		commit, exists := "-", "-"
		if m.Commits() {
			commit, exists = notKnown, m.Transactions.existence()
		}
		if m.Transactions != nil {
			commit = thousandths(m.Transactions.CommitLatency)
		}
		g.Lines = append(g.Lines, []string{m.Path, strings.Join(calls, ", "), m.Latency.MeanText(), thousandths(server), thousandths(rest), commit, exists})
	}
	return g
}

// thousandths formats microseconds in milliseconds.
func thousandths(us float64) string { return fmt.Sprintf("%.3f", us/1e3) }

// fitGrid returns a table that shows how the latency grows with the number of rows in a commit.
func (r *Report) fitGrid(benchmark string) Grid {
	g := Grid{
		Title: "How latency grows with the rows of a commit",
		Note:  "Mean latency in ms by rows, and the straight line through them (least squares): what one more row, and with DML one more statement, adds. R² of 1 is a straight line.",
		Left:  1,
	}
	var sizes []int
	for _, f := range r.Fits {
		if f.Benchmark == benchmark {
			sizes = append(sizes, f.Sizes...)
		}
	}
	slices.Sort(sizes)
	sizes = slices.Compact(sizes)
	head := []string{"path", "clients"}
	for _, n := range sizes {
		head = append(head, Plural(n, "row"))
	}
	g.Lines = append(g.Lines, append(head, "ms per added row", "R²"))
	for _, f := range r.Fits {
		if f.Benchmark != benchmark {
			continue
		}
		line := []string{f.Path, fmt.Sprint(f.Clients)}
		for _, n := range sizes {
			cell := "-"
			if i := slices.Index(f.Sizes, n); i >= 0 {
				cell = thousandths(f.Means[i])
			}
			line = append(line, cell)
		}
		g.Lines = append(g.Lines, append(line, thousandths(f.PerRow), f.linearity()))
	}
	return g
}
