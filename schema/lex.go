package schema

import (
	"errors"

	"github.com/cloudspannerecosystem/memefish"
	"github.com/cloudspannerecosystem/memefish/token"
)

// lexer reads tokens. It is memefish's, but never panics.
type lexer struct{ memefish.Lexer }

func newLexer(text string) *lexer {
	return &lexer{memefish.Lexer{File: &token.File{Buffer: text}}}
}

// errLex is text on which memefish's lexer trips, such as a literal cut short in an escape sequence.
var errLex = errors.New("invalid token")

// next moves to the next token, which is then in Token; the last one is of kind TokenEOF.
func (l *lexer) next() (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = errLex
		}
	}()
	return l.NextToken()
}
