package bench

import (
	"fmt"
	"html"
	"html/template"
	"math"
	"strings"
)

// Geometry of the charts over time.
const (
	timeWidth  = 1000.0
	timeHeight = 150.0
	timeLeft   = 62.0
	timeRight  = 10.0
	timeTop    = 20.0
	timeBottom = 22.0
)

// timeMetric is what a chart over time shows of a moment, one line for each value; the second is fainter.
type timeMetric struct {
	title      string
	logarithms bool
	format     func(float64) string
	values     func(Sample) []float64
}

var timeMetrics = []timeMetric{
	{"Operations per second", false, count, func(s Sample) []float64 { return []float64{s.PerSecond} }},
	{"Server CPU, cores in use", false, func(v float64) string { return ratioText(&v) }, func(s Sample) []float64 {
		if s.Cores == nil {
			return nil
		}
		return []float64{*s.Cores}
	}},
	{"Latency: median, and p99 fainter", true, duration, func(s Sample) []float64 { return []float64{float64(s.P50), float64(s.P99)} }},
}

// timelineCharts draw a benchmark over time, one chart for each metric that anything is known of.
func (r *Report) timelineCharts(benchmark string, colors map[*Measure]int) (list []chart) {
	var samples []Sample
	for _, s := range r.Timeline {
		if r.Measures[s.Measure].Benchmark == benchmark {
			samples = append(samples, s)
		}
	}
	for _, metric := range timeMetrics {
		low, high := math.Inf(1), 0.0
		for _, s := range samples {
			for _, v := range metric.values(s) {
				low, high = min(low, v), max(high, v)
			}
		}
		if high > 0 {
			list = append(list, chart{metric.title, r.overTime(samples, colors, metric, low, high)})
		}
	}
	return list
}

func (r *Report) overTime(samples []Sample, colors map[*Measure]int, metric timeMetric, low, high float64) template.HTML {
	d := &drawing{width: timeWidth, height: timeTop + timeHeight + timeBottom}
	first, last := samples[0], samples[len(samples)-1]
	x := axis{low: first.Seconds - first.Width, high: last.Seconds, from: timeLeft, to: timeWidth - timeRight}
	y := axis{low: 0, high: high, from: timeTop + timeHeight, to: timeTop}
	if metric.logarithms {
		y = axis{low: math.Pow(10, math.Floor(math.Log10(max(low, 1)))), high: math.Pow(10, math.Ceil(math.Log10(high))), from: y.from, to: y.to, logarithms: true}
	}
	r.bands(d, samples, x)
	for _, v := range y.ticks(6) {
		d.line(timeLeft, y.at(v), timeWidth-timeRight, y.at(v), "grid")
		d.text(timeLeft-6, y.at(v)+4, "end", "tick", metric.format(v))
	}
	for _, v := range x.ticks(10) {
		d.text(x.at(v), timeTop+timeHeight+15, "middle", "tick", count(v)+" s")
	}
	r.lines(d, samples, colors, metric, x, y)
	return d.svg(metric.title + " over time")
}

// bands shade every other experiment and name each.
func (r *Report) bands(d *drawing, samples []Sample, x axis) {
	shaded := false
	for i := 0; i < len(samples); {
		m := r.Measures[samples[i].Measure]
		j := i
		for j < len(samples) && r.Measures[samples[j].Measure].group == m.group {
			j++
		}
		from, to := x.at(samples[i].Seconds-samples[i].Width), x.at(samples[j-1].Seconds)
		if shaded {
			d.add(`<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" class="band"/>`, from, timeTop, to-from, timeHeight)
		}
		d.text((from+to)/2, timeTop-6, "middle", "label", fit(r.groupTitle(m), to-from))
		shaded = !shaded
		i = j
	}
}

// fit cuts a text to a width, at about 6 units a letter.
func fit(text string, width float64) string {
	const letter = 6
	n := int(width / letter)
	if r := []rune(text); len(r) > n {
		return string(r[:max(0, n-1)]) + "…"
	}
	return text
}

// lines draw each stretch of one path, first the fainter values.
func (r *Report) lines(d *drawing, samples []Sample, colors map[*Measure]int, metric timeMetric, x, y axis) {
	for i := 0; i < len(samples); {
		j := i
		for j < len(samples) && samples[j].Measure == samples[i].Measure {
			j++
		}
		m := r.Measures[samples[i].Measure]
		for k := len(metric.values(samples[i])) - 1; k >= 0; k-- {
			r.stretch(d, samples[i:j], k, colors[m]%pageColors, m.Path, metric, x, y)
		}
		i = j
	}
}

// stretch draws one value of consecutive samples as steps, each as wide as its time.
func (r *Report) stretch(d *drawing, samples []Sample, k, color int, path string, metric timeMetric, x, y axis) {
	class := "line"
	if k > 0 {
		class = "line faint"
	}
	var points, values strings.Builder
	for i, s := range samples {
		v := metric.values(s)
		if k >= len(v) {
			return
		}
		command := "L"
		if i == 0 {
			command = "M"
		}
		fmt.Fprintf(&points, "%s%.1f %.1fL%.1f %.1f", command, x.at(s.Seconds-s.Width), y.at(v[k]), x.at(s.Seconds), y.at(v[k]))
		values.WriteString(" " + metric.format(v[k]))
	}
	d.add(`<path d="%s" class="%s s%d"><title>%s</title></path>`, points.String(), class, color, html.EscapeString(path+":"+values.String()))
}
