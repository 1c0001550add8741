package bench

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

const (
	// textWidth is how many columns a benchmark's output fits into.
	textWidth = 100
	// resultLines is how many lines the result has at most. The page and the JSON have the details.
	resultLines = 40
)

// result is what a benchmark prints at its end: lines of at most textWidth columns.
type result struct{ lines []string }

// add appends a text below a head, broken between words, its further lines indented.
func (t *result) add(head, text string) {
	indent := strings.Repeat(" ", len([]rune(head)))
	for i, line := range strings.Split(wrap(text, textWidth-len(indent)), "\n") {
		if i > 0 {
			head = indent
		}
		t.lines = append(t.lines, strings.TrimRight(head+line, " "))
	}
}

func (t *result) blank() { t.lines = append(t.lines, "") }

func (t *result) writeTo(w io.Writer) error {
	_, err := fmt.Fprintln(w, strings.Join(t.lines, "\n"))
	return err
}

// comparison is a line of the result: what was compared, and the cells behind it.
type comparison struct {
	name    string
	cells   []string
	verdict string
}

// comparisons adds a table with at most so many lines. Figures that met their targets are the first to be left out; a last line counts what was.
func (t *result) comparisons(head []string, list []comparison, lines int) {
	all := len(list)
	for {
		grid := comparisonLines(head, list)
		left := all - len(list)
		if left > 0 {
			grid = append(grid, fmt.Sprintf("... and %d more: --report FILE has them", left))
		}
		if len(grid) <= lines || len(list) == 0 {
			t.lines = append(t.lines, grid...)
			return
		}
		last := len(list) - 1
		for i := last; i >= 0; i-- {
			if list[i].verdict == met {
				last = i
				break
			}
		}
		list = slices.Delete(slices.Clone(list), last, last+1)
	}
}

// comparisonLines lays a table out: names flush left and broken between words, cells flush right.
func comparisonLines(head []string, list []comparison) (lines []string) {
	widths := make([]int, len(head)-1)
	rows := append([]comparison{{name: head[0], cells: head[1:]}}, list...)
	for _, row := range rows {
		for i, cell := range row.cells {
			widths[i] = max(widths[i], len([]rune(cell)))
		}
	}
	name, used := 0, 0
	for _, w := range widths {
		used += w + 2
	}
	for _, row := range rows {
		name = max(name, len([]rune(row.name)))
	}
	name = min(name, textWidth-used)
	for _, row := range rows {
		parts := strings.Split(wrap(row.name, name), "\n")
		line := parts[0] + strings.Repeat(" ", max(0, name-len([]rune(parts[0]))))
		for i, cell := range row.cells {
			line += "  " + strings.Repeat(" ", widths[i]-len([]rune(cell))) + cell
		}
		lines = append(lines, strings.TrimRight(line, " "))
		for _, part := range parts[1:] {
			lines = append(lines, "  "+part)
		}
	}
	return lines
}

// opening adds what was measured, when and where.
func (h *Heading) opening(t *result, title, run string) {
	t.add("", title)
	t.add("server   ", h.Server)
	t.add("machine  ", h.Machine.text())
	t.add("run      ", run)
}

// closing adds what was noticed, as far as there is room, and where the details are.
func (h *Heading) closing(t *result, o Outputs) {
	end := new(result)
	for _, of := range []struct{ head, file string }{{"page     ", o.Report}, {"figures  ", o.JSON}} {
		if of.file != "" {
			end.add(of.head, of.file)
		}
	}
	if h.Partial != "" {
		end.add("PARTIAL RESULTS: ", h.Partial)
	}
	facts, list := new(result), slices.Clone(h.Facts)
	slices.SortStableFunc(list, func(a, b string) int { return failedFirst(a) - failedFirst(b) })
	for i, f := range list {
		before := len(facts.lines)
		facts.add("noticed  ", f)
		if len(t.lines)+len(facts.lines)+len(end.lines)+1 > resultLines {
			facts.lines = append(facts.lines[:before], fmt.Sprintf("noticed  ... and %d more: --report FILE has them", len(h.Facts)-i))
			break
		}
	}
	t.lines = slices.Concat(t.lines, facts.lines, end.lines)
}

// failure begins a fact that says which foreign program or database has failed.
const failure = "failed: "

func failedFirst(fact string) int {
	if strings.HasPrefix(fact, failure) {
		return 0
	}
	return 1
}

// room is how many lines a table may take, if so many lines come behind it.
func (t *result) room(behind int) int { return max(2, resultLines-len(t.lines)-behind) }

// behindTable is how many lines are kept for what was noticed and where the details are.
const behindTable = 8
