package schema

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/cloudspannerecosystem/memefish/token"
)

// The parser's messages name its own kinds of tokens: "expected token: ARRAY, <ident>, but: <eof>". Users get those of Cloud Spanner:
// "Expecting ')' but found 'y'".
var (
	expectation  = regexp.MustCompile(`^expect(?:ed)?:? (.*?)(?:,? (?:but|got)\b.*)?$`)
	parsersNames = regexp.MustCompile(`(^| )(?:privilege )?(?:token|identifier|ident|pseu[ds]o keyword|keyword|beginning of simple query)(?::? |$)`)
	separators   = regexp.MustCompile(`, | or |,$| +$`)
)

// tokenWords are the parser's names of kinds of tokens as users know them.
var tokenWords = map[string]string{
	"<ident>": "a name", "<eof>": "the end of the statement", "<int>": "an integer", "<float>": "a number", "<string>": "a string", "<bytes>": "a bytes literal", "<param>": "a parameter",
}

// inUsersWords says what the parser has found wrong without its own words; at is the token of the text at which it stopped.
func (s *source) inUsersWords(reason string, at int) string {
	for at < len(s.tokens) && s.tokens[at].pos == s.tokens[at].end {
		at++ // a word that was put in
	}
	found, upper := tokenWords["<eof>"], ""
	if at < len(s.tokens) {
		found, upper = s.quoted(at), s.tokens[at].upper
	}
	if at == 1 && isAny(s.tokens[0].upper, "CREATE", "ALTER", "DROP") {
		return "Expecting the kind of an object, such as 'TABLE' or 'INDEX', but found " + found
	}
	m := expectation.FindStringSubmatch(reason)
	if m == nil {
		return s.otherReason(reason, found)
	}
	wanted := wantedTokens(m[1])
	switch isName := slices.Contains(wanted, tokenWords["<ident>"]); {
	case isName && slices.Contains(wanted, "'ARRAY'"):
		return "Expecting a type but found " + found
	case isName && upper == "ARRAY" && at+1 < len(s.tokens) && s.tokens[at+1].kind == "<":
		return "The elements of an array cannot be arrays"
	case isName && upper != "" && upper != "IF" && token.IsKeyword(upper):
		written := s.text[s.tokens[at].pos:s.tokens[at].end]
		return "Expecting a name but found " + found + ", a reserved word: as a name it is written `" + written + "`"
	}
	return "Expecting " + strings.Join(wanted, " or ") + " but found " + found
}

// wantedTokens are the tokens that the parser would take, in quotes, or words for kinds of them.
func wantedTokens(list string) (wanted []string) {
	if list = parsersNames.ReplaceAllString(list, "$1"); list == "," {
		return []string{"','"}
	}
	for _, w := range separators.Split(list, -1) {
		w = strings.Trim(w, `"'`)
		if word, ok := tokenWords[w]; ok {
			wanted = append(wanted, word)
		} else if w != "" {
			wanted = append(wanted, "'"+w+"'")
		}
	}
	return wanted
}

// otherReason is a message that does not say what the parser expected.
func (s *source) otherReason(reason, found string) string {
	if strings.HasPrefix(reason, "unexpected token") || strings.HasPrefix(reason, "expect") {
		return "Unexpected " + strings.TrimPrefix(found, "the ")
	}
	return sentence(reason)
}

// sentence begins a message of the parser or lexer with a capital letter.
func sentence(reason string) string {
	if strings.HasPrefix(reason, "number literal cannot follow identifier") {
		return "A name cannot begin with a digit"
	}
	for name, word := range tokenWords {
		reason = strings.ReplaceAll(reason, name, word)
	}
	first, size := utf8.DecodeRuneInString(reason)
	return string(unicode.ToUpper(first)) + reason[size:]
}

// quoted is a token for a message. A literal has quotes of its own.
func (s *source) quoted(at int) string {
	text := s.text[s.tokens[at].pos:s.tokens[at].end]
	if strings.ContainsRune("'\"`", rune(text[0])) {
		return shortToken(text)
	}
	return "'" + shortToken(text) + "'"
}

// shortToken cuts a token that a message quotes.
func shortToken(text string) string {
	const longest = 40
	if len(text) <= longest {
		return text
	}
	return strings.ToValidUTF8(text[:longest], "") + "..."
}
