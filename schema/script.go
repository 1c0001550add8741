package schema

import "github.com/cloudspannerecosystem/memefish/token"

// SplitScript cuts a file of DDL into its statements, which end in semicolons
// (the last one need not). Comments alone are no statement.
func SplitScript(text string) ([]string, error) {
	lexer := newLexer(text)
	var list []string
	start, end := -1, 0
	for {
		if err := lexer.next(); err != nil {
			return nil, (&source{text: text}).lexError(err)
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
			list = append(list, text[start:end])
		}
		if t.Kind == token.TokenEOF {
			return list, nil
		}
		start = -1
	}
}
