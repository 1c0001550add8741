package schema

import (
	"fmt"
	"strings"

	"github.com/cloudspannerecosystem/memefish"
	"github.com/cloudspannerecosystem/memefish/token"

	"github.com/crowfoot-db/crowfoot/value"
)

// wordCompiler stands in for SQL: a word that names a column of the table
// reads it, any other word that starts like a column name of no table fails.
type wordCompiler struct{}

func (wordCompiler) CompileExpr(t *Table, sql string, want *value.Type) (*Expr, error) {
	if _, err := memefish.ParseExpr("", sql); err != nil {
		return nil, fmt.Errorf("Syntax error")
	}
	e := &Expr{SQL: sql, Eval: func([]value.Value) (value.Value, error) { return value.Null(want.Kind), nil }}
	lexer := newLexer(sql)
	seen := map[*Column]bool{}
	for lexer.next() == nil && lexer.Token.Kind != token.TokenEOF {
		if lexer.Token.Kind != token.TokenIdent {
			continue
		}
		c := t.Column(lexer.Token.AsString)
		if c != nil && !seen[c] {
			seen[c] = true
			e.Uses = append(e.Uses, c)
		}
		if strings.HasPrefix(lexer.Token.AsString, "missing") {
			return nil, fmt.Errorf("Unrecognized name: %s", lexer.Token.AsString)
		}
	}
	return e, nil
}
