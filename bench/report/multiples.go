package report

import (
	"fmt"
	"html"
	"html/template"
	"strings"
)

// Sizes of the parts of a small chart, in units of the view box. A small chart shows one path turn by turn.
const (
	smallWidth  = 220.0
	smallHeight = 62.0
	smallLeft   = 52.0
	smallRight  = 8.0
	smallTop    = 6.0
	smallBottom = 18.0
)

// turnMetrics lists the metrics for which small charts are drawn.
var turnMetrics = []struct {
	name   string
	metric Metric
}{{"CPU", ServerCPU}, {"p50", MedianLatency}}

// multiple is a group of small charts: one for each path of an experiment, all for the same metric.
type multiple struct {
	Title  string
	Charts []Chart
}

// turnCharts draws the turns of a benchmark's paths, in one small chart for each path and metric. The charts of an
// experiment and a metric have the same axes. Each chart has a dotted line at the median of the first path.
func (r *Report) turnCharts(benchmark string, colors map[string]int) (list []multiple) {
	measures := r.MeasuresOf(benchmark)
	for i := 0; i < len(measures); {
		j := i
		for j < len(measures) && measures[j].Group == measures[i].Group {
			j++
		}
		group := multiple{Title: "Turn by turn: " + r.groupTitle(measures[i])}
		for _, m := range turnMetrics {
			group.Charts = append(group.Charts, small(measures[i:j], m.name, m.metric, colors)...)
		}
		if len(group.Charts) > 0 {
			list = append(list, group)
		}
		i = j
	}
	return list
}

// small draws one chart of a metric for each path of an experiment. It returns nil if the metric is unknown, or if
// there was only one turn.
func small(measures []*Measure, name string, metric Metric, colors map[string]int) (charts []Chart) {
	highest := 0.0
	for _, m := range measures {
		for _, v := range m.turnValues(metric) {
			highest = max(highest, v)
		}
	}
	if highest == 0 || len(measures[0].Turns) < 2 {
		return nil
	}
	base := SpreadOf(measures[0].turnValues(metric))
	for _, m := range measures {
		values := m.turnValues(metric)
		if s := SpreadOf(values); s != nil {
			title := m.Path + ", " + name + " " + DurationText(s.Median)
			charts = append(charts, Chart{title, smallChart(title, values, highest, base, colors[m.Path]%pageColors)})
		}
	}
	return charts
}

// turnValues returns the values of a metric in the turns in which it is known.
func (m *Measure) turnValues(metric Metric) (values []float64) {
	for _, t := range m.Turns {
		if v := t.of(metric); v != nil {
			values = append(values, *v)
		}
	}
	return values
}

func smallChart(title string, values []float64, highest float64, base *Spread, color int) template.HTML {
	d := &Drawing{Width: smallWidth, Height: smallTop + smallHeight + smallBottom}
	x := axis{low: 1, high: float64(max(2, len(values))), from: smallLeft, to: smallWidth - smallRight}
	y := axis{low: 0, high: highest, from: smallTop + smallHeight, to: smallTop}
	for _, v := range []float64{0, highest} {
		d.line(smallLeft, y.at(v), smallWidth-smallRight, y.at(v), "grid")
	}
	d.Text(smallLeft-5, smallTop+9, "end", "tick", DurationText(highest))
	d.Text(smallLeft-5, smallTop+smallHeight, "end", "tick", "0")
	d.Text(smallLeft, smallTop+smallHeight+13, "start", "tick", "turn 1")
	d.Text(smallWidth-smallRight, smallTop+smallHeight+13, "end", "tick", fmt.Sprint(len(values)))
	if base != nil {
		d.line(smallLeft, y.at(base.Median), smallWidth-smallRight, y.at(base.Median), "base")
	}
	var points []string
	for i, v := range values {
		points = append(points, fmt.Sprintf("%.1f,%.1f", x.at(float64(i+1)), y.at(v)))
	}
	d.Add(`<polyline points="%s" class="line s%d"><title>%s</title></polyline>`, strings.Join(points, " "), color, html.EscapeString(title))
	return d.SVG(title)
}
