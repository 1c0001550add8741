package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"
)

// pageText is the template of the HTML page. It contains the style, and no script, so the page needs no other file.
//
//go:embed page.html
var pageText string

var PageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"class":  cellClass,
	"titled": func(line []string) bool { return len(line) == 1 },
}).Parse(pageText))

// page is the data of the template.
type page struct {
	*Report
	Title     string
	Headlines []string // a sentence for each study
	Took      string
	Loop      string
	Size      string
	Batches   string
	Tiles     []Tile
	Sections  []section
	Knowledge string // where the CPU figures come from
	Answers   []answer
}

// Tile shows one figure in large type at the top of the page.
type Tile struct {
	Value   string
	Name    string
	Beside  string // smaller text below the figure: what the study published, and the target
	Verdict string // "" for none
}

// section shows one benchmark.
type section struct {
	Name  string
	About string
	Study string // "" for none
	Grids []Grid
	Bars  []Chart
	Turns []multiple
}

// answer is one query of the server's statistics as the page shows it.
type answer struct {
	Statistic
	Without string // the reason why the query gave no rows
	Grid    Grid
}

// Chart is a drawing with its caption.
type Chart struct {
	Title string
	SVG   template.HTML
}

// WritePage writes one self-contained HTML page.
func (r *Report) WritePage(w io.Writer) error {
	p := page{
		Report: r, Title: "crowfoot bench " + strings.Join(r.Benchmarks, ", "), Headlines: r.headlines(),
		Took: r.Took(), Loop: "Closed loop: each client sends when it has its answer",
		Size: sizeText(r.Settings), Batches: numbers(r.Settings.Batches), Tiles: r.tiles(), Knowledge: r.knowledge(),
	}
	if r.Settings.Study {
		p.Loop = "Reads came in an open loop at the study's rates, all else in a closed loop: each client sends when it has its answer"
	}
	if r.Settings.Rate > 0 {
		p.Loop = fmt.Sprintf("Open loop: %g operations per second, due at even intervals", r.Settings.Rate)
	}
	if r.Settings.RTT > 0 {
		p.Loop += fmt.Sprintf(". The benchmark delays what client and server send each other, by %v there and back", r.Settings.RTT)
	}
	for _, name := range r.Benchmarks {
		if s := r.section(name); len(s.Grids) > 0 {
			p.Sections = append(p.Sections, s)
		}
	}
	for _, statistic := range r.Statistics {
		p.Answers = append(p.Answers, answer{statistic, statistic.without(), statistic.grid()})
	}
	return PageTemplate.Execute(w, p)
}

// tiles returns a tile for each figure that has a published value, a target, or values of several turns. If there is no
// such figure, it returns tiles for the pairs of paths.
func (r *Report) tiles() (list []Tile) {
	shown := map[string]bool{}
	for _, f := range r.Figures {
		if f.Ours == nil || shown[f.Name] {
			continue // a tile shows a figure only for the first number of clients, with which the study measured
		}
		shown[f.Name] = true
		var beside []string
		if f.Study != nil {
			beside = append(beside, "published "+RatioText(f.Study))
		}
		if f.Target > 0 {
			beside = append(beside, "target "+aim(f))
		}
		if f.Spread != nil && f.Spread.Turns > 1 {
			beside = append(beside, "over turns "+f.spreadText())
		}
		if len(beside) > 0 {
			list = append(list, Tile{timesText(f), f.Name, strings.Join(beside, ", "), f.Verdict()})
		}
	}
	if len(list) > 0 {
		return list
	}
	for _, p := range r.Pairs {
		name := r.Measures[p.Left].Path + " / " + r.Measures[p.Right].Path
		of := p.Title + ", " + Plural(p.Clients, "client")
		list = append(list, Tile{RatioText(p.Latency) + times, name + ": latency", of, ""})
		if p.CPU != nil {
			list = append(list, Tile{RatioText(p.CPU) + times, name + ": server CPU", of, ""})
		}
	}
	return list
}

const times = " ×"

func timesText(f Figure) string {
	if f.Verdict() == notMeasured {
		return "-"
	}
	if !f.isRatio() {
		return f.comparedText(f.Ours)
	}
	return f.comparedText(f.Ours) + times
}

// knowledge returns a sentence about the source of the CPU figures.
func (r *Report) knowledge() string {
	sources := map[string]bool{}
	for _, m := range r.Measures {
		sources[m.CPUSource] = true
	}
	switch {
	case sources[fromProcess]:
		return "Server CPU is the CPU time of the server's process, from the operating system, divided by the operations."
	case len(sources) > 1:
		return "Server CPU is the server's own word, from SPANNER_SYS, where it has one."
	}
	return "Server CPU is not known: the server runs elsewhere and its statistics do not tell."
}

func (r *Report) section(benchmark string) section {
	s := section{Name: benchmark, About: r.About[benchmark], Grids: r.grids(benchmark)}
	if study := r.Studies[benchmark]; study != nil {
		s.Study = study.text()
	}
	colors := r.colors()
	s.Bars = r.barCharts(r.MeasuresOf(benchmark), colors)
	s.Turns = r.turnCharts(benchmark, colors)
	return s
}

// cellClass returns the CSS class of a cell in a column. Columns whose index is below the parameter left are aligned
// left.
func cellClass(left, column int, text string) string {
	switch {
	case text == met, text == Missed, text == inNoise, text == notMeasured:
		return "verdict " + text
	case column < left:
		return "l"
	}
	return ""
}

// colors assigns each path a colour of the page's style, which is the same on every chart. In each benchmark, the
// first path with which others are compared gets colour 0. The other paths get the next colours in order.
func (r *Report) colors() map[string]int {
	colors := map[string]int{}
	for _, name := range r.Benchmarks {
		for _, w := range r.wanted {
			if m := r.Measures[w.right]; m.Benchmark == name {
				colors[m.Path] = 0
				break
			}
		}
	}
	next := 1
	for _, m := range r.Measures {
		if _, ok := colors[m.Path]; !ok {
			colors[m.Path] = next
			next++
		}
	}
	return colors
}

// aim formats the figure's target with the signs ≤ and ≥.
func aim(f Figure) string {
	return strings.NewReplacer("<=", "≤", ">=", "≥").Replace(f.targetText())
}

// numbers formats a list.
func numbers(list []int) string {
	var texts []string
	for _, n := range list {
		texts = append(texts, fmt.Sprint(n))
	}
	return strings.Join(texts, ", ")
}
