package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// WatchReport holds all results of a run of Watch. --json writes it.
type WatchReport struct {
	Heading
	Settings WatchSettings  `json:"settings"`
	Study    Study          `json:"study"`
	Results  []*WatchResult `json:"results"`
	Figures  []WatchFigure  `json:"figures"`
}

// WatchFigure is a target with what this run has measured.
type WatchFigure struct {
	Name    string  `json:"name"`
	Ours    float64 `json:"ours"`
	Unit    string  `json:"unit,omitempty"`
	Target  float64 `json:"target"`
	AtLeast bool    `json:"target_is_least,omitempty"` // else at most
}

func newWatchReport(began time.Time, s WatchSettings, t *target) *WatchReport {
	return &WatchReport{Heading: newHeading(began, t), Settings: s, Study: studyOfWatching}
}

// complete works out the figures that have targets.
func (r *WatchReport) complete() {
	r.Ended = time.Now().UTC()
	var lost, duplicated int64
	for _, result := range r.Results {
		r.Figures = append(r.Figures, result.targets(r.Settings)...)
		lost, duplicated = lost+result.Lost, duplicated+result.Duplicated
	}
	r.Figures = append(r.Figures, WatchFigure{Name: "changes lost", Ours: float64(lost)}, WatchFigure{Name: "changes delivered twice", Ours: float64(duplicated)})
	if best := r.mostHeld(); r.Settings.Mode == WatchCapacity && best != nil {
		r.Figures = append(r.Figures, WatchFigure{Name: "most rows held", Ours: best.perSecond(), Unit: "rows/s", Target: targetCapacity, AtLeast: true})
	}
	if r.Settings.Mode == WatchCompare && len(r.Results) == 2 {
		r.Figures = append(r.Figures, compareWays(r.Results[0], r.Results[1])...)
	}
}

// mostHeld is the result with the most rows per second that one watcher has held in the recommended way; nil if there is none.
func (r *WatchReport) mostHeld() (best *WatchResult) {
	for _, m := range r.Results {
		if m.Held && m.Watching.Watchers == 1 && m.Watching.recommended() && (best == nil || m.perSecond() > best.perSecond()) {
			best = m
		}
	}
	return best
}

func (r *WatchReport) writeJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

func (f WatchFigure) verdict() string {
	if f.Ours == f.Target || f.Ours < f.Target == !f.AtLeast {
		return met
	}
	return missed
}

func (f WatchFigure) text(v float64) string {
	text := fmt.Sprintf("%.3g", v)
	if v >= 100 {
		text = fmt.Sprintf("%.0f", v)
	}
	if f.Unit != "" {
		text += " " + f.Unit
	}
	return text
}

func (f WatchFigure) targetText() string {
	if f.AtLeast {
		return "≥ " + f.text(f.Target)
	}
	return "≤ " + f.text(f.Target)
}

// What Crowfoot wants to reach, on two cores that server, writer and watcher share.
const (
	targetLatency  = 1.1   // seconds from commit to callback at -w 50 -m 200, p99, with a poll a second
	targetPoll     = 0.03  // seconds of CPU of such a poll
	targetCapacity = 40e3  // rows per second that one watcher holds
	targetCatchUp  = 50e3  // changes per second that one watcher delivers from a backlog
	targetIndex    = 1.01  // rows of the index read for each row returned, with a backlog
	targetNoHint   = 1.1   // a poll without the table hint against the recommended one
	targetNoShards = 2.    // likewise, without the shard provider
	targetPruned   = 1.5   // likewise, on an index that is pruned
	targetStream   = 0.02  // seconds from commit to callback by a change stream at -w 25 -m 100, p99
	targetRecords  = 100e3 // records per second of a change stream with streamReaders partitions
	leastBacklog   = 500e3 // changes that wait, from which targetCatchUp and targetIndex apply
)

// streamReaders is the number of partitions at which targetRecords applies.
const streamReaders = 16

// targets are the figures of one result that have targets of their own.
func (r *WatchResult) targets(s WatchSettings) (list []WatchFigure) {
	name := r.Name + ", " + r.Setting
	add := func(what string, ours float64, unit string, target float64, atLeast bool) {
		list = append(list, WatchFigure{name + ": " + what, ours, unit, target, atLeast})
	}
	one := r.Watching.Watchers == 1 && r.Watching.recommended()
	switch {
	case r.Backlog >= leastBacklog && one:
		add("catching up", r.CatchUp.PerSecond(), "changes/s", targetCatchUp, true)
		if r.Polls != nil {
			add("index rows read / rows returned", r.Polls.IndexRows(), "", targetIndex, false)
		}
	case r.Backlog == 0 && one && r.Published != nil && r.Published.Load == "very high":
		add("p99 from commit to callback", float64(r.FromCommit.P99)/1e6, "s", targetLatency, false)
		if r.Polls != nil {
			add("average poll", r.Polls.CPU, "s", targetPoll, false)
		}
	}
	if r.Watching.Source == Stream {
		switch {
		case r.Backlog > 0 && r.Watching.Watchers == streamReaders:
			add("records read", float64(r.CatchUp.Reads)/max(r.CatchUp.Seconds, 1e-9), "records/s", targetRecords, true)
		case r.Backlog == 0 && r.Load.Transactions == 25 && r.Load.Mutations == 100:
			add("p99 from commit to callback", float64(r.FromCommit.P99)/1e6, "s", targetStream, false)
		}
	}
	return list
}

// perSecond is how many rows the load wrote a second.
func (r *WatchResult) perSecond() float64 { return float64(r.Changes) / r.Seconds }

// compareWays sets the polls of a way beside those of the recommended one.
func compareWays(way, best *WatchResult) (list []WatchFigure) {
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
	}{{"CPU time of a poll", a.CPU, b.CPU}, {"rows scanned by a poll", a.RowsScanned, b.RowsScanned}} {
		if of.right > 0 {
			list = append(list, WatchFigure{Name: way.Setting + " / recommended: " + of.what, Ours: of.left / of.right, Unit: "×", Target: target})
		}
	}
	return list
}
