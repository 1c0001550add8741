package syntax

import (
	"errors"
	"strings"

	"github.com/cloudspannerecosystem/memefish"
	"github.com/cloudspannerecosystem/memefish/token"
)

// Lexer reads tokens. It wraps memefish's lexer and never panics.
type Lexer struct{ memefish.Lexer }

// NewLexer returns a lexer at the beginning of a text.
func NewLexer(text string) *Lexer {
	return &Lexer{memefish.Lexer{File: &token.File{Buffer: text}}}
}

// errLex is the error for text on which memefish's lexer panics, such as a literal that is cut short in an escape
// sequence.
var errLex = errors.New("invalid token")

// Next moves to the next token and stores it in Token. After the last token, its kind is TokenEOF.
func (l *Lexer) Next() (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = errLex
		}
	}()
	return l.NextToken()
}

// Words returns the tokens of an expression, separated by one space.
func Words(sql string) string {
	var words []string
	for lexer := NewLexer(sql); lexer.Next() == nil && lexer.Token.Kind != token.TokenEOF; {
		words = append(words, lexer.Token.Raw)
	}
	return strings.Join(words, " ")
}

// Canonical returns an expression without white space and comments, and with keywords and names in one case. It keeps
// the case of names where it matters, for members of JSON: after a point, or in a STRUCT that may become JSON.
func Canonical(sql string) string {
	folds := !ContainsWord(sql, "STRUCT")
	var words []string
	lexer := NewLexer(sql)
	for last := token.TokenKind(""); ; last = lexer.Token.Kind {
		if lexer.Next() != nil {
			return sql
		}
		word, kind := lexer.Token.Raw, lexer.Token.Kind
		if kind == token.TokenEOF {
			return strings.Join(words, " ")
		}
		if last != "." && (token.IsKeyword(string(kind)) || kind == token.TokenIdent && folds) {
			word = strings.ToUpper(word)
		}
		words = append(words, word)
	}
}

// ContainsWord reports whether text contains a word, ignoring case.
func ContainsWord(text, word string) bool {
	for i := 0; i+len(word) <= len(text); i++ {
		if strings.EqualFold(text[i:i+len(word)], word) {
			return true
		}
	}
	return false
}
