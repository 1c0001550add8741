package usererror

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Place is where in the text of a statement an error is.
type Place struct {
	Line, Column int // from 1; the column counts characters
	// Excerpt is the line of the text and, below it, a caret under the place. Cloud Spanner sends it behind the message, as GoogleSQL's
	// ERROR_MESSAGE_MULTI_LINE_WITH_CARET does: at most 80 characters of the line, and spaces for tabs. Errors of DDL other than of its syntax and types
	// have none.
	Excerpt string
}

// PointAt is the error at an offset of the text that the user wrote.
func (e *Error) PointAt(text string, pos int) *Error {
	pos = min(max(pos, 0), len(text))
	line, column := LineAndColumn(text[:pos])
	placed := *e
	placed.Place = &Place{Line: line, Column: column, Excerpt: excerpt(text, pos)}
	return &placed
}

// In is the error in a statement of DDL, at or behind an offset of its text. An excerpt that it has already stays: that of an expression in the statement.
func (e *Error) In(text string, pos int) *Error {
	placed := *e
	placed.Place = new(Place)
	if e.Place != nil {
		placed.Place.Excerpt = e.Place.Excerpt
	}
	placed.Place.Line, placed.Place.Column = LineAndColumn(text[:min(max(pos, 0), len(text))])
	return &placed
}

// Text is what a client is told: the message and the excerpt. Error leaves the excerpt out, so that no log quotes statements.
func (e *Error) Text() string {
	if e.Place == nil || e.Place.Excerpt == "" {
		return e.Message
	}
	return e.Message + "\n" + e.Place.Excerpt
}

// LineAndColumn are those of the place behind the beginning of a text.
func LineAndColumn(before string) (line, column int) {
	return 1 + strings.Count(before, "\n"), 1 + utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:])
}

// Offset leads from a line and a column of GoogleSQL, both from 1, to an offset of the text. A line ends in \n, \r\n or \r, and a tab goes to the
// next column that is a multiple of eight.
func Offset(text string, line, column int) int {
	pos := 0
	for ; line > 1; line-- {
		end := strings.IndexAny(text[pos:], lineEnds)
		if end < 0 {
			return len(text)
		}
		if pos += end + 1; strings.HasSuffix(text[:pos], "\r") && strings.HasPrefix(text[pos:], "\n") {
			pos++
		}
	}
	at := 0
	for i, c := range text[pos:] {
		if at >= column-1 || strings.ContainsRune(lineEnds, c) {
			return pos + i
		}
		at = after(at, c)
	}
	return len(text)
}

// PositionOf leads from an offset of the text to the line and column that Offset leads back from.
func PositionOf(text string, pos int) (line, column int) {
	before := text[:pos]
	line = 1 + strings.Count(before, "\n") + strings.Count(before, "\r") - strings.Count(before, "\r\n")
	at := 0
	for _, c := range before[strings.LastIndexAny(before, lineEnds)+1:] {
		at = after(at, c)
	}
	return line, at + 1
}

const (
	lineEnds     = "\r\n"
	tabWidth     = 8
	excerptWidth = 80
	third        = excerptWidth / 3
	ellipsis     = "..."
)

// after is the column behind a character that begins at a column, both from 0.
func after(column int, c rune) int {
	if c == '\t' {
		return column - column%tabWidth + tabWidth
	}
	return column + 1
}

// excerpt is the line of a text with a caret below the place at an offset. A line may be the whole of a statement, so only what may be shown of it is expanded.
func excerpt(text string, pos int) string {
	if strings.HasSuffix(text[:pos], "\r") && strings.HasPrefix(text[pos:], "\n") {
		pos--
	}
	line := text[strings.LastIndexAny(text[:pos], lineEnds)+1:]
	pos -= len(text) - len(line)
	if end := strings.IndexAny(line, lineEnds); end >= 0 {
		line = line[:end]
	}
	at := 0
	for _, c := range line[:pos] {
		at = after(at, c)
	}
	from := 0 // the column of the first of the characters in shown
	if at > excerptWidth {
		from = at - excerptWidth
	}
	shown := expanded(line, from, from+3*excerptWidth)
	if from == 0 && len(shown) <= excerptWidth {
		return string(shown) + "\n" + strings.Repeat(" ", at) + "^"
	}
	begin, cut := 0, ""
	if at > excerptWidth-third {
		begin, cut = from+wordNear(shown, at-from), ellipsis
	}
	shown = append([]rune(cut), shown[begin-from:]...)
	if len(shown) > excerptWidth {
		shown = append(shown[:excerptWidth-len(ellipsis)], []rune(ellipsis)...)
	}
	return string(shown) + "\n" + strings.Repeat(" ", at-begin+len(cut)) + "^"
}

// wordNear is where to begin a line that is too long to be shown from its start: at a word that puts the place at into the middle third, or else so that
// at is in the middle.
func wordNear(line []rune, at int) int {
	for i := at - 2*third; i < at-third; i++ {
		if i > 0 && inWord(line[i]) && !inWord(line[i-1]) {
			return i
		}
	}
	return at - excerptWidth/2
}

func inWord(c rune) bool { return c == '_' || unicode.IsLetter(c) || unicode.IsDigit(c) }

// expanded are the characters of a line in the columns from one up to another, with spaces for tabs.
func expanded(line string, from, to int) (shown []rune) {
	at := 0
	for _, c := range line {
		next := after(at, c)
		if c == '\t' {
			c = ' '
		}
		for ; at < next; at++ {
			if at >= from && at < to {
				shown = append(shown, c)
			}
		}
		if at >= to {
			break
		}
	}
	return shown
}
