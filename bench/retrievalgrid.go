package bench

import "fmt"

// retrievalGrid is what a benchmark whose operations are whole tables shows of a row: what is compared in the study. Other benchmarks have none.
func (r *Report) retrievalGrid(benchmark string) grid {
	if benchmark != retrievalName {
		return grid{}
	}
	g := grid{
		Title: "Rows per second",
		Note: "CPU is the process's time for a row, in us, of the server and of this program with its client. MB/s are of the rows as text, in TPC-H's own format. " +
			"The study's figures are of its own machine, with rows in objects of its own program.",
		Left:  1,
		Lines: [][]string{{"way", "rows/s", "MB/s", "server CPU", "client CPU", "both"}},
	}
	group := -1
	for _, m := range r.of(benchmark) {
		if m.group != group {
			group = m.group
			g.Lines = append(g.Lines, []string{m.Title})
		}
		perRow := func(us *float64) *float64 {
			if us == nil {
				return nil
			}
			v := *us * float64(m.Operations) / float64(m.Rows)
			return &v
		}
		server, client := perRow(m.CPU), perRow(m.ClientCPU)
		g.Lines = append(g.Lines, []string{m.Path, count(m.RowsPerSecond), fmt.Sprintf("%.0f", m.RowsPerSecond*r.rowBytes/1e6), cpuText(server), cpuText(client), cpuText(sum(server, client))})
	}
	if len(r.published) > 0 {
		g.Lines = append(g.Lines, []string{"the study"})
	}
	for _, p := range r.published {
		g.Lines = append(g.Lines, []string{p.way, count(p.rows), fmt.Sprintf("%.0f", p.rows*r.rowBytes/1e6), "-", "-", "-"})
	}
	return g
}

func cpuText(us *float64) string {
	if us == nil {
		return "-"
	}
	return fmt.Sprintf("%.2f", *us)
}

// sum adds two times; nil if one is unknown.
func sum(a, b *float64) *float64 {
	if a == nil || b == nil {
		return nil
	}
	v := *a + *b
	return &v
}
