package report

import (
	"fmt"
	"slices"
)

// Grid is a table of texts, which the page shows. The first line names the columns. A line with only one cell is a
// title for the lines below it. As many columns as Left says, from the first on, are aligned left.
type Grid struct {
	Title string
	Note  string
	Left  int
	Lines [][]string
	Below footnotes
}

// footnotes are texts below a table.
type footnotes []string

// mark returns the number of the footnote with this text in the form "(1)", for a cell that refers to the footnote. It
// adds the footnote if there is none with this text yet. For the text "", mark returns "".
func (n *footnotes) mark(text string) string {
	if text == "" {
		return ""
	}
	at := slices.Index(*n, text)
	if at < 0 {
		at = len(*n)
		*n = append(*n, text)
	}
	return fmt.Sprintf("(%d)", at+1)
}

// grids returns the tables of a benchmark that are not empty.
func (r *Report) grids(benchmark string) (list []Grid) {
	var all []Grid
	if own := r.OwnGrids[benchmark]; own != nil {
		all = own(r)
	}
	for _, g := range append(all, r.pairGrid(benchmark), r.figureGrid(benchmark), r.averagesGrid(benchmark), r.callsGrid(benchmark), r.fitGrid(benchmark), r.measureGrid(benchmark)) {
		if len(g.Lines) > 1 {
			list = append(list, g)
		}
	}
	return list
}

// MeasuresOf returns the measures of a benchmark that have at least one operation.
func (r *Report) MeasuresOf(benchmark string) (list []*Measure) {
	for _, m := range r.Measures {
		if m.Benchmark == benchmark && m.Operations > 0 {
			list = append(list, m)
		}
	}
	return list
}

// pairGrid returns the table that compares the two paths of each pair.
func (r *Report) pairGrid(benchmark string) Grid {
	g := Grid{
		Title: "Side by side",
		Note:  "Left (L) is the path, right (R) the one that it is compared with: median latency in ms, CPU time of the server per operation in us. " + spreadLegend(r.Settings.Rounds),
		Left:  2,
		Lines: [][]string{{"left", "right", "clients", "p50 L", "p50 R", "p50 L/R", "over turns", "p99 L/R", "CPU L", "CPU R", "CPU L/R", "over turns", "ops/s L/R"}},
	}
	title := ""
	for _, p := range r.Pairs {
		a, b := r.Measures[p.Left], r.Measures[p.Right]
		if a.Benchmark != benchmark {
			continue
		}
		if p.Title != title {
			title = p.Title
			g.Lines = append(g.Lines, []string{title})
		}
		clients := fmt.Sprint(a.Clients)
		if a.Clients != b.Clients {
			clients += " / " + fmt.Sprint(b.Clients)
		}
		g.Lines = append(g.Lines, []string{a.Path, b.Path, clients,
			MillisecondsText(a.Latency.P50), MillisecondsText(b.Latency.P50), RatioText(p.Latency), p.LatencySpread.text(), RatioText(p.Tail),
			MicrosText(a.CPU), MicrosText(b.CPU), RatioText(p.CPU), p.CPUSpread.text(), RatioText(p.Throughput)})
	}
	return g
}

// figureGrid returns the table that compares published figures and targets with our measurements.
func (r *Report) figureGrid(benchmark string) Grid {
	g := Grid{
		Title: "Published figures and targets next to ours",
		Note:  "Ratios are left / right of the figures beside them. " + spreadLegend(r.Settings.Rounds) + ". A target is met if the whole interval lies within it, missed if none of it does, and else in the noise. A ratio whose interval spans a factor of ten is not measured.",
		Left:  1,
		Lines: [][]string{{"figure", "compared", "clients", "study L", "study R", "study L/R", "ours L", "ours R", "ours L/R", "over turns", "target", "verdict", "note"}},
	}
	for _, f := range r.Figures {
		if f.Benchmark != benchmark {
			continue
		}
		g.Lines = append(g.Lines, []string{f.Name, string(f.Metric), fmt.Sprint(f.Clients),
			f.sideText(IfPublished(f.StudyLeft)), f.sideText(IfPublished(f.StudyRight)), RatioText(f.Study),
			f.sideText(f.OursLeft), f.sideText(f.OursRight), f.comparedText(f.Ours), f.spreadText(), f.targetText(), f.Verdict(), g.Below.mark(f.Basis)})
	}
	return g
}

// measureGrid lists all measures.
func (r *Report) measureGrid(benchmark string) Grid {
	g := Grid{
		Title: "All measures",
		Note:  "Latencies in ms; corr. is corrected for coordinated omission; CPU is that of the server per operation, in us.",
		Left:  1,
		Lines: [][]string{{"path", "clients", "operations", "ops/s", "rows/s", "mean", "p50", "p90", "p99", "p99.9", "max", "p99 corr.", "CPU"}},
	}
	group := -1
	for _, m := range r.MeasuresOf(benchmark) {
		if m.Group != group {
			group = m.Group
			g.Lines = append(g.Lines, []string{m.Title})
		}
		l := m.Latency
		cells := []string{m.Path, fmt.Sprint(m.Clients), fmt.Sprint(m.Operations), m.paceText(), CountText(m.RowsPerSecond), l.MeanText()}
		for _, v := range []int64{l.P50, l.P90, l.P99, l.P999, l.Max, m.tail().P99} {
			cells = append(cells, MillisecondsText(v))
		}
		g.Lines = append(g.Lines, append(cells, MicrosText(m.CPU)))
		if !m.held() {
			g.Below = append(g.Below, m.Title+", "+m.Path+": "+m.heldText())
		}
	}
	return g
}
