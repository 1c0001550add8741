package retrieval

import (
	"fmt"
	"slices"
	"strings"

	"github.com/crowfoot-db/crowfoot/bench/report"
)

// grid returns the table of rows per second. It compares the benchmark's paths with each other and with the published
// study (figures.go).
func (b *retrieval) grid(r *report.Report) report.Grid {
	g := report.Grid{
		Title: "Rows per second",
		Note: "MB/s are of the rows as text, in TPC-H's own format. CPU is the process's time for a row, in us, of the server and of the client, which is this program or, for libraries of other languages, " +
			"a process of its own. / text is the rows per second beside those of the text file by our own cursor with as many readers, and in the study's lines beside its text file; " +
			"/ 1 reader is beside the same way by one reader. Codec is how rows are coded, and compressed, where they come from; columnar copy says whether the server may read one. The study's figures are of its own machine, with rows in objects of its own program.",
		Left:  3,
		Lines: [][]string{{"way", "codec", "columnar copy", "rows/s", "MB/s", "/ text", "/ 1 reader", "study rows/s", "study / text", "server CPU", "client CPU", "both"}},
	}
	group := -1
	for _, m := range r.MeasuresOf(retrievalName) {
		if m.Group != group {
			group = m.Group
			g.Lines = append(g.Lines, []string{m.Title})
		}
		g.Lines = append(g.Lines, slices.Concat(b.speedCells(m.Path, m.Codec, m.Copy, m.RowsPerSecond, besideText(r, m), besideOne(r, m)), b.studyCells(m), rowCPUCells(m)))
	}
	for _, m := range r.Measures {
		if m.Benchmark == retrievalName && m.Failed != "" {
			g.Below = append(g.Below, m.Title+", "+m.Path+" failed: "+m.Failed)
		}
	}
	if len(b.published) > 0 {
		g.Lines = append(g.Lines, []string{"the study"})
	}
	for _, p := range b.published {
		beside := report.Ratio(p.perSecond(), publishedText(b.published))
		g.Lines = append(g.Lines, append(b.speedCells(p.way, "", "", p.perSecond(), beside, report.IfPublished(p.readers)), "-", "-", "-", "-", "-"))
	}
	return g
}

// speedCells returns the first seven cells of a line: from the column "way" to the column "/ 1 reader".
func (b *retrieval) speedCells(way, codec, columnarCopy string, perSecond float64, besideText, besideOne *float64) []string {
	return []string{way, codec, columnarCopy, report.CountText(perSecond), fmt.Sprintf("%.0f", perSecond*b.rowBytes/1e6), report.RatioText(besideText), report.RatioText(besideOne)}
}

// studyCells returns two cells with the study's figures for the same way of reading as the measure m: the rows per
// second, and the ratio of this number to the rows per second of a text file. The cells are "-" if the study has no
// such figures.
func (b *retrieval) studyCells(m *report.Measure) []string {
	p := publishedOf(b.published, report.RefTo(m.Experiment, m.Path))
	if p == nil {
		return []string{"-", "-"}
	}
	return []string{report.CountText(p.perSecond()), report.RatioText(report.Ratio(p.perSecond(), publishedText(b.published)))}
}

// besideText returns the measure's rows per second divided by the rows per second of the text file in the same
// experiment. It returns nil for the text file itself, and if the text file was not measured.
func besideText(r *report.Report, m *report.Measure) *float64 {
	for _, other := range r.MeasuresOf(m.Benchmark) {
		if other.Group == m.Group && other != m && (other.Path == textTitle || other.Path == overText) {
			return report.Ratio(m.RowsPerSecond, other.RowsPerSecond)
		}
	}
	return nil
}

// besideOne divides the rows per second that several readers read on a path by the rows per second that a single reader
// reads on the same path. It returns nil if m is not a measure of several readers, or if the run has not measured a
// single reader.
func besideOne(r *report.Report, m *report.Measure) *float64 {
	for _, other := range r.MeasuresOf(m.Benchmark) {
		if m.Parallel && other.Path == m.Path && other.Experiment == readers(1) {
			return report.Ratio(m.RowsPerSecond, other.RowsPerSecond)
		}
	}
	return nil
}

// publishedText returns the published rows per second for a text file, or 0 if there are none.
func publishedText(list []publishedRetrieval) float64 {
	for _, p := range list {
		if strings.HasPrefix(p.way, studyText) {
			return p.perSecond()
		}
	}
	return 0
}

// rowCPUCells returns three cells with CPU times per row: the server's, the client's, and the sum of both.
func rowCPUCells(m *report.Measure) []string {
	perRow := func(us *float64) *float64 {
		if us == nil {
			return nil
		}
		v := *us * float64(m.Operations) / float64(m.Rows)
		return &v
	}
	server, client := perRow(m.CPU), perRow(m.ClientCPU)
	return []string{report.RatioText(server), report.RatioText(client), report.RatioText(sum(server, client))}
}

// sum returns the sum of two CPU times. It returns nil if one of them is unknown.
func sum(a, b *float64) *float64 {
	if a == nil || b == nil {
		return nil
	}
	v := *a + *b
	return &v
}
