package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/crowfoot-db/crowfoot/bulk/transfer"
)

const (
	barInterval  = 200 * time.Millisecond // between drawings of the status line on a terminal
	lineInterval = 10 * time.Second       // between progress lines if the output is no terminal
	barWidth     = 30
)

// transferScreen shows the progress of an import or export, or that the command waits for its server. On a terminal it
// draws a status line; otherwise it prints a line from time to time.
type transferScreen struct {
	to       *os.File
	terminal bool
	server   *connectivity
	ended    chan struct{}
	drawing  sync.WaitGroup

	mu     sync.Mutex
	line   func() string // returns the text that shows the progress; nil if no progress is shown
	last   time.Time     // when a line was last shown
	waited bool          // the command was waiting for the server when a line was last drawn
}

func newTransferScreen(to *os.File, server *connectivity) *transferScreen {
	s := &transferScreen{to: to, terminal: progressOf(to) != io.Discard, server: server, ended: make(chan struct{}), last: time.Now()}
	s.drawing.Go(func() {
		ticks := time.NewTicker(barInterval)
		defer ticks.Stop()
		for {
			select {
			case <-ticks.C:
				s.draw()
			case <-s.ended:
				return
			}
		}
	})
	return s
}

func (s *transferScreen) draw() {
	s.mu.Lock()
	defer s.mu.Unlock()
	waiting := s.server.String()
	status := waiting
	if status == "" && s.line != nil {
		status = s.line()
	}
	switch {
	case s.terminal:
		fmt.Fprintf(s.to, "\r\x1b[K\x1b[?7l%s\x1b[?7h", status)
	case status != "" && (time.Since(s.last) >= lineInterval || waiting != "" && !s.waited):
		fmt.Fprintln(s.to, status)
		s.last = time.Now()
	}
	s.waited = waiting != ""
}

// follow begins to show the progress of a transfer. Its first parameter is the verb that says what happens to the rows,
// such as "imported".
func (s *transferScreen) follow(done string, p *transfer.Progress) {
	begin, first := time.Now(), p.Fraction()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.line = func() string {
		line := progressLine(done, p.Rows(), p.Fraction(), first, time.Since(begin))
		if s.terminal {
			line = bar(p.Fraction()) + " " + line
		}
		return line
	}
}

// clear stops showing the progress, so that the command can print its result.
func (s *transferScreen) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.line = nil
	if s.terminal {
		fmt.Fprint(s.to, "\r\x1b[K")
	}
}

func (s *transferScreen) close() {
	close(s.ended)
	s.drawing.Wait()
	s.clear()
}

func bar(fraction float64) string {
	full := int(fraction * barWidth)
	return "[" + strings.Repeat("=", full) + strings.Repeat(" ", barWidth-full) + "]"
}

// progressLine returns a line such as "imported 120000 rows, 40%, 60000/s, 3s left". The parameter fraction is the part
// of the work that is done now, from 0 to 1. The parameter first is the part that was done when the command began.
func progressLine(done string, rows int64, fraction, first float64, took time.Duration) string {
	line := fmt.Sprintf("%s %d rows, %.0f%%, %.0f/s", done, rows, fraction*100, float64(rows)/max(took.Seconds(), 1e-9))
	if fraction <= first || fraction >= 1 {
		return line
	}
	left := time.Duration(float64(took) * (1 - fraction) / (fraction - first))
	return line + fmt.Sprintf(", %v left", left.Round(time.Second))
}
