package bench

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
)

const watchAbout = "Changes are written in an open loop and watched at the same time. Latencies are from the commit, and from when the transaction was due, to the callback. Each row has a key of its own, so that a change which is lost or delivered twice is counted exactly."

// Text prints the report for a terminal.
func (r *WatchReport) Text(w io.Writer) error {
	t := &table{w: w}
	s := r.Settings
	r.print(t, "crowfoot bench watch", fmt.Sprintf("%s of at least %d rows, %v each, seed %d, %s", s.Table, s.Rows, s.Each, s.Seed, s.Load.paceText()))
	t.printf("\n%s\n", wrap(watchAbout, textWidth))
	t.printf("the study: %s\n", r.Study.text())
	for _, g := range r.grids() {
		t.printf("\n%s\n", g.Title)
		if g.Note != "" {
			t.printf("%s\n", wrap(g.Note, textWidth))
		}
		t.grid(g)
	}
	for _, o := range []struct{ what, file string }{{"page", r.Settings.Report}, {"figures", r.Settings.JSON}} {
		if o.file != "" {
			t.printf("\n%s: %s\n", o.what, o.file)
		}
	}
	return t.err
}

func (l Load) paceText() string {
	if l.Even {
		return "transactions due at even intervals"
	}
	return "transactions due at random times"
}

// grids are the tables of the report, without empty ones.
func (r *WatchReport) grids() (list []grid) {
	for _, g := range []grid{r.deliveryGrid(), r.latencyGrid(), r.pollGrid(), r.catchUpGrid(), r.figureGrid()} {
		if len(g.Lines) > 1 {
			list = append(list, g)
		}
	}
	return list
}

// setting names a result in a table.
func (r *WatchResult) setting() []string {
	return []string{r.Name, r.Setting, fmt.Sprintf("%.4g", r.Load.Transactions), fmt.Sprint(r.Load.Mutations), fmt.Sprint(r.Watching.Watchers),
		r.Watching.PollInterval.String(), fmt.Sprint(r.Watching.Limit)}
}

// settingHead are the columns of setting, before those of a table.
func settingHead(more ...string) []string {
	return append([]string{"load", "setting", "-w", "-m", "-n", "-p", "-l"}, more...)
}

func (r *WatchReport) deliveryGrid() grid {
	g := grid{
		Title: "Delivery",
		Note:  "The lag is since the oldest undelivered change was due, in seconds, when the load was over.",
		Left:  2,
		Lines: [][]string{settingHead("transactions", "changes", "rows/s", "delivered", "lost", "twice", "lag", "held")},
	}
	for _, m := range r.Results {
		g.Lines = append(g.Lines, append(m.setting(), fmt.Sprint(m.Transactions), fmt.Sprint(m.Changes), count(m.perSecond()), fmt.Sprint(m.Delivered),
			fmt.Sprint(m.Lost), fmt.Sprint(m.Duplicated), fmt.Sprintf("%.1f", m.Lag), m.heldText()))
	}
	return g
}

func (r *WatchReport) latencyGrid() grid {
	g := grid{
		Title: "Latency",
		Note:  "In seconds, from the commit, and from when the transaction was due, to the callback. The published one is what the study says of the time from commit to callback.",
		Left:  2,
		Lines: [][]string{settingHead("commit p50", "p99", "max", "due p50", "p99", "max", "published")},
	}
	for _, m := range r.Results {
		line := m.setting()
		for _, l := range []Latency{m.FromCommit, m.FromDue} {
			for _, v := range []int64{l.P50, l.P99, l.Max} {
				line = append(line, fmt.Sprintf("%.3f", float64(v)/1e6))
			}
		}
		published := "-"
		if m.Published != nil {
			published = m.Published.Latency
		}
		g.Lines = append(g.Lines, append(line, published))
	}
	return g
}

func (r *WatchReport) pollGrid() grid {
	g := grid{
		Title: "Polls, by SPANNER_SYS.QUERY_STATS_TOP_MINUTE",
		Note: "The average poll is its CPU time in seconds, and CPU that of all polls as a share of one core, as the Java application works them out. " +
			"The rows scanned are of index and table." + r.forgiven(),
		Left:  2,
		Lines: [][]string{settingHead("polls", "avg poll", "published", "CPU %", "published", "latency s", "rows", "scanned", "index rows / row")},
	}
	for _, m := range r.Results {
		if m.Polls == nil {
			continue
		}
		p, poll, cpu := m.Polls, "-", "-"
		if m.Published != nil {
			poll, cpu = fmt.Sprintf("%.4f", m.Published.Poll), fmt.Sprintf("%.0f", m.Published.CPU)
		}
		g.Lines = append(g.Lines, append(m.setting(), fmt.Sprint(p.Polls), fmt.Sprintf("%.4f", p.CPU), poll, fmt.Sprintf("%.1f", 100*p.Share(m.watched)), cpu,
			fmt.Sprintf("%.4f", p.Latency), count(p.Rows), count(p.RowsScanned), fmt.Sprintf("%.3f", p.IndexRows())))
	}
	return g
}

// forgiven is for a reader who sees polls without a hint or a shard provider do well here.
func (r *WatchReport) forgiven() string {
	for _, m := range r.Results {
		if m.Watching.NoHint || m.Watching.NoShards {
			return " Crowfoot chooses the index without the table hint, and finds the shards that there are without a shard provider, by a skip scan. Cloud Spanner does " +
				"not forgive that: it was published to take 85 s of CPU for a poll without the hint, and 14 s for one without the provider."
		}
	}
	return ""
}

func (r *WatchReport) catchUpGrid() grid {
	g := grid{
		Title: "Catching up",
		Note:  "Until the oldest undelivered change is as young as the poll interval allows. Reads are queries, or records of a change stream.",
		Left:  2,
		Lines: [][]string{settingHead("backlog", "seconds", "changes", "changes/s", "reads", "reads/s")},
	}
	for _, m := range r.Results {
		if m.Backlog == 0 {
			continue
		}
		line := append(m.setting(), fmt.Sprint(m.Backlog))
		if m.CatchUp.Seconds == 0 {
			line = append(line, "never", "-", "-", "-", "-")
		} else {
			line = append(line, fmt.Sprintf("%.1f", m.CatchUp.Seconds), fmt.Sprint(m.CatchUp.Changes), count(m.CatchUp.PerSecond()), fmt.Sprint(m.CatchUp.Reads), count(float64(m.CatchUp.Reads)/m.CatchUp.Seconds))
		}
		g.Lines = append(g.Lines, line)
	}
	return g
}

func (r *WatchReport) figureGrid() grid {
	g := grid{Title: "Targets", Left: 1, Lines: [][]string{{"figure", "ours", "target", "verdict"}}}
	for _, f := range r.Figures {
		g.Lines = append(g.Lines, []string{f.Name, f.text(f.Ours), f.targetText(), f.verdict()})
	}
	return g
}

// watchPageText is the body of the page of watching. Its style and tables are those of the other benchmarks' page.
//
//go:embed watchpage.html
var watchPageText string

var watchPageTemplate = template.Must(template.Must(pageTemplate.Clone()).New("watch").Parse(watchPageText))

// writePage writes one self-contained HTML page.
func (r *WatchReport) writePage(w io.Writer) error {
	return watchPageTemplate.Execute(w, struct {
		*WatchReport
		About string
		Took  string
		Tiles []tile
		Grids []grid
		Bars  []chart
	}{r, watchAbout, r.took(), r.tiles(), r.grids(), r.histograms()})
}

// tiles are the figures that have targets.
func (r *WatchReport) tiles() (list []tile) {
	for _, f := range r.Figures {
		list = append(list, tile{f.text(f.Ours), f.Name, "target " + f.targetText(), f.verdict()})
	}
	return list
}
