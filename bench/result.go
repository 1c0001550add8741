package bench

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

const (
	// textWidth is the largest width of a benchmark's output, in columns.
	textWidth = 100
	// resultLines is the largest number of lines of the result. The page and the JSON have the details.
	resultLines = 40
)

// result is the text that a benchmark prints at its end, in lines of at most textWidth columns.
type result struct{ lines []string }

// add appends a head and a text behind it. It breaks the text between words and indents further lines to the width of
// the head.
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

// comparison is a line of the result: the name of the compared quantity, and its cells.
type comparison struct {
	name    string
	cells   []string
	verdict string
}

// comparisons adds a table of at most the given number of lines. If lines are too few, it first leaves out figures
// that met their targets. A last line then counts the figures left out.
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

// comparisonLines formats a table. Names are flush left and broken between words. Cells are flush right.
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

// opening adds the title, the server, the machine and the run.
func (h *Heading) opening(t *result, title, run string) {
	t.add("", title)
	t.add("server   ", h.Server)
	t.add("machine  ", h.Machine.text())
	t.add("run      ", run)
}

// closing adds the facts that fit into resultLines, and the names of the files that hold the details.
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

// failure begins a fact about a foreign program or database that failed.
const failure = "failed: "

func failedFirst(fact string) int {
	if strings.HasPrefix(fact, failure) {
		return 0
	}
	return 1
}

// room returns the number of lines that a table may have if behind lines follow it.
func (t *result) room(behind int) int { return max(2, resultLines-len(t.lines)-behind) }

// behindTable is the number of lines reserved for the facts and file names behind a table.
const behindTable = 8
