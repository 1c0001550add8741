package report

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/crowfoot-db/crowfoot/bench"
)

// notKnown is the text that is shown for an unknown figure.
const notKnown = "n/a"

// Text writes the result as text for a terminal. The page and the JSON have the details.
func (r *Report) Text(w io.Writer) error {
	t := new(Summary)
	r.Opening(t, "crowfoot bench "+strings.Join(r.Benchmarks, ", "), r.howMuch())
	t.Blank()
	for _, h := range r.headlines() {
		t.Add("", h)
	}
	switch figures := r.figureLines(); {
	case len(figures) > 0:
		t.Comparisons(figureHead, figures, t.Room(LinesBehindTable))
	case len(r.Pairs) > 0:
		t.Comparisons([]string{"left / right", "latency", "server CPU"}, r.pairLines(), t.Room(LinesBehindTable))
	default:
		t.Comparisons([]string{"path", "operations/s", "p50", "p99", "server CPU"}, r.measureLines(), t.Room(LinesBehindTable))
	}
	r.Closing(t, r.Settings.Outputs)
	return t.Print(w)
}

// howMuch describes how much work the run does: the rows, the time and the loop.
func (r *Report) howMuch() string {
	s := r.Settings
	loop := "closed loop"
	if s.Rate > 0 {
		loop = fmt.Sprintf("open loop at %g/s", s.Rate)
	}
	if s.Study {
		loop = "as in the study: reads in an open loop at its rates, all else in a closed loop"
	}
	if s.RTT > 0 {
		loop += fmt.Sprintf(", %v between client and server", s.RTT)
	}
	return fmt.Sprintf("%s, %d rows, %s a path in %d rounds, %s", r.Began.Format(time.RFC3339), s.Rows, sizeText(s), s.Rounds, loop)
}

var figureHead = []string{"figure (left / right)", "study", "ours, over turns", "target", "verdict"}

// figureLines returns a line for each figure that was measured and has a published value or a target.
func (r *Report) figureLines() (list []Comparison) {
	for _, f := range r.Figures {
		if f.Ours == nil || f.Study == nil && f.Target == 0 {
			continue
		}
		ours := f.comparedText(f.Ours)
		if f.Spread != nil && f.Spread.Turns > 1 {
			ours = f.spreadText()
		}
		name := f.Name
		if len(r.Settings.Clients) > 1 {
			name += ", " + Plural(f.Clients, "client")
		}
		list = append(list, Comparison{name, []string{RatioText(f.Study), ours, aim(f), f.Verdict()}, f.Verdict()})
	}
	return list
}

func (r *Report) pairLines() (list []Comparison) {
	for _, p := range r.Pairs {
		name := fmt.Sprintf("%s: %s / %s, %s", p.Title, p.LeftPath, p.RightPath, Plural(p.Clients, "client"))
		list = append(list, Comparison{Name: name, Cells: []string{p.LatencySpread.text(), p.CPUSpread.text()}})
	}
	return list
}

func (r *Report) measureLines() (list []Comparison) {
	for _, m := range r.Measures {
		if m.Operations > 0 {
			cpu := notKnown
			if m.CPU != nil {
				cpu = DurationText(*m.CPU)
			}
			name := fmt.Sprintf("%s: %s, %s", m.Title, m.Path, Plural(m.Clients, "client"))
			list = append(list, Comparison{Name: name, Cells: []string{m.paceText(), DurationText(float64(m.Latency.P50)), DurationText(float64(m.Latency.P99)), cpu}})
		}
	}
	return list
}

func IfPublished(v float64) *float64 {
	if v == 0 {
		return nil
	}
	return &v
}

// sideText formats v, a value of the figure that is not a ratio, such as its left or its right value. Rates are per
// second. The CPU time of a row is in microseconds, and all other times are in milliseconds.
func (f Figure) sideText(v *float64) string {
	switch {
	case v == nil:
		return "-"
	case f.Metric == Throughput, f.Metric == RowThroughput:
		return CountText(*v) + "/s"
	case f.Metric == RowCPU:
		return fmt.Sprintf("%.2f us", *v)
	}
	return fmt.Sprintf("%.4g ms", *v/1e3)
}

func (f Figure) comparedText(v *float64) string {
	if !f.isRatio() {
		return f.sideText(v)
	}
	return RatioText(v)
}

// spreadText formats the spread of our value over the turns.
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

// paceText formats the number of operations per second. For an open loop it adds the rate at which they were due.
func (m *Measure) paceText() string {
	if m.Rate == 0 {
		return CountText(m.PerSecond)
	}
	return CountText(m.PerSecond) + " of " + CountText(m.Rate)
}

// heldShare is the share of the due operations that must have been sent for a rate to count as held. It is below 1
// because a short stall may prevent some operations.
const heldShare = 0.99

// held reports whether the operations of an open loop were sent at the requested rate.
func (m *Measure) held() bool {
	return float64(m.Operations) >= heldShare*float64(m.Operations+m.Unsent)
}

// heldText says which rate was reached when the requested rate was too high.
func (m *Measure) heldText() string {
	return fmt.Sprintf("the machine did not hold %s a second, but %s: %d operations were due and never sent", CountText(m.Rate), CountText(m.PerSecond), m.Unsent)
}

// wrap breaks a text between words into lines of at most width columns. Only a single word that is longer exceeds the
// width.
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

// MillisecondsText formats microseconds in milliseconds.
func MillisecondsText(us int64) string { return fmt.Sprintf("%.3f", float64(us)/1e3) }

func MicrosText(v *float64) string {
	if v == nil {
		return notKnown
	}
	return fmt.Sprintf("%.1f", *v)
}

func RatioText(v *float64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf("%.2f", *v)
}

// CountText formats a number with a precision that suits its size.
func CountText(v float64) string {
	if v < 100 {
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.0f", v)
}

// OneLine returns the text of an error on one line, without the client's request ID.
func OneLine(err error) string {
	text, _, _ := strings.Cut(err.Error(), ", requestID = ")
	return strings.Join(strings.Fields(text), " ")
}

func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// sizeText says how much work is done for each path.
func sizeText(s bench.Settings) string {
	if s.Count > 0 {
		return Plural(s.Count, "operation")
	}
	return s.Each.String()
}
