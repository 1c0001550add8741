package report

import (
	"fmt"
	"html"
	"html/template"
	"math"
	"strings"
)

// Drawing collects the elements of an SVG image. Colours are CSS classes of the page, so that the image follows light
// and dark mode. Coordinates are in units of the view box.
type Drawing struct {
	b             strings.Builder
	Width, Height float64
}

func (d *Drawing) Add(format string, args ...any) { fmt.Fprintf(&d.b, format, args...) }

// Text writes a text at a point. anchor is start, middle or end.
func (d *Drawing) Text(x, y float64, anchor, class, text string) {
	d.Add(`<text x="%.1f" y="%.1f" text-anchor="%s" class="%s">%s</text>`, x, y, anchor, class, html.EscapeString(text))
}

func (d *Drawing) line(x1, y1, x2, y2 float64, class string) {
	d.Add(`<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" class="%s"/>`, x1, y1, x2, y2, class)
}

// SVG ends the drawing and returns it as an SVG element. label describes the drawing for screen readers.
func (d *Drawing) SVG(label string) template.HTML {
	return template.HTML(fmt.Sprintf(`<svg viewBox="0 0 %.0f %.0f" role="img" aria-label="%s">%s</svg>`,
		d.Width, d.Height, html.EscapeString(label), d.b.String()))
}

// Sizes of the parts of a bar chart, in units of the view box. A chart has a title line for each experiment and a line
// for each path.
const (
	barWidth  = 450.0
	barLetter = 6.0   // for each letter of a path's name
	barValue  = 118.0 // for the number after the longest bar
	BarLine   = 19.0
	barHead   = 24.0
	BarHeight = 12.0
)

// barMetric is a metric that a bar chart shows. value returns the metric of a measure; ok is false if the measure does
// not have it.
type barMetric struct {
	title string
	value func(*Measure) (v float64, text string, ok bool)
}

var barMetrics = []barMetric{
	{"Server CPU per operation", func(m *Measure) (float64, string, bool) {
		if m.CPU == nil {
			return 0, notKnown, false
		}
		return *m.CPU, DurationText(*m.CPU), true
	}},
	{"Latency, median (p99 beside it)", func(m *Measure) (float64, string, bool) {
		return float64(m.Latency.P50), DurationText(float64(m.Latency.P50)) + " (" + DurationText(float64(m.Latency.P99)) + ")", true
	}},
	{"Operations per second", func(m *Measure) (float64, string, bool) { return m.PerSecond, CountText(m.PerSecond), true }},
}

// DurationText formats microseconds with a suitable unit.
func DurationText(us float64) string {
	switch {
	case us < 1000:
		return fmt.Sprintf("%.3g µs", us)
	case us < 1e6:
		return fmt.Sprintf("%.3g ms", us/1e3)
	}
	return fmt.Sprintf("%.3g s", us/1e6)
}

// barCharts draws the measures of a benchmark. It draws one chart for each metric that at least one measure has.
func (r *Report) barCharts(measures []*Measure, colors map[string]int) (list []Chart) {
	for _, metric := range barMetrics {
		longest, found := 0.0, false
		for _, m := range measures {
			v, _, ok := metric.value(m)
			longest, found = max(longest, v), found || ok
		}
		if found {
			list = append(list, Chart{metric.title, r.bars(measures, colors, metric, longest)})
		}
	}
	return list
}

func (r *Report) bars(measures []*Measure, colors map[string]int, metric barMetric, longest float64) template.HTML {
	d := &Drawing{Width: barWidth}
	label := barLetter
	for _, m := range measures {
		label = min(barWidth/2, max(label, barLetter*float64(len(m.Path)+3)))
	}
	y := 0.0
	group := -1
	for _, m := range measures {
		if m.Group != group {
			group = m.Group
			y += barHead
			d.Text(0, y-7, "start", "head", r.groupTitle(m))
		}
		v, text, ok := metric.value(m)
		width := 0.0
		if ok && longest > 0 {
			width = v / longest * (barWidth - label - barValue)
		}
		d.Text(label-6, y+BarHeight-2, "end", "label", m.Path)
		d.Add(`<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="2" class="c%d"><title>%s</title></rect>`,
			label, y, max(1, width), BarHeight, colors[m.Path]%pageColors, html.EscapeString(m.Path+": "+text))
		d.Text(label+width+5, y+BarHeight-2, "start", "value", text)
		y += BarLine
	}
	d.Height = y + 2
	return d.SVG(metric.title)
}

// pageColors is the number of colours in the page's style: c0, c1, ...
const pageColors = 10

// axis maps values to coordinates, either linearly or by the values' logarithms.
type axis struct {
	low, high  float64 // the values at the two ends of the axis
	from, to   float64 // the coordinates of low and high
	logarithms bool
}

func (a axis) at(v float64) float64 {
	low, high := a.low, a.high
	if a.logarithms {
		v, low, high = math.Log10(max(v, a.low)), math.Log10(low), math.Log10(high)
	}
	if high == low {
		return a.from
	}
	return a.from + (v-low)/(high-low)*(a.to-a.from)
}

// ticks returns round values for tick marks along the axis, about n of them.
func (a axis) ticks(n int) (list []float64) {
	if a.logarithms {
		for v := math.Pow(10, math.Ceil(math.Log10(a.low)-1e-9)); v <= a.high*1.0001; v *= 10 {
			list = append(list, v)
		}
		return list
	}
	step := niceStep((a.high - a.low) / float64(n))
	for v := math.Ceil(a.low/step) * step; v <= a.high*1.0001; v += step {
		list = append(list, v)
	}
	return list
}

// niceStep returns the smallest of the numbers 1, 2, 5, 10, 20, 50 ... that is at least v.
func niceStep(v float64) float64 {
	if v <= 0 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, f := range []float64{1, 2, 5} {
		if f*power >= v {
			return f * power
		}
	}
	return 10 * power
}
