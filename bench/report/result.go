package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/crowfoot-db/crowfoot/bench"
)

const (
	// textWidth is the largest width in columns of the text that a benchmark prints.
	textWidth = 100
	// SummaryLines is the largest number of lines of a summary. The page and the JSON have the details.
	SummaryLines = 40
)

// Summary is the text that a benchmark prints at its end, in lines of at most textWidth columns.
type Summary struct{ lines []string }

// Add appends head, followed by text. It breaks text between words into lines, and indents all lines but the first by
// the width of head.
func (t *Summary) Add(head, text string) {
	indent := strings.Repeat(" ", len([]rune(head)))
	for i, line := range strings.Split(wrap(text, textWidth-len(indent)), "\n") {
		if i > 0 {
			head = indent
		}
		t.lines = append(t.lines, strings.TrimRight(head+line, " "))
	}
}

func (t *Summary) Blank() { t.lines = append(t.lines, "") }

func (t *Summary) Print(w io.Writer) error {
	_, err := fmt.Fprintln(w, strings.Join(t.lines, "\n"))
	return err
}

// Comparison is a line of a summary's table: the name of the compared quantity, and its cells.
type Comparison struct {
	Name    string
	Cells   []string
	Verdict string
}

// Comparisons adds a table of at most the given number of lines. If there are not enough lines, it first leaves out
// figures that met their targets. A last line then says how many figures were left out.
func (t *Summary) Comparisons(head []string, list []Comparison, lines int) {
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
			if list[i].Verdict == met {
				last = i
				break
			}
		}
		list = slices.Delete(slices.Clone(list), last, last+1)
	}
}

// comparisonLines formats a table. Names are aligned left and broken between words. Cells are aligned right.
func comparisonLines(head []string, list []Comparison) (lines []string) {
	widths := make([]int, len(head)-1)
	rows := append([]Comparison{{Name: head[0], Cells: head[1:]}}, list...)
	for _, row := range rows {
		for i, cell := range row.Cells {
			widths[i] = max(widths[i], len([]rune(cell)))
		}
	}
	name, used := 0, 0
	for _, w := range widths {
		used += w + 2
	}
	for _, row := range rows {
		name = max(name, len([]rune(row.Name)))
	}
	name = min(name, textWidth-used)
	for _, row := range rows {
		parts := strings.Split(wrap(row.Name, name), "\n")
		line := parts[0] + strings.Repeat(" ", max(0, name-len([]rune(parts[0]))))
		for i, cell := range row.Cells {
			line += "  " + strings.Repeat(" ", widths[i]-len([]rune(cell))) + cell
		}
		lines = append(lines, strings.TrimRight(line, " "))
		for _, part := range parts[1:] {
			lines = append(lines, "  "+part)
		}
	}
	return lines
}

// Opening adds lines about the benchmark's title, the server, the machine and the run.
func (h *Heading) Opening(t *Summary, title, run string) {
	t.Add("", title)
	t.Add("server   ", h.Server)
	t.Add("machine  ", h.Machine.text())
	t.Add("run      ", run)
}

// Closing adds the facts that the run has recorded, failures first, and then the names of the files that hold the
// details. It leaves out facts that do not fit into a summary of SummaryLines lines, and says how many it has left out.
func (h *Heading) Closing(t *Summary, o bench.Outputs) {
	end := new(Summary)
	for _, of := range []struct{ head, file string }{{"page     ", o.Report}, {"figures  ", o.JSON}} {
		if of.file != "" {
			end.Add(of.head, of.file)
		}
	}
	if h.Partial != "" {
		end.Add("PARTIAL RESULTS: ", h.Partial)
	}
	facts, list := new(Summary), slices.Clone(h.Facts)
	slices.SortStableFunc(list, func(a, b string) int { return failedFirst(a) - failedFirst(b) })
	for i, f := range list {
		before := len(facts.lines)
		facts.Add("noticed  ", f)
		if len(t.lines)+len(facts.lines)+len(end.lines)+1 > SummaryLines {
			facts.lines = append(facts.lines[:before], fmt.Sprintf("noticed  ... and %d more: --report FILE has them", len(h.Facts)-i))
			break
		}
	}
	t.lines = slices.Concat(t.lines, facts.lines, end.lines)
}

// FailurePrefix is the beginning of a fact about a foreign program or database that failed.
const FailurePrefix = "failed: "

func failedFirst(fact string) int {
	if strings.HasPrefix(fact, FailurePrefix) {
		return 0
	}
	return 1
}

// Room returns the number of lines that a table may have if the given number of lines must fit below it.
func (t *Summary) Room(behind int) int { return max(2, SummaryLines-len(t.lines)-behind) }

// LinesBehindTable is the number of lines that are reserved for the facts and file names below a table.
const LinesBehindTable = 8
