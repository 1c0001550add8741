package watchers

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/crowfoot-db/crowfoot/bench/harness"
	"github.com/crowfoot-db/crowfoot/bench/report"
)

// Report holds all results of a call of Run. --json writes it.
type Report struct {
	report.Heading
	Settings Settings     `json:"settings"`
	Study    report.Study `json:"study"`
	Results  []*Result    `json:"results"`
	Figures  []Figure     `json:"figures"`
}

// Figure is a quantity with a target, and the value that this run has measured.
type Figure struct {
	Name    string  `json:"name"`
	Ours    float64 `json:"ours"`
	Unit    string  `json:"unit,omitempty"`
	Target  float64 `json:"target"`
	AtLeast bool    `json:"target_is_least,omitempty"` // true if Target is a minimum
	// Published is the published value as text; "" if there is none.
	Published string `json:"published,omitempty"`
	// Spread is the spread of Ours over parts of the run; nil if there is none.
	Spread *report.Spread `json:"spread,omitempty"`
}

func newWatchReport(began time.Time, s Settings, t *harness.Target) *Report {
	return &Report{Heading: report.NewHeading(began, t.Description, t.DatabaseName), Settings: s, Study: studyOfWatching}
}

// complete computes the figures that have targets.
func (r *Report) complete() {
	r.Ended = time.Now().UTC()
	var lost, duplicated int64
	for _, result := range r.Results {
		r.Figures = append(r.Figures, result.targets(r.Settings)...)
		lost, duplicated = lost+result.Lost, duplicated+result.Duplicated
	}
	r.Figures = append(r.Figures, counted("changes lost", lost), counted("changes delivered twice", duplicated))
	if best := r.mostHeld(); r.Settings.Mode == Capacity && best != nil {
		r.Figures = append(r.Figures, Figure{Name: "most rows held", Ours: best.perSecond(), Spread: r.bracket(best), Unit: "rows/s", Target: targetCapacity, AtLeast: true})
	}
	if r.Settings.Mode == Compare && len(r.Results) == 2 {
		r.Figures = append(r.Figures, compareWays(r.Results[0], r.Results[1])...)
	}
}

// counted returns a figure for a number of changes, whose target is 0. A count has no noise, so its interval is the
// value.
func counted(name string, n int64) Figure {
	return Figure{Name: name, Ours: float64(n), Spread: report.Exactly(float64(n))}
}

// mostHeld returns the result with the most rows per second among those in which a single watcher, in the recommended
// way, has kept up with the load (Result.Held). It returns nil if there is no such result.
func (r *Report) mostHeld() (best *Result) {
	for _, m := range r.Results {
		if m.Held && m.Watching.Watchers == 1 && m.Watching.recommended() && (best == nil || m.perSecond() > best.perSecond()) {
			best = m
		}
	}
	return best
}

// bracket returns the interval in which the highest possible rate lies. The interval begins at the rate of best, which
// is the highest rate that the watcher held. It ends at the lowest of the higher rates, none of which the watcher held.
// If the run has tried no higher rate, the interval ends where it begins.
func (r *Report) bracket(best *Result) *report.Spread {
	s := report.Exactly(best.perSecond())
	for _, m := range r.Results {
		if !m.Held && m.perSecond() > s.Low && (s.High == s.Low || m.perSecond() < s.High) {
			s.High, s.Turns = m.perSecond(), 2
		}
	}
	return s
}

func (r *Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

func (f Figure) verdict() string { return report.Judge(f.Spread, f.Target, f.AtLeast) }

// spreadText formats our value, with its interval if there is one.
func (f Figure) spreadText() string {
	if f.Spread == nil || f.Spread.Turns < 2 {
		return f.text(f.Ours)
	}
	return fmt.Sprintf("%s [%.3g, %.3g]", f.text(f.Spread.Median), f.Spread.Low, f.Spread.High)
}

func (f Figure) text(v float64) string {
	text := fmt.Sprintf("%.3g", v)
	if v >= 100 {
		text = fmt.Sprintf("%.0f", v)
	}
	if f.Unit != "" {
		text += " " + f.Unit
	}
	return text
}

func (f Figure) targetText() string {
	if f.AtLeast {
		return "≥ " + f.text(f.Target)
	}
	return "≤ " + f.text(f.Target)
}

// Crowfoot's targets. They are meant for two cores that server, writer and watcher share. The cost of a poll is
// measured in two ways: as its CPU time, and as its number of scanned rows.
const (
	targetPoll     = 0.03  // CPU seconds of a poll, with a poll and 50 transactions of 200 rows every second
	targetCapacity = 40e3  // rows per second that one watcher must hold
	targetCatchUp  = 50e3  // changes per second that one watcher must deliver from a backlog
	targetIndex    = 1.01  // rows of the index that a poll reads for each row that it returns, with a backlog
	targetNoHint   = 1.1   // cost of a poll without the table hint, divided by that of the recommended poll
	targetNoShards = 2.    // cost of a poll without the shard provider, divided by that of the recommended poll
	targetPruned   = 1.5   // in place of targetNoShards, if the watchers also prune the index (Watching.Prune)
	targetStream   = 0.02  // p99 in seconds from commit to callback by a change stream, with 25 × 100 rows every second
	targetRecords  = 100e3 // records per second that must be read from a change stream with streamReaders partitions
	leastBacklog   = 500e3 // smallest backlog, in changes, at which targetCatchUp and targetIndex apply
)

// latencyBeyondPoll is the time, in seconds, by which the p99 from commit to callback may exceed the time between two
// polls.
const latencyBeyondPoll = 0.1

// streamReaders is the number of partitions that the change stream must have so that the target targetRecords applies.
const streamReaders = 16

// targets returns those figures of one result that have targets.
func (r *Result) targets(s Settings) (list []Figure) {
	name := fmt.Sprintf("%s, %s, %s: ", r.Name, r.Setting, report.Plural(r.Watching.Watchers, "watcher"))
	add := func(f Figure) {
		f.Name = name + f.Name
		list = append(list, f)
	}
	var published Published
	if r.Published != nil {
		published = *r.Published
	}
	streams := r.Watching.Source == Stream
	if r.Backlog == 0 && (!streams || r.Load.Transactions == 25 && r.Load.Mutations == 100) {
		target := r.Watching.PollInterval.Seconds() + latencyBeyondPoll
		if streams {
			target = targetStream
		}
		add(Figure{Name: "p99 from commit to callback", Ours: float64(r.FromCommit.P99) / 1e6, Spread: r.Tail, Unit: "s", Target: target, Published: published.Latency})
	}
	if r.Backlog == 0 && r.Polls != nil && r.Published != nil {
		target := published.Poll
		if published.Load == "very high" && r.Watching.Watchers == 1 {
			target = targetPoll
		}
		add(Figure{Name: "CPU of a poll", Ours: r.Polls.CPU, Spread: r.Polls.overMinutes(func(m PollMinute) float64 { return m.CPU }), Unit: "s", Target: target,
			Published: fmt.Sprintf("%.3g s", published.Poll)})
	}
	if r.Backlog >= leastBacklog && r.Watching.Watchers == 1 && r.Watching.recommended() {
		add(Figure{Name: "catching up", Ours: r.CatchUp.PerSecond(), Spread: r.CatchUp.Pace, Unit: "changes/s", Target: targetCatchUp, AtLeast: true})
		if r.Polls != nil {
			ours := r.Polls.IndexRows()
			add(Figure{Name: "index rows read / rows returned", Ours: ours, Spread: report.Exactly(ours), Target: targetIndex})
		}
	}
	if r.Backlog > 0 && streams && r.Watching.Watchers == streamReaders {
		add(Figure{Name: "records read", Ours: float64(r.CatchUp.Reads) / max(r.CatchUp.Seconds, 1e-9), Spread: r.CatchUp.ReadPace, Unit: "records/s", Target: targetRecords, AtLeast: true})
	}
	return list
}

// perSecond returns the number of rows that the load wrote per second.
func (r *Result) perSecond() float64 { return float64(r.Changes) / r.Seconds }

// compareWays returns figures that compare the polls of two results of the same experiment. The parameter best is the
// result of the watchers that watched in the recommended way, and the parameter way is that of the other watchers. If
// these watched in the recommended way, too, or if there are no statistics of the polls, compareWays returns nil.
func compareWays(way, best *Result) (list []Figure) {
	a, b := way.Polls, best.Polls
	if a == nil || b == nil || way.Watching.recommended() {
		return nil
	}
	target := targetNoShards
	switch {
	case !way.Watching.NoShards:
		target = targetNoHint
	case way.Watching.Prune > 0:
		target = targetPruned
	}
	for _, of := range []struct {
		what        string
		left, right float64
		minute      func(PollMinute) float64
	}{
		{"CPU time of a poll", a.CPU, b.CPU, func(m PollMinute) float64 { return m.CPU }},
		{"rows scanned by a poll", a.RowsScanned, b.RowsScanned, func(m PollMinute) float64 { return m.RowsScanned }},
	} {
		if of.right == 0 {
			continue
		}
		var ratios []float64
		for i := range min(len(a.Minutes), len(b.Minutes)) {
			if right := of.minute(b.Minutes[i]); right > 0 {
				ratios = append(ratios, of.minute(a.Minutes[i])/right)
			}
		}
		list = append(list, Figure{Name: way.Setting + " / recommended: " + of.what, Ours: of.left / of.right, Spread: report.SpreadOf(ratios), Unit: "×", Target: target})
	}
	return list
}
