package bench

import (
	"fmt"
	"io"
	"strings"
)

// notKnown stands for a figure that is unknown.
const notKnown = "n/a"

// Text prints the report for a terminal.
func (r *Report) Text(w io.Writer) error {
	t := &table{w: w}
	r.heading(t)
	for _, name := range r.Benchmarks {
		r.benchmarkText(t, name)
	}
	for _, s := range r.Statistics {
		t.printf("\nThe server's own statistics: %s\n%s\n", s.Title, indent(s.SQL))
		if text := s.without(); text != "" {
			t.printf("  %s\n", text)
			continue
		}
		t.grid(s.grid())
	}
	r.ending(t)
	return t.err
}

func (r *Report) benchmarkText(t *table, name string) {
	if len(r.of(name)) == 0 {
		return
	}
	t.printf("\n%s: %s\n", name, wrap(r.about[name], textWidth))
	if s := r.studies[name]; s != nil {
		t.printf("the study: %s\n", s.text())
	}
	for _, g := range r.grids(name) {
		t.printf("\n%s: %s\n", name, g.Title)
		if g.Note != "" {
			t.printf("%s\n", wrap(g.Note, textWidth))
		}
		t.grid(g)
		for i, note := range g.Below {
			t.printf("(%d) %s\n", i+1, note)
		}
	}
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

// grid prints a table, columns apart by two blanks.
func (t *table) grid(g grid) {
	lines := g.Lines
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
		if len(line) == 1 {
			t.printf("%s:\n", line[0])
			continue
		}
		var b strings.Builder
		for i, cell := range line {
			pad := strings.Repeat(" ", widths[i]-len([]rune(cell)))
			if i > 0 {
				b.WriteString("  ")
			}
			if i < g.Left {
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
	loop := "closed loop"
	if s.Rate > 0 {
		loop = fmt.Sprintf("open loop at %g/s", s.Rate)
	}
	if s.Study {
		loop = "as in the study: reads in an open loop at its rates, all else in a closed loop"
	}
	r.print(t, "crowfoot bench "+strings.Join(r.Benchmarks, ", "), fmt.Sprintf("%d rows, %s a path in %d rounds, %s", s.Rows, s.size(), s.Rounds, loop))
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
	case f.Metric == Throughput, f.Metric == RowThroughput:
		return count(*v) + "/s"
	case f.Metric == RowCPU:
		return fmt.Sprintf("%.2f us", *v)
	}
	return fmt.Sprintf("%.4g ms", *v/1e3)
}

func (f Figure) comparedText(v *float64) string {
	if !f.isRatio() {
		return f.sideText(v)
	}
	return ratioText(v)
}

// spreadText prints how ours differs from turn to turn.
func (f Figure) spreadText() string {
	if f.Spread == nil || f.isRatio() {
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
	if !f.isRatio() {
		return sign + f.sideText(&f.Target)
	}
	return sign + fmt.Sprintf("%.2f", f.Target)
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
