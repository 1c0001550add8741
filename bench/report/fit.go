package report

import "fmt"

// Fit is the straight line that best fits a path's mean latencies as a function of the size, by least squares. The size
// is the number of rows in a commit, or of its DML statements.
type Fit struct {
	Benchmark string    `json:"benchmark"`
	Path      string    `json:"path"`
	Clients   int       `json:"clients"`
	Sizes     []int     `json:"sizes"`      // rows of a commit, or its DML statements
	Means     []float64 `json:"mean_us"`    // mean latency at each size
	PerRow    float64   `json:"per_row_us"` // the slope: the cost of one more row
	AtNone    float64   `json:"at_none_us"` // the latency where the line meets size 0
	// R2 is the coefficient of determination, which is 1 if all points lie on the line. It is nil with fewer than
	// three sizes, because two points always lie on a line.
	R2 *float64 `json:"r2,omitempty"`
}

// fits returns the fitted lines of all paths that were measured at two or more sizes.
func fits(measures []*Measure) (list []Fit) {
	type key struct {
		benchmark, path string
		clients         int
	}
	at := map[key]int{}
	for _, m := range measures {
		if m.Size == 0 || m.Operations == 0 {
			continue
		}
		k := key{m.Benchmark, m.Path, m.Clients}
		if _, ok := at[k]; !ok {
			at[k] = len(list)
			list = append(list, Fit{Benchmark: m.Benchmark, Path: m.Path, Clients: m.Clients})
		}
		f := &list[at[k]]
		f.Sizes, f.Means = append(f.Sizes, m.Size), append(f.Means, m.Latency.Mean)
	}
	several := list[:0]
	for _, f := range list {
		if f.solve() {
			several = append(several, f)
		}
	}
	return several
}

// solve computes the line through the points. It returns false if there is only one size.
func (f *Fit) solve() bool {
	n := float64(len(f.Sizes))
	var meanX, meanY float64
	for i, size := range f.Sizes {
		meanX, meanY = meanX+float64(size)/n, meanY+f.Means[i]/n
	}
	var xx, xy, yy float64
	for i, size := range f.Sizes {
		dx, dy := float64(size)-meanX, f.Means[i]-meanY
		xx, xy, yy = xx+dx*dx, xy+dx*dy, yy+dy*dy
	}
	if xx == 0 {
		return false
	}
	f.PerRow = xy / xx
	f.AtNone = meanY - f.PerRow*meanX
	if len(f.Sizes) > 2 && yy > 0 {
		r2 := xy * xy / (xx * yy)
		f.R2 = &r2
	}
	return true
}

// linearity formats R2.
func (f Fit) linearity() string {
	if f.R2 == nil {
		return "two sizes only"
	}
	return fmt.Sprintf("%.4f", *f.R2)
}
