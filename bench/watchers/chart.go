package watchers

import (
	"fmt"
	"html"
	"html/template"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/crowfoot-db/crowfoot/bench/report"
)

// Bucket is a bar of a histogram. It counts the changes whose latency was at most To microseconds and above the To of
// the bucket before.
type Bucket struct {
	To    int64 `json:"to_us"`
	Count int64 `json:"count"`
}

// firstBucket is the upper end of the first bucket. The upper end of each further bucket is twice that of the bucket
// before.
const firstBucket = time.Millisecond

// bucketsOf divides latencies into buckets. It leaves out the empty buckets at the beginning and at the end.
func bucketsOf(h *hdrhistogram.Histogram) (list []Bucket) {
	to := firstBucket.Microseconds()
	for _, bar := range h.Distribution() {
		if bar.Count == 0 {
			continue
		}
		for ; bar.From > to; to *= 2 {
			list = append(list, Bucket{To: to})
		}
		if n := len(list); n > 0 && list[n-1].To >= bar.From {
			list[n-1].Count += bar.Count
			continue
		}
		list = append(list, Bucket{to, bar.Count})
		to *= 2
	}
	for len(list) > 1 && list[0].Count == 0 {
		list = list[1:]
	}
	return list
}

// Widths in the chart of a histogram, in units of the view box: of the whole chart, of the labels to the left of the
// bars, and of the values to the right.
const (
	bucketWidth = 450.0
	bucketLabel = 60.0
	bucketValue = 110.0
)

// histograms draws a chart for each result: the histogram of the latency from commit to callback.
func (r *Report) histograms() (list []report.Chart) {
	for _, m := range r.Results {
		if len(m.Histogram) > 0 {
			title := fmt.Sprintf("Commit to callback: %s, %s, -w %.4g -m %d -n %d", m.Name, m.Setting, m.Load.Transactions, m.Load.Mutations, m.Watching.Watchers)
			list = append(list, report.Chart{Title: title, SVG: m.histogram(title)})
		}
	}
	return list
}

func (r *Result) histogram(title string) template.HTML {
	most, all := int64(0), int64(0)
	for _, b := range r.Histogram {
		most, all = max(most, b.Count), all+b.Count
	}
	d := &report.Drawing{Width: bucketWidth, Height: report.BarLine * float64(len(r.Histogram))}
	for i, b := range r.Histogram {
		y := report.BarLine * float64(i)
		width := float64(b.Count) / float64(most) * (bucketWidth - bucketLabel - bucketValue)
		text := fmt.Sprintf("%d (%.2f%%)", b.Count, 100*float64(b.Count)/float64(all))
		d.Text(bucketLabel-6, y+report.BarHeight-2, "end", "label", "≤ "+report.DurationText(float64(b.To)))
		d.Add(`<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="2" class="c0"><title>%s</title></rect>`, bucketLabel, y, max(1, width), report.BarHeight, html.EscapeString(text))
		d.Text(bucketLabel+width+5, y+report.BarHeight-2, "start", "value", text)
	}
	return d.SVG(title)
}
