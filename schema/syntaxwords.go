package schema

import (
	"regexp"
	"strings"

	"github.com/cloudspannerecosystem/memefish/token"
)

// expected is how the parser says what it wants: "expected token: ARRAY, <ident>, but: <eof>".
var expected = regexp.MustCompile(`^expected (?:token|pseudo keyword|identifier): (.*), but: (.*)$`)

// tokenWords are the parser's names of kinds of tokens as users know them.
var tokenWords = map[string]string{
	"<ident>": "a name", "<eof>": "the end of the statement", "<int>": "an integer", "<float>": "a number", "<string>": "a string", "<bytes>": "a bytes literal", "<param>": "a parameter",
}

// inUsersWords says what the parser has found wrong without its own words. found is the token of the text at which it stopped.
func inUsersWords(reason, found string) string {
	m := expected.FindStringSubmatch(reason)
	if m == nil {
		for name, word := range tokenWords {
			reason = strings.ReplaceAll(reason, name, word)
		}
		return reason
	}
	wanted := strings.Split(m[1], ", ")
	if m[1] == "," {
		wanted = []string{m[1]}
	}
	name := false
	for i, w := range wanted {
		name = name || w == "<ident>"
		if word, ok := tokenWords[w]; ok {
			wanted[i] = word
		}
	}
	if found == "" {
		found = tokenWords["<eof>"]
	}
	text := "Expected " + strings.Join(wanted, " or ") + " but got " + found
	if name && token.IsKeyword(strings.ToUpper(found)) {
		text += ", which is a reserved word: as a name it is written `" + found + "`"
	}
	return text
}
