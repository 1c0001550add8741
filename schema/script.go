package schema

import (
	"github.com/cloudspannerecosystem/memefish/token"

	"github.com/crowfoot-db/crowfoot/usererror"
)

// ScriptStatement is a statement of a script, without its semicolon.
type ScriptStatement struct {
	Text         string
	Line, Column int // where it begins in the script, from 1; the column counts characters
}

// SplitScript cuts a file of DDL into its statements, which end in semicolons
// (the last one need not). Comments alone are no statement. The lines of an
// error are the script's.
func SplitScript(text string) ([]ScriptStatement, error) {
	lexer := newLexer(text)
	script := &source{text: text}
	var list []ScriptStatement
	start, end := -1, 0
	for {
		if err := lexer.next(); err != nil {
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
