package harness

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/crowfoot-db/crowfoot/bench/report"
)

// Screen shows the progress of a run. On a terminal it redraws one picture. On other outputs it prints a line for each
// turn that ends.
type Screen struct {
	out  io.Writer
	Live bool

	mu    sync.Mutex
	began time.Time // when measuring began
	// planned is the length of all turns of the run, passed is the length of the turns that are over, and share is how
	// much of the current turn has passed. The length 1 stands for the whole measured time of one path at one number of
	// clients.
	planned float64
	passed  float64
	share   float64
	title   string
	current []*report.Measure
	now     string // the line of the picture that shows the latest results of the turn in progress
	lines   int    // number of lines of the picture that the terminal shows
	rows    [2]int // the last progress step printed while a table is filled, and the number of rows of the table
}

func NewScreen(out io.Writer) *Screen { return &Screen{out: out, Live: terminal(out)} }

// terminal reports whether w is a terminal that understands cursor movements.
func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" || os.Getenv("TERM") == "" {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// Note prints a line that stays on the screen.
func (s *Screen) Note(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear()
	fmt.Fprintln(s.out, text)
}

// plan adds the length of a benchmark's turns to the planned length of the whole run. The length 1 stands for the whole
// measured time of one path at one number of clients.
func (s *Screen) plan(length float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.planned += length
}

// progress returns the fraction of the run that is over, from 0 to 1.
func (s *Screen) progress() float64 {
	if s.planned == 0 {
		return 0
	}
	return min(1, (s.passed+s.share)/s.planned)
}

// left estimates the remaining time of the run from the time that has passed.
func (s *Screen) left() time.Duration {
	p := s.progress()
	if p == 0 {
		return 0
	}
	return time.Duration(float64(time.Since(s.began)) * (1 - p) / p).Round(time.Second)
}

// loadedSteps is the number of steps in which the progress of filling a table is printed, if the output is no terminal.
// A line is printed when a step begins, and when the table is full.
const loadedSteps = 4

// Loaded shows the progress of loading a table.
func (s *Screen) Loaded(table string, done, of int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	percent := done * 100 / of
	text := fmt.Sprintf("loading %s: %d of %d rows %s", table, done, of, Bar(float64(done)/float64(of)))
	if s.Live {
		s.draw([]string{text})
	} else if step := [2]int{percent * loadedSteps / 100, of}; step != s.rows || done == of {
		s.rows = step
		fmt.Fprintln(s.out, text)
	}
	if done == of && s.Live {
		s.lines = 0
	}
}

// experiment begins the picture of an experiment. measures holds the measures of its paths.
func (s *Screen) experiment(benchmark string, measures []*report.Measure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.finishPicture()
	if s.began.IsZero() {
		s.began = time.Now()
	}
	s.title = benchmark + ": " + measures[0].Title
	s.current = measures
	if !s.Live {
		fmt.Fprintln(s.out, s.title)
	}
}

// window redraws the picture with the results in w, the latest window of the turn in progress. length is the turn's
// length as a fraction of the path's whole measured time. Round 0 is the warm-up.
func (s *Screen) window(m *report.Measure, round, rounds int, length float64, w report.Window) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.share = length * w.Share
	if !s.Live {
		return
	}
	if w.Elapsed >= shortestWindow {
		s.now = windowText(m, w)
	}
	lines := []string{
		fmt.Sprintf("%s  %s %3.0f%%  %v to go", s.title, Bar(s.progress()), 100*s.progress(), s.left()),
		fmt.Sprintf("round    %s: %s, %s", roundText(round, rounds), m.Path, report.Plural(m.Clients, "client")),
		s.now, "",
		fmt.Sprintf("%-28s %9s %9s %9s %9s %9s", "so far", "ops/s", "p50 ms", "p99 ms", "CPU us", "to first"),
	}
	for _, c := range s.current {
		lines = append(lines, s.soFar(c))
	}
	s.draw(lines)
}

func windowText(m *report.Measure, w report.Window) string {
	h := w.Latency
	now := fmt.Sprintf("now      %s ops/s, p50 %s ms, p99 %s ms", report.CountText(w.PerSecond()), report.MillisecondsText(h.ValueAtQuantile(50)), report.MillisecondsText(h.ValueAtQuantile(99)))
	if m.Metered {
		now += fmt.Sprintf(", server %.2f cores", w.CPU.Seconds()/w.Elapsed.Seconds())
	}
	return now
}

// shortestWindow is the least duration of a report.Window that the method window shows as the latest results. A shorter
// one has too few operations.
const shortestWindow = Tick / 5

// soFar formats the current results of one path as a line. The last column is the ratio of the path's median latency to
// the median latency of the first path.
func (s *Screen) soFar(m *report.Measure) string {
	if m.Operations == 0 {
		return fmt.Sprintf("%-28s %9s", m.Path, "-")
	}
	compared := report.Ratio(float64(m.Latency.P50), float64(s.current[0].Latency.P50))
	return fmt.Sprintf("%-28s %9s %9s %9s %9s %9s", m.Path, report.CountText(m.PerSecond), report.MillisecondsText(m.Latency.P50), report.MillisecondsText(m.Latency.P99), report.MicrosText(m.CPU), report.RatioText(compared))
}

func roundText(round, rounds int) string {
	if round == 0 {
		return "warming up"
	}
	return fmt.Sprintf("%d of %d", round, rounds)
}

// turnEnds adds the length of a turn to the length of the turns that are over. If the output is no terminal, it prints
// a line.
func (s *Screen) turnEnds(m *report.Measure, round, rounds int, length float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.passed, s.share, s.now = s.passed+length, 0, ""
	if s.Live || round == 0 {
		return
	}
	fmt.Fprintf(s.out, "  round %s  %3.0f%%  %-26s %s %9s ops/s  p50 %s ms  p99 %s ms  CPU %s us\n", roundText(round, rounds),
		100*s.progress(), m.Path, report.Plural(m.Clients, "client"), report.CountText(m.PerSecond), report.MillisecondsText(m.Latency.P50), report.MillisecondsText(m.Latency.P99), report.MicrosText(m.CPU))
}

// Finish ends the updates of the screen and leaves the last picture on it.
func (s *Screen) Finish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.finishPicture()
}

func (s *Screen) finishPicture() {
	if s.lines > 0 {
		fmt.Fprintln(s.out)
	}
	s.lines = 0
}

// draw removes the last picture from the terminal and writes the given lines in its place. It uses the escape sequences
// CUU (A) and ED (J) of ECMA-48.
func (s *Screen) draw(lines []string) {
	s.clear()
	for _, l := range lines {
		fmt.Fprintln(s.out, cut(l))
	}
	s.lines = len(lines)
}

func (s *Screen) clear() {
	if s.lines > 0 {
		fmt.Fprintf(s.out, "\x1b[%dA\x1b[J", s.lines)
	}
	s.lines = 0
}

// ScreenWidth is the number of columns to which lines are cut, so that they fit a terminal of 80 columns. A terminal
// would wrap a longer line, and the next redrawing would then leave a part of it on the screen.
const ScreenWidth = 79

func cut(line string) string {
	if r := []rune(line); len(r) > ScreenWidth {
		return string(r[:ScreenWidth])
	}
	return line
}

// Bar draws a progress bar for a share from 0 to 1.
func Bar(share float64) string {
	const width = 20
	full := int(min(max(share, 0), 1) * width)
	return "[" + strings.Repeat("#", full) + strings.Repeat(".", width-full) + "]"
}

// Status shows the given lines as the current status. On a terminal, they replace the lines of the previous status. On
// other outputs, they are printed below the lines of the previous status.
func (s *Screen) Status(lines []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Live {
		s.draw(lines)
		return
	}
	for _, l := range lines {
		fmt.Fprintln(s.out, l)
	}
}
