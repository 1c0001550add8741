package syntax

import (
	"errors"
	"strings"

	"github.com/cloudspannerecosystem/memefish"
	"github.com/cloudspannerecosystem/memefish/token"
)

// Lexer reads tokens. It wraps memefish's lexer and never panics.
type Lexer struct{ memefish.Lexer }

// NewLexer returns a lexer that stands before the first token of text.
func NewLexer(text string) *Lexer {
	return &Lexer{memefish.Lexer{File: &token.File{Buffer: text}}}
}

// errLex is the error for text on which memefish's lexer panics, such as a literal that ends in the middle of an
// escape sequence.
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

// Words returns the tokens of an expression, with one space between them.
func Words(sql string) string {
	var words []string
	for lexer := NewLexer(sql); lexer.Next() == nil && lexer.Token.Kind != token.TokenEOF; {
		words = append(words, lexer.Token.Raw)
	}
	return strings.Join(words, " ")
}

// Canonical returns an expression without comments, with one space between tokens, and with keywords and names in
// upper case. It does not change the case of a name that may be the name of a JSON member, because there case matters:
// a name after a dot, or any name in an expression that contains STRUCT. If the expression cannot be split into tokens,
// Canonical returns it unchanged.
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

// ContainsWord reports whether text contains word, ignoring case, also as a part of a longer word.
func ContainsWord(text, word string) bool {
	for i := 0; i+len(word) <= len(text); i++ {
		if strings.EqualFold(text[i:i+len(word)], word) {
			return true
		}
	}
	return false
}
