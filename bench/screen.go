package bench

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

// screen shows a run while it goes on. On a terminal it draws one picture again and again; elsewhere it prints a line for
// each turn that ends.
type screen struct {
	out  io.Writer
	live bool

	mu      sync.Mutex
	began   time.Time // of the measuring
	planned float64   // turns of the whole run, by their length
	passed  float64   // turns that are over, likewise
	share   float64   // of the turn under way, likewise
	title   string
	current []*Measure
	now     string // what the last window was like
	lines   int    // of the last picture
	rows    [2]int // percent last said while loading, and of what
}

func newScreen(out io.Writer) *screen { return &screen{out: out, live: terminal(out)} }

// terminal says whether cursor movements make sense on w.
func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" || os.Getenv("TERM") == "" {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// note prints a line that stays.
func (s *screen) note(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear()
	fmt.Fprintln(s.out, text)
}

// plan adds to the length of the whole run, in the unit of run.length.
func (s *screen) plan(length float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.planned += length
}

// progress is how much of the run is over, from 0 to 1.
func (s *screen) progress() float64 {
	if s.planned == 0 {
		return 0
	}
	return min(1, (s.passed+s.share)/s.planned)
}

// left is about how long the run will go on, by how long it took so far.
func (s *screen) left() time.Duration {
	p := s.progress()
	if p == 0 {
		return 0
	}
	return time.Duration(float64(time.Since(s.began)) * (1 - p) / p).Round(time.Second)
}

// loadedSteps is how many lines tell of the loading of a table where there is no terminal.
const loadedSteps = 4

// loaded shows how far the loading of a table is.
func (s *screen) loaded(table string, done, of int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	percent := done * 100 / of
	text := fmt.Sprintf("loading %s: %d of %d rows %s", table, done, of, bar(float64(done)/float64(of)))
	if s.live {
		s.draw([]string{text})
	} else if step := [2]int{percent * loadedSteps / 100, of}; step != s.rows || done == of {
		s.rows = step
		fmt.Fprintln(s.out, text)
	}
	if done == of && s.live {
		s.lines = 0
	}
}

// experiment begins the picture of an experiment, whose measures take turns.
func (s *screen) experiment(benchmark string, measures []*Measure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.finishPicture()
	if s.began.IsZero() {
		s.began = time.Now()
	}
	s.title = benchmark + ": " + measures[0].Title
	s.current = measures
	if !s.live {
		fmt.Fprintln(s.out, s.title)
	}
}

// window draws the last window of a turn, which is of the given length of the plan. Round 0 warms up.
func (s *screen) window(m *Measure, round, rounds int, length float64, w window) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.share = length * w.share
	if !s.live {
		return
	}
	if w.elapsed >= shortestWindow {
		s.now = windowText(m, w)
	}
	lines := []string{
		fmt.Sprintf("%s  %s %3.0f%%  %v to go", s.title, bar(s.progress()), 100*s.progress(), s.left()),
		fmt.Sprintf("round    %s: %s, %s", roundText(round, rounds), m.Path, plural(m.Clients, "client")),
		s.now, "",
		fmt.Sprintf("%-28s %9s %9s %9s %9s %9s", "so far", "ops/s", "p50 ms", "p99 ms", "CPU us", "to first"),
	}
	for _, c := range s.current {
		lines = append(lines, s.soFar(c))
	}
	s.draw(lines)
}

func windowText(m *Measure, w window) string {
	h := w.latency
	now := fmt.Sprintf("now      %s ops/s, p50 %s ms, p99 %s ms", count(w.perSecond()), milliseconds(h.ValueAtQuantile(50)), milliseconds(h.ValueAtQuantile(99)))
	if m.metered {
		now += fmt.Sprintf(", server %.2f cores", w.cpu.Seconds()/w.elapsed.Seconds())
	}
	return now
}

// shortestWindow is the shortest window that is worth showing.
const shortestWindow = tick / 5

// soFar is a line of one path; its ratio is of median latencies to the first path's.
func (s *screen) soFar(m *Measure) string {
	if m.Operations == 0 {
		return fmt.Sprintf("%-28s %9s", m.Path, "-")
	}
	compared := ratio(float64(m.Latency.P50), float64(s.current[0].Latency.P50))
	return fmt.Sprintf("%-28s %9s %9s %9s %9s %9s", m.Path, count(m.PerSecond), milliseconds(m.Latency.P50), milliseconds(m.Latency.P99), micros(m.CPU), ratioText(compared))
}

func roundText(round, rounds int) string {
	if round == 0 {
		return "warming up"
	}
	return fmt.Sprintf("%d of %d", round, rounds)
}

// turnEnds adds the length of a turn to what is over, and prints a line where there is no terminal.
func (s *screen) turnEnds(m *Measure, round, rounds int, length float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.passed, s.share, s.now = s.passed+length, 0, ""
	if s.live || round == 0 {
		return
	}
	fmt.Fprintf(s.out, "  round %s  %3.0f%%  %-26s %s %9s ops/s  p50 %s ms  p99 %s ms  CPU %s us\n", roundText(round, rounds),
		100*s.progress(), m.Path, plural(m.Clients, "client"), count(m.PerSecond), milliseconds(m.Latency.P50), milliseconds(m.Latency.P99), micros(m.CPU))
}

// finish leaves the last picture where it is.
func (s *screen) finish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.finishPicture()
}

func (s *screen) finishPicture() {
	if s.lines > 0 {
		fmt.Fprintln(s.out)
	}
	s.lines = 0
}

// draw replaces the picture. Escapes are those of ECMA-48: CUU (A), ED (J).
func (s *screen) draw(lines []string) {
	s.clear()
	for _, l := range lines {
		fmt.Fprintln(s.out, cut(l))
	}
	s.lines = len(lines)
}

func (s *screen) clear() {
	if s.lines > 0 {
		fmt.Fprintf(s.out, "\x1b[%dA\x1b[J", s.lines)
	}
	s.lines = 0
}

// screenWidth is the number of columns of the narrowest usual terminal. A longer line would wrap and spoil the picture.
const screenWidth = 79

func cut(line string) string {
	if r := []rune(line); len(r) > screenWidth {
		return string(r[:screenWidth])
	}
	return line
}

// bar draws a share from 0 to 1.
func bar(share float64) string {
	const width = 20
	full := int(min(max(share, 0), 1) * width)
	return "[" + strings.Repeat("#", full) + strings.Repeat(".", width-full) + "]"
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
