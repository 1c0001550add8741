package schema

import (
	"errors"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/cloudspannerecosystem/memefish"
	"github.com/cloudspannerecosystem/memefish/ast"
	"github.com/cloudspannerecosystem/memefish/token"

	"github.com/crowfoot-db/crowfoot/usererror"
)

// source is one DDL statement: its text, its tokens, its tree.
//
// The tree is not parsed from the text itself but from its tokens, one a line:
// comments are gone, a closing semicolon too, and spellings that memefish does
// not know are written as it knows them. All positions in the tree are offsets
// in that second text; place and original find the position in the first.
type source struct {
	text   string
	tokens []word
	tree   ast.DDL
	// ifExists is the condition of ALTER TABLE IF EXISTS, and the IF [NOT] EXISTS that adaptCondition has taken away.
	ifExists bool
	// parentSchema is the schema in INTERLEAVE IN of an index.
	parentSchema string
	// body is the query of a view, and secured says that the statement has SQL SECURITY.
	body    string
	secured bool
}

// word is a token of the statement.
type word struct {
	kind     token.TokenKind
	pos, end int // in the text; equal for a word that was put in
	upper    string
	at       int // in the second text
}

// parse reads one statement. It never panics: what is nested too deeply for a
// recursive parser is refused before it gets there.
func parse(text string) (*source, error) {
	if len(text) > MaxDDLBytes {
		return nil, usererror.DDLTooLong(len(text), MaxDDLBytes)
	}
	if !utf8.ValidString(text) {
		return nil, usererror.DDLNotUTF8()
	}
	s := &source{text: text}
	if err := s.scan(); err != nil {
		return nil, err
	}
	if len(s.tokens) == 0 {
		return nil, usererror.DDLEmpty()
	}
	if what := unimplemented(s.tokens); what != "" {
		return nil, usererror.DDLUnimplemented(what)
	}
	s.adapt()
	if err := s.build(); err != nil {
		return nil, err
	}
	return s, nil
}

// CheckSyntax finds the error that makes a whole UpdateDatabaseDdl call fail
// before any of its statements runs: text that does not parse.
func CheckSyntax(stmt string) error {
	_, err := parse(stmt)
	return err
}

// scan cuts the text into tokens and measures its depth.
func (s *source) scan() error {
	lexer := newLexer(s.text)
	var depth nesting
	for {
		if err := lexer.next(); err != nil {
			return s.lexError(err)
		}
		t := &lexer.Token
		if t.Kind == token.TokenEOF {
			break
		}
		w := word{kind: t.Kind, pos: int(t.Pos), end: int(t.End)}
		if t.Kind == token.TokenIdent || token.IsKeyword(string(t.Kind)) {
			w.upper = strings.ToUpper(t.Raw)
		}
		s.tokens = append(s.tokens, w)
		if depth.add(&w); depth.deepest() > maxNesting {
			return usererror.DDLTooDeep(s.text, maxNesting)
		}
	}
	if n := len(s.tokens); n > 0 && s.tokens[n-1].kind == ";" {
		s.tokens = s.tokens[:n-1]
	}
	return nil
}

// build parses the tokens.
func (s *source) build() (err error) {
	var b strings.Builder
	for i := range s.tokens {
		w := &s.tokens[i]
		w.at = b.Len()
		if w.pos == w.end {
			b.WriteString(w.upper)
		} else {
			b.WriteString(s.text[w.pos:w.end])
		}
		b.WriteByte('\n')
	}
	defer func() {
		if r := recover(); r != nil { // memefish's own "BUG: ..." panics
			err = s.syntaxErrorAt(0, "the statement cannot be parsed")
		}
	}()
	s.tree, err = memefish.ParseDDL("", b.String())
	if err != nil {
		return s.parseError(err)
	}
	return nil
}

// lexError makes the user's error of a lexer's, behind the last good token if it names no place.
func (s *source) lexError(err error) error {
	var placed *memefish.Error
	if errors.As(err, &placed) {
		return s.syntaxErrorAt(int(placed.Position.Pos), placed.Message)
	}
	end := 0
	if n := len(s.tokens); n > 0 {
		end = s.tokens[n-1].end
	}
	return s.syntaxErrorAt(end, err.Error())
}

// parseError makes the user's error of the parser's first, at its place in the text.
func (s *source) parseError(err error) error {
	var list memefish.MultiError
	if !errors.As(err, &list) || len(list) == 0 {
		return s.syntaxErrorAt(0, err.Error())
	}
	return s.syntaxErrorAt(s.place(int(list[0].Position.Pos)), list[0].Message)
}

func (s *source) syntaxErrorAt(pos int, reason string) error {
	line, column := s.lineAndColumn(pos)
	return usererror.DDLSyntax(s.text, line, column, reason)
}

// lineAndColumn leads from an offset of the text to its line and column, both from 1.
func (s *source) lineAndColumn(pos int) (line, column int) {
	before := s.text[:min(max(pos, 0), len(s.text))]
	line = 1 + strings.Count(before, "\n")
	column = 1 + utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:])
	return line, column
}

// find is the number of the first token at or after an offset of the second text.
func (s *source) find(at int) int {
	return sort.Search(len(s.tokens), func(i int) bool { return s.tokens[i].at >= at })
}

// place leads from an offset of the second text to one of the first.
func (s *source) place(at int) int {
	i := s.find(at)
	if i < len(s.tokens) {
		return s.tokens[i].pos
	}
	return len(s.text)
}

// inParens is the text between the first parenthesis at or after from and the
// one at rparen, as written, but for comments.
func (s *source) inParens(from, rparen token.Pos) string {
	i, end := s.find(int(from)), s.find(int(rparen))
	for i < end && s.tokens[i].kind != "(" {
		i++
	}
	return s.between(i+1, end)
}

// between is the text of the tokens from one up to another, as written, but for comments.
func (s *source) between(from, end int) string {
	var b strings.Builder
	for i := from; i < end; i++ {
		w := s.tokens[i]
		if b.Len() > 0 {
			b.WriteString(blank(s.text[s.tokens[i-1].end:w.pos]))
		}
		b.WriteString(s.text[w.pos:w.end])
	}
	return b.String()
}

// put makes words to put into the statement behind its last token.
func (s *source) put(words ...string) []word {
	var list []word
	end := s.tokens[len(s.tokens)-1].end
	for _, w := range words {
		list = append(list, word{kind: token.TokenIdent, pos: end, end: end, upper: w})
	}
	return list
}

// blank is what stands between two tokens: white space as it is, a space for a comment.
func blank(between string) string {
	if strings.TrimSpace(between) == "" {
		return between
	}
	return " "
}

// nesting measures how deep a recursive parser would go: parentheses and
// brackets, CASE, types in angle brackets, and runs of prefix operators.
type nesting struct {
	open, angle, run int
	last             string
}

func (n *nesting) add(w *word) {
	kind := string(w.kind)
	prefix := false
	switch {
	case kind == "(" || kind == "[" || kind == "{" || kind == "CASE":
		n.open++
	case kind == ")" || kind == "]" || kind == "}" || kind == "END":
		n.open = max(0, n.open-1)
	case kind == "<" && (n.last == "ARRAY" || n.last == "STRUCT"):
		n.angle++
	case kind == ">":
		n.angle = max(0, n.angle-1)
	case kind == ">>":
		n.angle = max(0, n.angle-2)
	case kind == "NOT" || kind == "-" || kind == "+" || kind == "~" || kind == "INTERVAL" || kind == "->":
		prefix = true
	}
	if prefix {
		n.run++
	} else {
		n.run = 0
	}
	n.last = kind
}

func (n *nesting) deepest() int { return n.open + n.angle + n.run }
