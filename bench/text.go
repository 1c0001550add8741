package bench

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// notKnown stands for a figure that nobody knows.
const notKnown = "n/a"

// Text prints the report for a terminal.
func (r *Report) Text(w io.Writer) error {
	t := &table{w: w}
	r.heading(t)
	r.pairTable(t)
	r.figureTable(t)
	r.measureTable(t)
	for _, name := range r.Benchmarks {
		for _, g := range r.grids(name) {
			t.printf("\n%s: %s\n%s\n", name, g.Title, wrap(g.Note, textWidth))
			t.rows(g.Left, g.Lines)
		}
	}
	r.statisticTables(t)
	r.ending(t)
	return t.err
}

// table prints lines of cells in columns; the first error stays.
type table struct {
	w   io.Writer
	err error
}

func (t *table) printf(format string, args ...any) {
	if t.err == nil {
		_, t.err = fmt.Fprintf(t.w, format, args...)
	}
}

// rows prints lines under a heading, columns apart by two blanks; the first left are flush left.
func (t *table) rows(left int, lines [][]string) {
	widths := map[int]int{}
	for _, line := range lines {
		if len(line) == 1 {
			continue // a title is as wide as it is
		}
		for i, cell := range line {
			widths[i] = max(widths[i], len([]rune(cell)))
		}
	}
	for _, line := range lines {
		var b strings.Builder
		for i, cell := range line {
			pad := strings.Repeat(" ", max(0, widths[i]-len([]rune(cell))))
			if i > 0 {
				b.WriteString("  ")
			}
			if i < left {
				b.WriteString(cell + pad)
			} else {
				b.WriteString(pad + cell)
			}
		}
		t.printf("%s\n", strings.TrimRight(b.String(), " "))
	}
}

func (r *Report) heading(t *table) {
	s := r.Settings
	t.printf("\ncrowfoot bench %s\n", strings.Join(r.Benchmarks, ", "))
	if r.Partial != "" {
		t.printf("PARTIAL RESULTS: %s\n", r.Partial)
	}
	loop := "closed loop"
	if s.Rate > 0 {
		loop = fmt.Sprintf("open loop at %g/s", s.Rate)
	}
	if s.Study {
		loop = "as in the study: reads in an open loop at its rates, all else in a closed loop"
	}
	t.printf("server   %s\n", r.Server)
	t.printf("machine  %s, %d cores, %s, %s, commit %s, Spanner client %s, gRPC %s\n", r.Machine.CPU, r.Machine.Cores, r.Machine.System, r.Machine.Go, r.Machine.Commit, r.Machine.Client, r.Machine.GRPC)
	t.printf("run      %s, %d rows, %s a path in %d rounds, %s\n", r.Began.Format(time.RFC3339), s.Rows, s.size(), s.Rounds, loop)
	for _, f := range r.Facts {
		t.printf("fact     %s\n", f)
	}
}

func (r *Report) pairTable(t *table) {
	if len(r.Pairs) == 0 {
		return
	}
	lines := [][]string{{"left / right", "clients", "p50 L", "p50 R", "L/R", "over turns", "p99 L/R", "CPU L", "CPU R", "L/R", "over turns", "ops/s L/R"}}
	title := ""
	for _, p := range r.Pairs {
		if p.Title != title {
			title = p.Title
			lines = append(lines, []string{title + ":"})
		}
		a, b := r.Measures[p.Left], r.Measures[p.Right]
		clients := fmt.Sprint(a.Clients)
		if a.Clients != b.Clients {
			clients += " / " + fmt.Sprint(b.Clients)
		}
		lines = append(lines, []string{"  " + a.Path + " / " + b.Path, clients,
			milliseconds(a.Latency.P50), milliseconds(b.Latency.P50), ratioText(p.Latency), p.LatencySpread.text(), ratioText(p.Tail),
			micros(a.CPU), micros(b.CPU), ratioText(p.CPU), p.CPUSpread.text(), ratioText(p.Throughput)})
	}
	t.printf("\nSide by side, left (L) and right (R): latency in ms, CPU of the server per operation in us\n%s\n", spreadLegend(r.Settings.Rounds))
	t.rows(1, lines)
}

func (r *Report) figureTable(t *table) {
	if len(r.Figures) == 0 {
		return
	}
	lines := [][]string{{"", "clients", "study L", "study R", "L/R", "ours L", "ours R", "L/R", "over turns", "target", "", ""}}
	var notes footnotes
	for _, f := range r.Figures {
		lines = append(lines, []string{f.Name, fmt.Sprint(f.Clients),
			f.sideText(studied(f.StudyLeft)), f.sideText(studied(f.StudyRight)), ratioText(f.Study),
			f.sideText(f.OursLeft), f.sideText(f.OursRight), f.comparedText(f.Ours), f.spreadText(), f.targetText(), f.verdict(), notes.mark(f.Basis)})
	}
	t.printf("\nPublished figures and targets next to ours; what is in the noise is neither met nor missed\n%s\n", spreadLegend(r.Settings.Rounds))
	t.rows(1, lines)
	for i, text := range notes {
		t.printf("(%d) %s\n", i+1, text)
	}
	for _, name := range r.Benchmarks {
		if s := r.studies[name]; s != nil {
			t.printf("study of %s: %s\n", name, s.text())
		}
	}
}

// footnotes are texts below a table.
type footnotes []string

// mark is the number by which a cell refers to a footnote, which is added if it is new.
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

func studied(v float64) *float64 {
	if v == 0 {
		return nil
	}
	return &v
}

// sideText prints one side of a figure: times in milliseconds, as the studies do.
func (f Figure) sideText(v *float64) string {
	switch {
	case v == nil:
		return "-"
	case f.Metric == Throughput:
		return count(*v) + "/s"
	}
	return fmt.Sprintf("%.4g ms", *v/1e3)
}

func (f Figure) comparedText(v *float64) string {
	if f.Metric == LatencyAdded {
		return f.sideText(v)
	}
	return ratioText(v)
}

// spreadText prints how ours differs from turn to turn.
func (f Figure) spreadText() string {
	if f.Spread == nil || f.Metric != LatencyAdded {
		return f.Spread.text()
	}
	return fmt.Sprintf("%s [%s, %s]", f.sideText(&f.Spread.Median), f.sideText(&f.Spread.Low), f.sideText(&f.Spread.High))
}

func (f Figure) targetText() string {
	if f.Target == 0 {
		return "-"
	}
	sign := "<= "
	if f.AtLeast {
		sign = ">= "
	}
	if f.Metric == LatencyAdded {
		return sign + f.sideText(&f.Target)
	}
	return sign + fmt.Sprintf("%.2f", f.Target)
}

func (r *Report) measureTable(t *table) {
	if len(r.Measures) == 0 {
		return
	}
	lines := [][]string{{"path", "clients", "operations", "ops/s", "rows/s", "mean", "p50", "p90", "p99", "p99.9", "max", "p99 corr.", "CPU us"}}
	title := ""
	for _, m := range r.Measures {
		if m.Title != title {
			title = m.Title
			lines = append(lines, []string{title + ":"})
		}
		l := m.Latency
		cells := []string{"  " + m.Path, fmt.Sprint(m.Clients), fmt.Sprint(m.Operations), m.paceText(), count(m.RowsPerSecond), l.MeanText()}
		for _, v := range []int64{l.P50, l.P90, l.P99, l.P999, l.Max, m.tail().P99} {
			cells = append(cells, milliseconds(v))
		}
		lines = append(lines, append(cells, micros(m.CPU)))
	}
	t.printf("\nAll measures (latencies in ms; corr. = corrected for coordinated omission)\n")
	t.rows(1, lines)
	for _, m := range r.Measures {
		if !m.held() {
			t.printf("%s, %s: %s\n", m.Title, m.Path, m.heldText())
		}
	}
}

// paceText is the operations per second, and how many were due in an open loop.
func (m *Measure) paceText() string {
	if m.Rate == 0 {
		return count(m.PerSecond)
	}
	return count(m.PerSecond) + " of " + count(m.Rate)
}

// heldShare is the part of the due operations that a machine must have sent to have held a rate: the rest is its hiccups.
const heldShare = 0.99

// held says whether the machine sent the operations of an open loop at the rate that was asked for.
func (m *Measure) held() bool {
	return float64(m.Operations) >= heldShare*float64(m.Operations+m.Unsent)
}

// heldText says what the machine held of a rate that was too high for it.
func (m *Measure) heldText() string {
	return fmt.Sprintf("the machine did not hold %s a second, but %s: %d operations were due and never sent", count(m.Rate), count(m.PerSecond), m.Unsent)
}

// textWidth is how wide the report's sentences are.
const textWidth = 120

// wrap breaks a text between words.
func wrap(text string, width int) string {
	var b strings.Builder
	at := 0
	for i, word := range strings.Fields(text) {
		n := len([]rune(word))
		switch {
		case i == 0:
		case at+1+n > width:
			b.WriteByte('\n')
			at = 0
		default:
			b.WriteByte(' ')
			at++
		}
		b.WriteString(word)
		at += n
	}
	return b.String()
}

func (r *Report) statisticTables(t *table) {
	for _, s := range r.Statistics {
		t.printf("\nThe server's own statistics: %s\n%s\n", s.Title, indent(s.SQL))
		switch {
		case s.Error != "":
			t.printf("  no answer: %s\n", s.Error)
		case len(s.Rows) == 0:
			t.printf("  no rows\n")
		default:
			tw := tabwriter.NewWriter(t.w, 0, 0, 2, ' ', 0)
			fmt.Fprintln(tw, "  "+strings.Join(s.Columns, "\t"))
			for _, row := range s.Rows {
				fmt.Fprintln(tw, "  "+strings.Join(row, "\t"))
			}
			if err := tw.Flush(); err != nil && t.err == nil {
				t.err = err
			}
		}
	}
}

func (r *Report) ending(t *table) {
	if r.Settings.Report != "" {
		t.printf("\npage: %s\n", r.Settings.Report)
	}
	if r.Settings.JSON != "" {
		t.printf("figures: %s\n", r.Settings.JSON)
	}
	if r.Partial != "" {
		t.printf("\nPARTIAL RESULTS: %s\n", r.Partial)
	}
}

func indent(text string) string { return "  " + strings.ReplaceAll(text, "\n", "\n  ") }

// milliseconds prints microseconds.
func milliseconds(us int64) string { return fmt.Sprintf("%.3f", float64(us)/1e3) }

func micros(v *float64) string {
	if v == nil {
		return notKnown
	}
	return fmt.Sprintf("%.1f", *v)
}

func ratioText(v *float64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf("%.2f", *v)
}

// count prints a number that is large or small.
func count(v float64) string {
	if v < 100 {
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.0f", v)
}
