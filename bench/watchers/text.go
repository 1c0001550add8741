package watchers

import (
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"time"

	"github.com/crowfoot-db/crowfoot/bench/report"
)

const watchAbout = "Changes are written in an open loop and watched at the same time. Latencies are from the commit, and from when the transaction was due, to the callback. Each row has a key of its own, so that a change which is lost or delivered twice is counted exactly."

// Text writes the result as text for a terminal. The page and the JSON have the details.
func (r *Report) Text(w io.Writer) error {
	t, s := new(report.Summary), r.Settings
	r.Opening(t, "crowfoot bench watch", fmt.Sprintf("%s, %s of at least %d rows, %v each, seed %d, %s", r.Began.Format(time.RFC3339), s.Table, s.Rows, s.Each, s.Seed, s.Load.paceText()))
	t.Blank()
	for _, h := range r.Headlines() {
		t.Add("", h)
	}
	var figures, results []report.Comparison
	for _, f := range r.Figures {
		figures = append(figures, report.Comparison{Name: f.Name, Cells: []string{cmp.Or(f.Published, "-"), f.spreadText(), f.targetText(), f.verdict()}, Verdict: f.verdict()})
	}
	for _, m := range r.Results {
		caught := "-"
		if m.Backlog > 0 && m.CatchUp.Seconds > 0 {
			caught = fmt.Sprintf("%.1f s", m.CatchUp.Seconds)
		}
		results = append(results, report.Comparison{Name: m.Name + ", " + m.Setting + ", " + report.Plural(m.Watching.Watchers, "watcher"), Cells: []string{
			report.CountText(m.perSecond()), fmt.Sprint(m.Delivered), report.DurationText(float64(m.FromCommit.P50)), report.DurationText(float64(m.FromCommit.P99)), caught, m.heldText()}})
	}
	t.Comparisons([]string{"load", "rows/s", "delivered", "p50", "p99", "caught up", ""}, results, t.Room(report.LinesBehindTable)/2)
	t.Blank()
	t.Comparisons([]string{"figure", "study", "ours, over parts of the run", "target", "verdict"}, figures, t.Room(report.LinesBehindTable))
	r.Closing(t, s.Outputs)
	return t.Print(w)
}

// Headlines returns at most one sentence, which compares the CPU time of a poll in studyOfWatching with that of ours.
func (r *Report) Headlines() (list []string) {
	for _, m := range r.Results {
		if m.Published == nil || m.Polls == nil {
			continue
		}
		list = append(list, fmt.Sprintf("On one node of Cloud Spanner a poll under a %s load, %s, took %.3g s of CPU; here it takes %.3g s.", m.Name, m.Setting, m.Published.Poll, m.Polls.CPU))
		break
	}
	return list
}

func (l Load) paceText() string {
	if l.Even {
		return "transactions due at even intervals"
	}
	return "transactions due at random times"
}

// grids returns the tables of the report that are not empty.
func (r *Report) grids() (list []report.Grid) {
	for _, g := range []report.Grid{r.deliveryGrid(), r.latencyGrid(), r.pollGrid(), r.catchUpGrid(), r.figureGrid()} {
		if len(g.Lines) > 1 {
			list = append(list, g)
		}
	}
	return list
}

// setting returns the cells that show the settings of a result in a table.
func (r *Result) setting() []string {
	return []string{r.Name, r.Setting, fmt.Sprintf("%.4g", r.Load.Transactions), fmt.Sprint(r.Load.Mutations), fmt.Sprint(r.Watching.Watchers),
		r.Watching.PollInterval.String(), fmt.Sprint(r.Watching.Limit)}
}

// settingHead returns the titles of the columns that the method setting fills, followed by further titles.
func settingHead(more ...string) []string {
	return append([]string{"load", "setting", "-w", "-m", "-n", "-p", "-l"}, more...)
}

func (r *Report) deliveryGrid() report.Grid {
	g := report.Grid{
		Title: "Delivery",
		Note:  "The lag is since the oldest undelivered change was due, in seconds, when the load was over.",
		Left:  2,
		Lines: [][]string{settingHead("transactions", "changes", "rows/s", "delivered", "lost", "twice", "lag", "held")},
	}
	for _, m := range r.Results {
		g.Lines = append(g.Lines, append(m.setting(), fmt.Sprint(m.Transactions), fmt.Sprint(m.Changes), report.CountText(m.perSecond()), fmt.Sprint(m.Delivered),
			fmt.Sprint(m.Lost), fmt.Sprint(m.Duplicated), fmt.Sprintf("%.1f", m.Lag), m.heldText()))
	}
	return g
}

func (r *Report) latencyGrid() report.Grid {
	g := report.Grid{
		Title: "Latency",
		Note:  "In seconds, from the commit, and from when the transaction was due, to the callback. The published one is what the study says of the time from commit to callback.",
		Left:  2,
		Lines: [][]string{settingHead("commit p50", "p99", "max", "due p50", "p99", "max", "published")},
	}
	for _, m := range r.Results {
		line := m.setting()
		for _, l := range []report.Latency{m.FromCommit, m.FromDue} {
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

func (r *Report) pollGrid() report.Grid {
	g := report.Grid{
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
			fmt.Sprintf("%.4f", p.Latency), report.CountText(p.Rows), report.CountText(p.RowsScanned), fmt.Sprintf("%.3f", p.IndexRows())))
	}
	return g
}

// forgiven returns a note if some watchers polled without a table hint or a shard provider. The note says that such
// polls are fast here, but not on Cloud Spanner. If no watchers did, forgiven returns "".
func (r *Report) forgiven() string {
	for _, m := range r.Results {
		if m.Watching.NoHint || m.Watching.NoShards {
			return " Crowfoot chooses the index without the table hint, and finds the shards that there are without a shard provider, by a skip scan. Cloud Spanner does " +
				"not forgive that: it was published to take 85 s of CPU for a poll without the hint, and 14 s for one without the provider."
		}
	}
	return ""
}

func (r *Report) catchUpGrid() report.Grid {
	g := report.Grid{
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
			line = append(line, fmt.Sprintf("%.1f", m.CatchUp.Seconds), fmt.Sprint(m.CatchUp.Changes), report.CountText(m.CatchUp.PerSecond()), fmt.Sprint(m.CatchUp.Reads), report.CountText(float64(m.CatchUp.Reads)/m.CatchUp.Seconds))
		}
		g.Lines = append(g.Lines, line)
	}
	return g
}

func (r *Report) figureGrid() report.Grid {
	g := report.Grid{
		Title: "Targets",
		Note: "Brackets hold the median over parts of the run with 95%: ten parts of a load, the minutes of the server's statistics, or the most that was held and the least that was not. " +
			"A target is met if the whole interval lies within it, missed if none of it does, and else in the noise; so is one with too few parts for an interval.",
		Left:  1,
		Lines: [][]string{{"figure", "study", "ours", "over parts", "target", "verdict"}},
	}
	for _, f := range r.Figures {
		g.Lines = append(g.Lines, []string{f.Name, f.Published, f.text(f.Ours), f.spreadText(), f.targetText(), f.verdict()})
	}
	return g
}

// watchPageText is the body of the watch benchmark's page. It uses the style and the tables of the page of the other
// benchmarks.
//
//go:embed watchpage.html
var watchPageText string

var watchPageTemplate = template.Must(template.Must(report.PageTemplate.Clone()).New("watch").Parse(watchPageText))

// WritePage writes the report as one self-contained HTML page.
func (r *Report) WritePage(w io.Writer) error {
	return watchPageTemplate.Execute(w, struct {
		*Report
		About string
		Took  string
		Tiles []report.Tile
		Grids []report.Grid
		Bars  []report.Chart
	}{r, watchAbout, r.Took(), r.tiles(), r.grids(), r.histograms()})
}

// tiles returns a tile for each figure.
func (r *Report) tiles() (list []report.Tile) {
	for _, f := range r.Figures {
		list = append(list, report.Tile{Value: f.text(f.Ours), Name: f.Name, Beside: f.beside(), Verdict: f.verdict()})
	}
	return list
}

// beside returns the text that stands below the figure in a tile.
func (f Figure) beside() string {
	text := "target " + f.targetText()
	if f.Published != "" {
		text = "published " + f.Published + ", " + text
	}
	if f.Spread != nil && f.Spread.Turns > 1 {
		text += ", over parts of the run " + f.spreadText()
	}
	return text
}
