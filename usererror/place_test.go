package usererror

import (
	"strings"
	"testing"
	"unicode/utf8"

	"google.golang.org/grpc/codes"
)

func TestExcerpt(t *testing.T) {
	words := strings.Repeat("word_12 ", 40) // words of seven characters, one every eight characters
	for _, c := range []struct {
		name, text   string
		line, column int // the position of the error, as GoogleSQL counts lines and columns
		want         string
	}{
		{"first line", "SELECT x\nFROM t", 1, 8, "SELECT x\n       ^"},
		{"second line", "SELECT x\nFROM t", 2, 6, "FROM t\n     ^"},
		{"end of the text", "SELECT 1 +", 1, 11, "SELECT 1 +\n          ^"},
		{"end of a line", "SELECT\nx", 1, 7, "SELECT\n      ^"},
		{"behind the last newline", "SELECT\n", 2, 1, "\n^"},
		{"CRLF", "a\r\nbc\r\nd", 2, 2, "bc\n ^"},
		{"end of a line with CRLF", "a\r\nbc\r\nd", 2, 3, "bc\n  ^"},
		{"CR", "ab\rcd\ref", 2, 1, "cd\n^"},
		{"LF CR", "ab\n\rcd", 3, 1, "cd\n^"},
		{"nothing", "", 1, 1, "\n^"},
		{"tabs", "1234567\txxx", 1, 10, "1234567 xxx\n         ^"},
		{"tab at a tab stop", "12345678\txxx", 1, 18, "12345678        xxx\n                 ^"},
		{"multi-byte", "SELECT 'äöü', ñ", 1, 15, "SELECT 'äöü', ñ\n              ^"},
		{"beyond a line", "ab\ncd", 1, 9, "ab\n  ^"},
		{"beyond the text", "ab\ncd", 7, 1, "cd\n  ^"},
		{"80 characters", words[:80], 1, 73, words[:80] + "\n" + strings.Repeat(" ", 72) + "^"},
		{"81 characters", words[:81], 1, 1, words[:77] + "...\n^"},
		{"long, in the middle", words, 1, 161, "..." + words[112:186] + "...\n" + strings.Repeat(" ", 51) + "^"},
		{"long, at the end", words, 1, 321, "..." + words[272:] + "\n" + strings.Repeat(" ", 51) + "^"},
		{"long without words", strings.Repeat("1", 300), 1, 201, "..." + strings.Repeat("1", 74) + "...\n" + strings.Repeat(" ", 43) + "^"},
		{"long, of multi-byte characters", strings.Repeat("ä", 300), 1, 201, "..." + strings.Repeat("ä", 74) + "...\n" + strings.Repeat(" ", 43) + "^"},
		{"1 MiB on one line", strings.Repeat("\t", 1<<20) + "x", 1, 8<<20 + 1, "..." + strings.Repeat(" ", 40) + "x\n" + strings.Repeat(" ", 43) + "^"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := newError(codes.InvalidArgument, "Wrong").PointAt(c.text, Offset(c.text, c.line, c.column))
			if got, want := e.Text(), "Wrong\n"+c.want; got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
			if e.Error() != "Wrong" {
				t.Errorf("the error quotes the statement: %q", e.Error())
			}
		})
	}
}

// TestPositionOf checks that Offset converts the position that PositionOf returns for a character back to the
// character's offset. The test ignores newlines, because Offset never returns the offset of the \n in \r\n.
func TestPositionOf(t *testing.T) {
	for _, text := range []string{"", "SELECT\n\tx,\n 1234567\ty", "a\r\n\tb\rc\n\nd", "'ä\t\tö' ñ"} {
		for pos, c := range text + " " {
			line, column := PositionOf(text, pos)
			if got := Offset(text, line, column); got != pos && c != '\n' {
				t.Errorf("%q: %d is at line %d, column %d, which is %d", text, pos, line, column, got)
			}
		}
	}
}

// FuzzExcerpt makes excerpts for arbitrary offsets of arbitrary texts. The excerpt must have two short lines, and the
// caret must be below the character at the offset.
func FuzzExcerpt(f *testing.F) {
	f.Add("SELECT x\r\nFROM\tt", 9)
	f.Add(strings.Repeat("a b\tä\r", 50), 133)
	f.Fuzz(func(t *testing.T, text string, pos int) {
		if !utf8.ValidString(text) || pos < 0 || pos > len(text) || pos < len(text) && !utf8.RuneStart(text[pos]) {
			t.Skip()
		}
		lines := strings.Split(newError(codes.InvalidArgument, "Wrong").PointAt(text, pos).Place.Excerpt, "\n")
		if len(lines) != 2 || strings.ContainsAny(lines[0], "\t\r") {
			t.Fatalf("%q", lines)
		}
		line, caret := []rune(lines[0]), strings.IndexByte(lines[1], '^')
		if len(line) > excerptWidth || caret > len(line) || lines[1] != strings.Repeat(" ", caret)+"^" {
			t.Fatalf("%q", lines)
		}
		c, _ := utf8.DecodeRuneInString(text[pos:])
		switch {
		case pos == len(text) || strings.ContainsRune(lineEnds, c):
			if caret != len(line) {
				t.Fatalf("%q, want the end of the line", lines)
			}
		case c == '\t':
			if line[caret] != ' ' {
				t.Fatalf("%q, want a tab", lines)
			}
		case line[caret] != c:
			t.Fatalf("%q, want %q", lines, c)
		}
	})
}
