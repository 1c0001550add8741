package syntax

import (
	"github.com/cloudspannerecosystem/memefish/token"

	"github.com/crowfoot-db/crowfoot/usererror"
)

// ScriptStatement is one statement of a DDL script, without its semicolon.
type ScriptStatement struct {
	Text         string
	Line, Column int // its position in the script, from 1; the column counts characters
}

// SplitScript splits a DDL script into its statements. Each statement ends in a semicolon, which may be missing after
// the last one. Text that consists only of comments is not a statement. Line numbers in errors are those of the script.
func SplitScript(text string) ([]ScriptStatement, error) {
	lexer := NewLexer(text)
	script := &Statement{Text: text}
	var list []ScriptStatement
	start, end := -1, 0
	for {
		if err := lexer.Next(); err != nil {
			return nil, script.lexError(err)
		}
		t := &lexer.Token
		if t.Kind != token.TokenEOF && t.Kind != ";" {
			if start < 0 {
				start = int(t.Pos)
			}
			end = int(t.End)
			continue
		}
		if start >= 0 {
			line, column := usererror.LineAndColumn(text[:start])
			list = append(list, ScriptStatement{Text: text[start:end], Line: line, Column: column})
		}
		if t.Kind == token.TokenEOF {
			return list, nil
		}
		start = -1
	}
}
