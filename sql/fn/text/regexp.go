package text

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"unicode/utf8"

	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// Regexps has the functions of regular expressions. Go's package regexp has the same syntax as RE2, which GoogleSQL
// uses. In BYTES, each byte is a character.
var Regexps = []fn.Record{
	{Name: "regexp_contains", Doc: "Whether a regular expression matches a part of the text.", Overloads: []fn.Overload{
		fn.On("STRING, STRING -> BOOL", fn.ByType(regexpContains)),
		fn.On("BYTES, BYTES -> BOOL", fn.ByType(regexpContains)),
	}},
	{Name: "regexp_extract", Doc: "REGEXP_EXTRACT(text, regexp, position, occurrence): what the regular expression, or its group, matches for the n-th time; NULL if it does not.",
		Overloads: []fn.Overload{
			fn.On("STRING, STRING, ?INT64, ?INT64 -> STRING", fn.ByType(regexpExtract)),
			fn.On("BYTES, BYTES, ?INT64, ?INT64 -> BYTES", fn.ByType(regexpExtract)),
		}},
	{Name: "regexp_extract_all", Doc: "All that the regular expression, or its group, matches.", Overloads: []fn.Overload{
		fn.On("STRING, STRING -> ARRAY<STRING>", fn.ByType(regexpExtractAll)),
		fn.On("BYTES, BYTES -> ARRAY<BYTES>", fn.ByType(regexpExtractAll)),
	}},
	{Name: "regexp_replace", Doc: "REGEXP_REPLACE(text, regexp, replacement): each match replaced; \\0 to \\9 stand for its groups.", Overloads: []fn.Overload{
		fn.On("STRING, STRING, STRING -> STRING", fn.ByType(regexpReplace)),
		fn.On("BYTES, BYTES, BYTES -> BYTES", fn.ByType(regexpReplace)),
	}},
}

// pattern is a compiled regular expression.
type pattern struct {
	re *regexp.Regexp
	// looksBack says that the pattern examines the text before a match (^, \b). Such a pattern must be matched
	// against the whole text, even to find matches after a position.
	looksBack bool
	// bytes says that the text is BYTES. Each byte is then matched as the character with that number.
	bytes bool
}

// patternCache compiles the patterns of one call in a statement, and keeps the last one for the next row.
type patternCache struct {
	kind  value.Kind
	cache fn.Memo[*pattern]
}

func newPatternCache(f *tree.Function) *patternCache { return &patternCache{kind: f.Args[0].Kind} }

func (c *patternCache) get(v value.Value) (*pattern, error) {
	return c.cache.Get(v.AsString(), c.compile)
}

func (c *patternCache) compile(text string) (*pattern, error) {
	p := &pattern{bytes: c.kind == value.Bytes}
	if p.bytes {
		text = latin1(text)
	}
	tree, err := syntax.Parse(text, syntax.Perl)
	if err == nil {
		p.re, err = regexp.Compile(text)
	}
	if err != nil {
		return nil, usererror.BadRegexp(regexpProblem(err))
	}
	p.looksBack = looksBack(tree)
	return p, nil
}

// re2Problems holds RE2's error messages that differ from those of Go.
var re2Problems = map[syntax.ErrorCode]string{
	syntax.ErrMissingBracket:        "missing ]",
	syntax.ErrMissingParen:          "missing )",
	syntax.ErrUnexpectedParen:       "unexpected )",
	syntax.ErrTrailingBackslash:     "trailing \\",
	syntax.ErrMissingRepeatArgument: "no argument for repetition operator",
	syntax.ErrInvalidRepeatSize:     "invalid repetition size",
	syntax.ErrInvalidRepeatOp:       "bad repetition operator",
	syntax.ErrInvalidPerlOp:         "invalid perl operator",
	syntax.ErrInvalidNamedCapture:   "invalid named capture group",
}

func regexpProblem(err error) string {
	var e *syntax.Error
	if !errors.As(err, &e) {
		return err.Error()
	}
	problem := string(e.Code)
	if words, ok := re2Problems[e.Code]; ok {
		problem = words
	}
	if e.Expr == "" || e.Code == syntax.ErrTrailingBackslash {
		return problem
	}
	return problem + ": " + e.Expr
}

func looksBack(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpBeginLine, syntax.OpBeginText, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return true
	}
	for _, sub := range re.Sub {
		if looksBack(sub) {
			return true
		}
	}
	return false
}

// latin1 returns a text with one character for each byte of s.
func latin1(s string) string {
	if fn.IsASCII(s) {
		return s
	}
	b := make([]byte, 0, 2*len(s))
	for i := range len(s) {
		b = utf8.AppendRune(b, rune(s[i]))
	}
	return string(b)
}

// subject returns the text in the form that the pattern is matched against.
func (p *pattern) subject(s string) string {
	if p.bytes {
		return latin1(s)
	}
	return s
}

// original converts a part of the subject back to a STRING or BYTES value.
func (p *pattern) original(s string) value.Value {
	if !p.bytes {
		return value.OfString(s)
	}
	if fn.IsASCII(s) {
		return fn.BytesOf(s)
	}
	b := make([]byte, 0, len(s))
	for _, r := range s {
		b = append(b, byte(r))
	}
	return value.OfBytes(b)
}

// extracted returns the part of a match that extraction functions return, as byte offsets in the subject. That is the
// pattern's group if it has exactly one, otherwise the whole match. start is -1 if the group matched nothing.
func (p *pattern) extracted(match []int) (start, end int) {
	if p.re.NumSubexp() == 1 {
		return match[2], match[3]
	}
	return match[0], match[1]
}

// each calls f for each match in s until f returns false. As in GoogleSQL, an empty match may directly follow another
// match. An empty match at the end of s is left out if s is not empty and another match precedes it. If the pattern
// looks back, the matches are those of Go's FindAll, in which no empty match directly follows another match. For such
// a pattern, an empty match at the end of s is always left out if s is not empty.
func (p *pattern) each(s string, f func(match []int) (more bool)) {
	if p.looksBack {
		for _, match := range p.re.FindAllStringSubmatchIndex(s, -1) {
			if match[0] == len(s) && match[0] > 0 && match[1] == match[0] && len(s) > 0 || !f(match) {
				return
			}
		}
		return
	}
	for position := 0; ; {
		match := p.re.FindStringSubmatchIndex(s[position:])
		if match == nil {
			return
		}
		for i := range match {
			if match[i] >= 0 {
				match[i] += position
			}
		}
		if !f(match) {
			return
		}
		if position = match[1]; match[0] == match[1] && position < len(s) {
			position += likeSize(s[position:], false)
		}
		if position >= len(s) {
			return
		}
	}
}

func (p *pattern) checkGroups() error {
	if p.re.NumSubexp() > 1 {
		return usererror.BadArgument("Regular expressions passed into extraction functions must not have more than 1 capturing group")
	}
	return nil
}

func regexpContains(f *tree.Function) fn.Body {
	patterns := newPatternCache(f)
	return fn.Strict(func(_ *fn.Context, a []value.Value) (value.Value, error) {
		p, err := patterns.get(a[1])
		if err != nil {
			return value.Value{}, err
		}
		return fn.OfBool(p.re.MatchString(p.subject(a[0].AsString())))
	})
}

func regexpExtract(f *tree.Function) fn.Body {
	patterns := newPatternCache(f)
	return fn.Strict(func(_ *fn.Context, a []value.Value) (value.Value, error) {
		p, err := patterns.get(a[1])
		if err != nil {
			return value.Value{}, err
		}
		s, start, _, err := p.nth(a)
		if err != nil || start < 0 {
			return value.Null(f.Type.Kind), err
		}
		return p.original(s), nil
	})
}

// nth finds a match for a function with two optional arguments: argument 2 is the position from which to search, and
// argument 3 is the number of the match. Both count from 1. nth returns the extracted text and its range in the
// subject. start is -1 if there is no such match.
func (p *pattern) nth(a []value.Value) (found string, start, end int, err error) {
	from, occurrence := int64(1), int64(1)
	if len(a) > 2 {
		from = a[2].AsInt64()
	}
	if len(a) > 3 {
		occurrence = a[3].AsInt64()
	}
	switch {
	case from < 1:
		return "", -1, -1, usererror.BadArgument("Position must be positive")
	case occurrence < 1:
		return "", -1, -1, usererror.BadArgument("Occurrence must be positive")
	}
	if err := p.checkGroups(); err != nil {
		return "", -1, -1, err
	}
	s := p.subject(a[0].AsString())
	skipped := charOffset(s, from-1)
	if start, end = -1, -1; skipped == len(s) && from > 1 {
		return "", start, end, nil
	}
	s = s[skipped:]
	p.each(s, func(match []int) bool {
		if occurrence--; occurrence == 0 {
			start, end = p.extracted(match)
		}
		return occurrence > 0
	})
	if start < 0 {
		return "", -1, -1, nil
	}
	return s[start:end], start + skipped, end + skipped, nil
}

func regexpExtractAll(f *tree.Function) fn.Body {
	patterns := newPatternCache(f)
	return fn.Strict(func(_ *fn.Context, a []value.Value) (value.Value, error) {
		p, err := patterns.get(a[1])
		if err != nil {
			return value.Value{}, err
		}
		if err := p.checkGroups(); err != nil {
			return value.Value{}, err
		}
		s := p.subject(a[0].AsString())
		found := []value.Value{}
		p.each(s, func(match []int) bool {
			start, end := p.extracted(match)
			if start < 0 {
				start, end = 0, 0
			}
			found = append(found, p.original(s[start:end]))
			return true
		})
		return value.OfArray(found), nil
	})
}

func regexpReplace(f *tree.Function) fn.Body {
	patterns := newPatternCache(f)
	return fn.Strict(func(_ *fn.Context, a []value.Value) (value.Value, error) {
		p, err := patterns.get(a[1])
		if err != nil {
			return value.Value{}, err
		}
		s, rewrite := p.subject(a[0].AsString()), p.subject(a[2].AsString())
		if err := p.checkRewrite(rewrite); err != nil {
			return value.Value{}, err
		}
		var out []byte
		last := 0
		for _, match := range p.re.FindAllStringSubmatchIndex(s, -1) {
			out = append(out, s[last:match[0]]...)
			out = appendRewrite(out, rewrite, s, match)
			if last = match[1]; len(out) > maxOutput {
				return fn.BadArgument("REGEXP_REPLACE: exceeded maximum output length")
			}
		}
		return p.original(string(append(out, s[last:]...))), nil
	})
}

func (p *pattern) checkRewrite(rewrite string) error {
	groups := 0
	for i := 0; i < len(rewrite); i++ {
		if rewrite[i] != '\\' {
			continue
		}
		i++
		switch {
		case i < len(rewrite) && rewrite[i] >= '0' && rewrite[i] <= '9':
			groups = max(groups, int(rewrite[i]-'0'))
		case i == len(rewrite):
			return usererror.BadArgument("Invalid REGEXP_REPLACE pattern: Rewrite schema error: '\\' not allowed at end.")
		case rewrite[i] != '\\':
			return usererror.BadArgument("Invalid REGEXP_REPLACE pattern: Rewrite schema error: '\\' must be followed by a digit or '\\'.")
		}
	}
	if n := p.re.NumSubexp(); groups > n {
		return usererror.BadArgument(fmt.Sprintf("Invalid REGEXP_REPLACE pattern: Rewrite schema requests %d matches, "+
			"but the regexp only has %d parenthesized subexpressions.", groups, n))
	}
	return nil
}

// appendRewrite appends the replacement of a match, with \0 to \9 replaced by groups. checkRewrite must have accepted
// rewrite.
func appendRewrite(dst []byte, rewrite, s string, match []int) []byte {
	for i := 0; i < len(rewrite); i++ {
		if rewrite[i] != '\\' {
			dst = append(dst, rewrite[i])
			continue
		}
		if i++; rewrite[i] == '\\' {
			dst = append(dst, '\\')
			continue
		}
		group := 2 * int(rewrite[i]-'0')
		if match[group] >= 0 {
			dst = append(dst, s[match[group]:match[group+1]]...)
		}
	}
	return dst
}
