package text

import (
	"strings"
	"unicode/utf8"

	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// Likes has the LIKE operators.
var Likes = []fn.Record{
	{Name: "$like", Doc: "text LIKE pattern: % stands for any text, _ for one character or byte, \\ takes what follows as it is.", Overloads: []fn.Overload{
		fn.On("STRING, STRING -> BOOL", fn.ByType(like)),
		fn.On("BYTES, BYTES -> BOOL", fn.ByType(like)),
	}},
}

func like(f *tree.Function) fn.Body {
	compiled := new(fn.Memo[likePattern])
	compile := func(pattern string) (likePattern, error) { return compileLike(pattern, f.Args[0].Kind) }
	return fn.Strict(func(_ *fn.Context, a []value.Value) (value.Value, error) {
		p, err := compiled.Get(a[1].AsString(), compile)
		if err != nil {
			return value.Value{}, err
		}
		return fn.OfBool(p.matches(a[0].AsString()))
	})
}

// likePattern is a pattern split at each %. A text matches if it consists of pieces[0], any text, pieces[1], and so
// on up to the last piece.
type likePattern struct {
	pieces []likePiece
	bytes  bool // _ matches a byte, not a character
}

// likePiece is a piece of a pattern, split at each _. It matches piece[0], any character, piece[1], any character,
// and so on.
type likePiece []string

func compileLike(pattern string, kind value.Kind) (likePattern, error) {
	p := likePattern{pieces: []likePiece{{""}}, bytes: kind == value.Bytes}
	for i := 0; i < len(pattern); i++ {
		piece := &p.pieces[len(p.pieces)-1]
		switch c := pattern[i]; c {
		case '%':
			p.pieces = append(p.pieces, likePiece{""})
		case '_':
			*piece = append(*piece, "")
		case '\\':
			if i++; i == len(pattern) {
				return p, usererror.BadArgument("LIKE pattern ends with a backslash")
			}
			c = pattern[i]
			fallthrough
		default:
			(*piece)[len(*piece)-1] += string([]byte{c})
		}
	}
	return p, nil
}

func (p *likePattern) matches(s string) bool {
	last := len(p.pieces) - 1
	if last == 0 {
		n, ok := p.pieces[0].prefix(s, p.bytes)
		return ok && n == len(s)
	}
	n, ok := p.pieces[0].prefix(s, p.bytes)
	if !ok {
		return false
	}
	s = s[n:]
	// If each piece is matched as far left as possible, the most text remains for the pieces after it.
	for _, piece := range p.pieces[1:last] {
		if n, ok = piece.search(s, p.bytes); !ok {
			return false
		}
		s = s[n:]
	}
	return p.pieces[last].suffix(s, p.bytes)
}

// prefix returns the length in bytes of the beginning of s that the piece matches. ok is false if the piece does not
// match there.
func (piece likePiece) prefix(s string, bytes bool) (n int, ok bool) {
	for i, literal := range piece {
		if i > 0 {
			if n == len(s) {
				return 0, false
			}
			n += likeSize(s[n:], bytes)
		}
		if !strings.HasPrefix(s[n:], literal) {
			return 0, false
		}
		n += len(literal)
	}
	return n, true
}

// search returns the end of the leftmost match of the piece in s.
func (piece likePiece) search(s string, bytes bool) (end int, ok bool) {
	if len(piece) == 1 {
		i := strings.Index(s, piece[0])
		return i + len(piece[0]), i >= 0
	}
	for i := 0; i <= len(s); i += likeSize(s[i:], bytes) {
		if n, ok := piece.prefix(s[i:], bytes); ok {
			return i + n, true
		}
		if i == len(s) {
			break
		}
	}
	return 0, false
}

func (piece likePiece) suffix(s string, bytes bool) bool {
	for i := len(piece) - 1; i >= 0; i-- {
		if !strings.HasSuffix(s, piece[i]) {
			return false
		}
		if s = s[:len(s)-len(piece[i])]; i > 0 {
			if s == "" {
				return false
			}
			size := 1
			if !bytes {
				_, size = utf8.DecodeLastRuneInString(s)
			}
			s = s[:len(s)-size]
		}
	}
	return true
}

func likeSize(s string, bytes bool) int {
	if bytes || s == "" {
		return 1
	}
	_, size := utf8.DecodeRuneInString(s)
	return size
}
