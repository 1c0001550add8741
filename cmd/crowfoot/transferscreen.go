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
	barInterval  = 200 * time.Millisecond // between drawings of the progress bar on a terminal
	lineInterval = 10 * time.Second       // between lines elsewhere
	barWidth     = 30
)

// showProgress shows how far an import or export is until stop is called: a bar on a terminal, and a line now and then elsewhere.
func showProgress(to *os.File, done string, p *transfer.Progress) (stop func()) {
	terminal := progressOf(to) != io.Discard
	interval := lineInterval
	if terminal {
		interval = barInterval
	}
	ended := make(chan struct{})
	var drawing sync.WaitGroup
	drawing.Go(func() {
		ticks := time.NewTicker(interval)
		defer ticks.Stop()
		begin, first := time.Now(), p.Fraction()
		for {
			select {
			case <-ticks.C:
				line := progressLine(done, p.Rows(), p.Fraction(), first, time.Since(begin))
				if terminal {
					fmt.Fprintf(to, "\r\x1b[K\x1b[?7l%s %s\x1b[?7h", bar(p.Fraction()), line)
				} else {
					fmt.Fprintln(to, line)
				}
			case <-ended:
				if terminal {
					fmt.Fprint(to, "\r\x1b[K")
				}
				return
			}
		}
	})
	return func() {
		close(ended)
		drawing.Wait()
	}
}

func bar(fraction float64) string {
	full := int(fraction * barWidth)
	return "[" + strings.Repeat("=", full) + strings.Repeat(" ", barWidth-full) + "]"
}

// progressLine is "imported 120000 rows, 40%, 60000/s, 3s left". first is the fraction that was done at the begin.
func progressLine(done string, rows int64, fraction, first float64, took time.Duration) string {
	line := fmt.Sprintf("%s %d rows, %.0f%%, %.0f/s", done, rows, fraction*100, float64(rows)/max(took.Seconds(), 1e-9))
	if fraction <= first || fraction >= 1 {
		return line
	}
	left := time.Duration(float64(took) * (1 - fraction) / (fraction - first))
	return line + fmt.Sprintf(", %v left", left.Round(time.Second))
}
