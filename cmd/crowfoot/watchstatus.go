package main

import (
	"cmp"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/crowfoot-db/crowfoot/watch"
)

// watchScreen shows a status line below the output, if standard error is a terminal.
type watchScreen struct {
	mu          sync.Mutex
	out, err    io.Writer
	live        bool // err is a terminal
	outTerminal bool // out is a terminal too, so the status line must be cleared before output
	drawn       bool // the status line is on the screen
}

func newWatchScreen(out, err *os.File) *watchScreen {
	return &watchScreen{out: out, err: err, live: progressOf(err) != io.Discard, outTerminal: progressOf(out) != io.Discard}
}

// stdout returns a writer to standard output that clears the status line before it writes.
func (s *watchScreen) stdout() io.Writer {
	if s.live && s.outTerminal {
		return aboveStatus{s, s.out}
	}
	return s.out
}

// stderr returns a writer to standard error that clears the status line before it writes.
func (s *watchScreen) stderr() io.Writer {
	if s.live {
		return aboveStatus{s, s.err}
	}
	return s.err
}

// aboveStatus is a writer that clears the status line before each write.
type aboveStatus struct {
	screen *watchScreen
	to     io.Writer
}

func (a aboveStatus) Write(b []byte) (int, error) {
	a.screen.mu.Lock()
	defer a.screen.mu.Unlock()
	a.screen.clear()
	return a.to.Write(b)
}

func (s *watchScreen) clear() {
	if s.drawn {
		fmt.Fprint(s.err, "\r\x1b[K")
		s.drawn = false
	}
}

// draw shows a text as the status line, in place of the previous one. The terminal cuts off what is wider than the
// terminal.
func (s *watchScreen) draw(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear()
	fmt.Fprintf(s.err, "\x1b[?7l%s\x1b[?7h", line)
	s.drawn = true
}

// statusInterval is the time between two updates of the status line.
const statusInterval = time.Second

// follow shows the status of a watcher. The caller must call stop.
func (s *watchScreen) follow(w *watch.Watcher, server *connectivity) (stop func()) {
	if !s.live {
		return func() {}
	}
	ended := make(chan struct{})
	var drawing sync.WaitGroup
	drawing.Go(func() {
		ticks := time.NewTicker(statusInterval)
		defer ticks.Stop()
		for changes := int64(0); ; {
			select {
			case <-ticks.C:
				now := changesOf(w.Metrics())
				s.draw(statusLine(w.Health(), server, now, now-changes))
				changes = now
			case <-ended:
				return
			}
		}
	})
	return func() {
		close(ended)
		drawing.Wait()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.clear()
	}
}

func changesOf(feeds []watch.FeedMetrics) (total int64) {
	for _, f := range feeds {
		total += f.Changes
	}
	return total
}

// statusLine formats the status of a watcher: "1200 changes, 200/s, lag 0.4s, 3 tables". It also lists the feeds that
// do not run, with the reason.
func statusLine(h watch.Health, server *connectivity, changes, perSecond int64) string {
	if !h.Listed {
		return cmp.Or(server.String(), "waiting for "+server.server)
	}
	var lag time.Duration
	var wrong []string
	for _, f := range h.Feeds {
		lag = max(lag, f.Lag)
		if f.State != watch.Running && f.State != watch.Starting {
			wrong = append(wrong, strings.TrimSuffix(fmt.Sprintf("; %s %s: %v", f.Feed, strings.ToLower(f.State.String()), f.Err), ": <nil>"))
		}
	}
	tables := fmt.Sprintf("%d tables", len(h.Feeds))
	if len(h.Feeds) == 1 {
		tables = h.Feeds[0].Feed.String()
	}
	line := fmt.Sprintf("%d changes, %d/s, lag %.1fs, %s%s", changes, perSecond, lag.Seconds(), tables, strings.Join(wrong, ""))
	return strings.Join(strings.Fields(line), " ")
}

const (
	// lateInterval is how often the lag of a watcher is checked.
	lateInterval = 5 * time.Second
	// lateLimit is the lag from which a watcher is late and the log gets a warning. The interval of the polls is added
	// to it.
	lateLimit = 10 * time.Second
)

// warnLate logs when the lag of a watcher begins to exceed limit, and when the watcher has caught up. The lag also
// grows while the server is not available. The caller must call stop.
func warnLate(w *watch.Watcher, server *connectivity, log *slog.Logger, limit time.Duration) (stop func()) {
	ended := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		ticks := time.NewTicker(lateInterval)
		defer ticks.Stop()
		for late := false; ; {
			select {
			case <-ticks.C:
				late = logLate(w.Health(), server, log, limit, late)
			case <-ended:
				return
			}
		}
	})
	return func() {
		close(ended)
		watching.Wait()
	}
}

// logLate logs if a watcher has become late, or is no longer late. It gets whether the watcher was late at the last
// check, and returns whether the watcher is late now.
func logLate(h watch.Health, server *connectivity, log *slog.Logger, limit time.Duration, was bool) bool {
	cause := "it is silent"
	if _, failed := server.silence(); failed != nil {
		cause = reasonOf(failed)
	}
	if !h.Listed {
		if !was {
			log.Warn("the server has not answered yet, the watcher goes on asking", "server", server.server, "error", cause)
		}
		return true
	}
	var worst watch.FeedHealth
	if len(h.Feeds) > 0 {
		worst = slices.MaxFunc(h.Feeds, func(a, b watch.FeedHealth) int { return cmp.Compare(a.Lag, b.Lag) })
	}
	late := worst.Lag > limit
	switch {
	case late && !was:
		attributes := []any{"feed", worst.Feed.String(), "lag", worst.Lag.String()}
		if _, failed := server.silence(); failed != nil {
			attributes = append(attributes, "server", server.server, "error", cause)
		}
		log.Warn("the watcher is behind", attributes...)
	case was && !late:
		log.Warn("the watcher is no longer behind", "lag", worst.Lag.String())
	}
	return late
}
