package watchers

import (
	"fmt"
	"time"

	"github.com/crowfoot-db/crowfoot/bench/harness"
	"github.com/crowfoot-db/crowfoot/bench/report"
)

const (
	// statusEvery is the time between two updates of the status on a terminal. lineEvery is the time between two
	// status lines on other outputs.
	statusEvery = 500 * time.Millisecond
	lineEvery   = 10 * time.Second
)

// show shows the status of a run, if it is time for the next update. Each side gets a picture of several lines, or only
// one line if the setting Simple is true or the output is no terminal.
func (w *watchRun) show(e watchExperiment, sides []*side, now time.Time) {
	every := lineEvery
	if w.screen.Live {
		every = statusEvery
	}
	if now.Sub(w.shown) < every {
		return
	}
	w.shown = now
	var lines []string
	for _, s := range sides {
		status := s.status(e, now)
		if w.Simple || !w.screen.Live {
			lines = append(lines, status.line())
		} else {
			lines = append(lines, status.picture()...)
		}
	}
	w.screen.Status(lines)
}

// watchStatus is the status of a side at a moment, for the screen.
type watchStatus struct {
	standing
	title             string
	passed, lasts     time.Duration
	p50, p99, max     int64 // latencies from commit to callback, in microseconds
	duplicated, reads int64
	readTime          time.Duration // total time of all reads
	failing           string        // the error of a watcher that has failed; "" if all watchers are running
}

func (s *side) status(e watchExperiment, now time.Time) watchStatus {
	status := watchStatus{standing: s.standing(now), title: e.name + ", " + s.text(), passed: now.Sub(s.began), lasts: e.lasts}
	s.mu.Lock()
	status.p50, status.p99, status.max = s.fromCommit.ValueAtQuantile(50), s.fromCommit.ValueAtQuantile(99), s.fromCommit.Max()
	status.duplicated = s.duplicated
	s.mu.Unlock()
	status.reads, status.readTime = s.reads()
	for _, watcher := range s.watchers {
		for _, f := range watcher.Health().Feeds {
			if f.Err != nil {
				status.failing = report.OneLine(f.Err)
			}
		}
	}
	return status
}

// read returns the mean time of a read.
func (s watchStatus) read() time.Duration { return s.readTime / time.Duration(max(s.reads, 1)) }

// to formats a latency from commit to callback, given in microseconds.
func (s watchStatus) to(us int64) string {
	if s.delivered == 0 {
		return "-"
	}
	return fmt.Sprintf("%.3f s", float64(us)/1e6)
}

// readText formats the mean time that a read takes.
func (s watchStatus) readText() string {
	if s.reads == 0 {
		return "-"
	}
	return fmt.Sprintf("%.4f s", s.read().Seconds())
}

// clock formats how much of the load's time is over.
func (s watchStatus) clock() string {
	return fmt.Sprintf("%.0f of %.0f s", min(s.passed, s.lasts).Seconds(), s.lasts.Seconds())
}

func (s watchStatus) line() string {
	text := fmt.Sprintf("%s, %s: %d transactions, %d changes, %d delivered, %d behind, lag %.1f s, p99 to callback %s, average read %s", s.title, s.clock(),
		s.transactions, s.committed, s.delivered, s.behind(), s.lag.Seconds(), s.to(s.p99), s.readText())
	if s.failing != "" {
		text += "; " + s.failing
	}
	return text
}

func (s watchStatus) picture() []string {
	lines := []string{
		fmt.Sprintf("%s  %s %s", s.title, harness.Bar(float64(s.passed)/float64(s.lasts)), s.clock()),
		fmt.Sprintf("  transactions   %12d", s.transactions),
		fmt.Sprintf("  changes        %12d    behind %d, twice %d", s.committed, s.behind(), s.duplicated),
		fmt.Sprintf("  delivered      %12d    lag %.1f s", s.delivered, s.lag.Seconds()),
		fmt.Sprintf("  to callback    %12s    p99 %s, max %s", s.to(s.p50), s.to(s.p99), s.to(s.max)),
		fmt.Sprintf("  average read   %12s    of %d", s.readText(), s.reads),
	}
	if s.failing != "" {
		lines = append(lines, "  "+s.failing)
	}
	return lines
}
