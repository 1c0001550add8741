package usererror

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Place is the position of an error in the SQL of a statement.
type Place struct {
	Line, Column int // both count from 1; Column counts characters
	// Excerpt is the line of the SQL that has the error and, below it, a caret under the position. Like Cloud Spanner,
	// the server sends it after the message. Its form is that of GoogleSQL's ERROR_MESSAGE_MULTI_LINE_WITH_CARET: at
	// most 80 characters of the line, and spaces for tabs. Of the errors in DDL statements, only syntax errors, errors
	// about unknown types and errors in the SQL of expressions, views and functions have an excerpt.
	Excerpt string
}

// PointAt returns a copy of the error with a position and an excerpt. pos is the offset of the error in text, the SQL
// that the user wrote.
func (e *Error) PointAt(text string, pos int) *Error {
	pos = min(max(pos, 0), len(text))
	line, column := LineAndColumn(text[:pos])
	placed := *e
	placed.Place = &Place{Line: line, Column: column, Excerpt: excerpt(text, pos)}
	return &placed
}

// In returns a copy of the error whose position is offset pos in text, a DDL statement. In makes no excerpt. If the
// error already has one, for example of an expression in the statement, the copy keeps this excerpt.
func (e *Error) In(text string, pos int) *Error {
	placed := *e
	placed.Place = new(Place)
	if e.Place != nil {
		placed.Place.Excerpt = e.Place.Excerpt
	}
	placed.Place.Line, placed.Place.Column = LineAndColumn(text[:min(max(pos, 0), len(text))])
	return &placed
}

// Text returns the text for the client: the message and the excerpt. The method Error, which logs use, returns only the
// message. So no log shows a line of a user's statement as an excerpt.
func (e *Error) Text() string {
	if e.Place == nil || e.Place.Excerpt == "" {
		return e.Message
	}
	return e.Message + "\n" + e.Place.Excerpt
}

// LineAndColumn returns the position of the character that follows a text. The parameter before is that text. Both the
// line and the column count from 1.
func LineAndColumn(before string) (line, column int) {
	return 1 + strings.Count(before, "\n"), 1 + utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:])
}

// Offset converts a position in the form that GoogleSQL gives, with line and column counted from 1, to an offset in
// text. A line ends in \n, \r\n or \r. The character after a tab is in column 9, 17, 25 and so on.
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

// PositionOf converts an offset in text to a line and a column. It is the inverse of Offset.
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

// after returns the column that follows character c, which begins at the given column. Columns count from 0.
func after(column int, c rune) int {
	if c == '\t' {
		return column - column%tabWidth + tabWidth
	}
	return column + 1
}

// excerpt returns the line of text that contains offset pos, with a caret below that offset. It expands only the part
// of the line that it shows, because a line may be a whole long statement.
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
	from := 0 // the column of the line at which the shown part begins
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

// wordNear returns the index in line at which the excerpt of a long line begins. The parameter at is the index of the
// error. wordNear returns the first start of a word for which the error lies in the middle third of the excerpt. If
// there is none, the error lies in the middle of the excerpt.
func wordNear(line []rune, at int) int {
	for i := at - 2*third; i < at-third; i++ {
		if i > 0 && inWord(line[i]) && !inWord(line[i-1]) {
			return i
		}
	}
	return at - excerptWidth/2
}

func inWord(c rune) bool { return c == '_' || unicode.IsLetter(c) || unicode.IsDigit(c) }

// expanded returns the characters in the columns [from, to) of a line, with spaces for tabs.
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
