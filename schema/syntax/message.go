package syntax

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/cloudspannerecosystem/memefish/token"
)

// These expressions match messages of the parser memefish, which names tokens in its own words: "expected token: ARRAY,
// <ident>, but: <eof>". Users get messages in the form of Cloud Spanner: "Expecting ')' but found 'y'".
var (
	expectation  = regexp.MustCompile(`^expect(?:ed)?:? (.*?)(?:,? (?:but|got)\b.*)?$`)
	parsersNames = regexp.MustCompile(`(^| )(?:privilege )?(?:token|identifier|ident|pseu[ds]o keyword|keyword|beginning of simple query)(?::? |$)`)
	separators   = regexp.MustCompile(`, | or |,$| +$`)
)

// tokenWords maps memefish's names for kinds of tokens to words for users.
var tokenWords = map[string]string{
	"<ident>": "a name", "<eof>": "the end of the statement", "<int>": "an integer", "<float>": "a number", "<string>": "a string", "<bytes>": "a bytes literal", "<param>": "a parameter",
}

// inUsersWords translates a message of the parser into words for users. at is the index of the token at which the
// parser stopped.
func (s *Statement) inUsersWords(reason string, at int) string {
	for at < len(s.tokens) && s.tokens[at].pos == s.tokens[at].end {
		at++ // skips a word that adapt has inserted
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
		written := s.Text[s.tokens[at].pos:s.tokens[at].end]
		return "Expecting a name but found " + found + ", a reserved word: as a name it is written `" + written + "`"
	}
	return "Expecting " + strings.Join(wanted, " or ") + " but found " + found
}

// wantedTokens returns the tokens that the parser would have accepted. A token is in quotes. A kind of tokens is
// described in words, such as: a name.
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

// otherReason translates a message of the parser that does not say what the parser expected.
func (s *Statement) otherReason(reason, found string) string {
	if strings.HasPrefix(reason, "unexpected token") || strings.HasPrefix(reason, "expect") {
		return "Unexpected " + strings.TrimPrefix(found, "the ")
	}
	return sentence(reason)
}

// sentence translates names of tokens in a message of the parser, and makes the first letter of the message a capital.
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

// quoted returns the text of the token with index at, in quotes, for a message. A literal has quotes of its own and
// gets no more.
func (s *Statement) quoted(at int) string {
	text := s.Text[s.tokens[at].pos:s.tokens[at].end]
	if strings.ContainsRune("'\"`", rune(text[0])) {
		return shortToken(text)
	}
	return "'" + shortToken(text) + "'"
}

// shortToken cuts a token to 40 bytes, for an error message.
func shortToken(text string) string {
	const longest = 40
	if len(text) <= longest {
		return text
	}
	return strings.ToValidUTF8(text[:longest], "") + "..."
}
