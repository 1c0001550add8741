package bench

import (
	"fmt"
	"time"
)

const (
	// statusEvery is how often the status is drawn on a terminal, and lineEvery how often a line tells of it elsewhere.
	statusEvery = 500 * time.Millisecond
	lineEvery   = 10 * time.Second
)

// show draws the status of a run: one line for each way of watching if that is asked for or there is no terminal, else a picture.
func (w *watchRun) show(e watchExperiment, sides []*side, now time.Time) {
	every := lineEvery
	if w.screen.live {
		every = statusEvery
	}
	if now.Sub(w.shown) < every {
		return
	}
	w.shown = now
	var lines []string
	for _, s := range sides {
		status := s.status(e, now)
		if w.Simple || !w.screen.live {
			lines = append(lines, status.line())
		} else {
			lines = append(lines, status.picture()...)
		}
	}
	w.screen.status(lines)
}

// status replaces the last one on a terminal, and is added elsewhere.
func (s *screen) status(lines []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.live {
		s.draw(lines)
		return
	}
	for _, l := range lines {
		fmt.Fprintln(s.out, l)
	}
}

// watchStatus is how a side does at a moment.
type watchStatus struct {
	standing
	title             string
	passed, lasts     time.Duration
	p50, p99, max     int64 // microseconds from commit to callback
	duplicated, reads int64
	readTime          time.Duration // of all reads
	failing           string        // why a watcher is not running; "" if all are
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
				status.failing = oneLine(f.Err)
			}
		}
	}
	return status
}

// read is the mean time of a read.
func (s watchStatus) read() time.Duration { return s.readTime / time.Duration(max(s.reads, 1)) }

func (s watchStatus) line() string {
	text := fmt.Sprintf("%s %v of %v: %d tx, %d rows, %d changes, %d behind, lag %.1f s, p99 %.3f s, read %.4f s (%d)", s.title, s.passed.Round(time.Second), s.lasts,
		s.transactions, s.committed, s.delivered, s.behind(), s.lag.Seconds(), float64(s.p99)/1e6, s.read().Seconds(), s.reads)
	if s.failing != "" {
		text += "; " + s.failing
	}
	return text
}

func (s watchStatus) picture() []string {
	share := float64(s.passed) / float64(s.lasts)
	lines := []string{
		fmt.Sprintf("%s  %s %v of %v", s.title, bar(share), s.passed.Round(time.Second), s.lasts),
		fmt.Sprintf("  transactions   %12d", s.transactions),
		fmt.Sprintf("  changes        %12d    delivered %d, behind %d, twice %d", s.committed, s.delivered, s.behind(), s.duplicated),
		fmt.Sprintf("  to callback    p50 %s  p99 %s  max %s ms", milliseconds(s.p50), milliseconds(s.p99), milliseconds(s.max)),
		fmt.Sprintf("  lag            %10.1f s", s.lag.Seconds()),
		fmt.Sprintf("  average read   %10.4f s    of %d", s.read().Seconds(), s.reads),
	}
	if s.failing != "" {
		lines = append(lines, "  "+s.failing)
	}
	return lines
}
