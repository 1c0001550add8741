package schema

import (
	"errors"

	"github.com/cloudspannerecosystem/memefish"
	"github.com/cloudspannerecosystem/memefish/token"
)

// lexer reads tokens. It wraps memefish's lexer and never panics.
type lexer struct{ memefish.Lexer }

func newLexer(text string) *lexer {
	return &lexer{memefish.Lexer{File: &token.File{Buffer: text}}}
}

// errLex is the error for text on which memefish's lexer panics, such as a literal that is cut short in an escape
// sequence.
var errLex = errors.New("invalid token")

// next moves to the next token and stores it in Token. After the last token, its kind is TokenEOF.
func (l *lexer) next() (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = errLex
		}
	}()
	return l.NextToken()
}
