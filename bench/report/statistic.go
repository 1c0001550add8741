package report

import (
	"strconv"
	"strings"
)

// Statistic is a query of the server's own statistics, together with its rows or its error.
type Statistic struct {
	Title   string     `json:"title"`
	SQL     string     `json:"sql"`
	Columns []string   `json:"columns,omitempty"`
	Rows    [][]string `json:"rows,omitempty"`
	Error   string     `json:"error,omitempty"`
}

// secondsSuffix is the end of the names of columns in seconds. The report converts all such columns to milliseconds.
const secondsSuffix = "_seconds"

// without returns the reason why the query gave no rows; "" if it gave some.
func (s Statistic) without() string {
	switch {
	case s.Error != "":
		return "no answer: " + s.Error
	case len(s.Rows) == 0:
		return "no rows"
	}
	return ""
}

// grid formats the rows as a table. Text columns come first and are aligned left. Columns of numbers follow, with
// times in milliseconds.
func (s Statistic) grid() (g Grid) {
	var order []int
	for i := range s.Columns {
		if !s.numeric(i) {
			order = append(order, i)
		}
	}
	g.Left = len(order)
	for i := range s.Columns {
		if s.numeric(i) {
			order = append(order, i)
		}
	}
	head := make([]string, len(order))
	for to, from := range order {
		head[to] = s.Columns[from]
		if name, ok := strings.CutSuffix(head[to], secondsSuffix); ok {
			head[to] = name + ", ms"
		}
	}
	g.Lines = append(g.Lines, head)
	for _, row := range s.Rows {
		line := make([]string, len(order))
		for to, from := range order {
			line[to] = row[from]
			if v, err := strconv.ParseFloat(row[from], 64); err == nil && strings.HasSuffix(s.Columns[from], secondsSuffix) {
				line[to] = thousandths(v * 1e6)
			}
		}
		g.Lines = append(g.Lines, line)
	}
	return g
}

// numeric reports whether a column holds only numbers and NULL.
func (s Statistic) numeric(column int) bool {
	for _, row := range s.Rows {
		if _, err := strconv.ParseFloat(row[column], 64); err != nil && row[column] != NullText {
			return false
		}
	}
	return true
}

// NullText is the text for NULL.
const NullText = "NULL"
