package analyze

import (
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/cloudspannerecosystem/memefish/token"

	"github.com/crowfoot-db/crowfoot/usererror"
)

// refusal recognizes failures of the library itself by these texts: the error begins with trapped or contains
// brokenInvariant.
const (
	trapped         = "wasm trap: "
	brokenInvariant = "RET_CHECK failure"
)

// refusal turns the library's error about a statement into the error that the user sees. If the statement uses a
// feature that Spanner has and Crowfoot lacks, that error is UNIMPLEMENTED, with the feature's name. Otherwise it is
// INVALID_ARGUMENT, with the library's message. If the library itself broke down, refusal returns err unchanged. If the
// error is about the text of a view or function, refusal removes line and column, because they tell the user nothing.
func (w *walker) refusal(err error) error {
	sql, text := w.sql, err.Error()
	if strings.HasPrefix(text, trapped) || strings.Contains(text, brokenInvariant) {
		return err
	}
	if missing := unimplemented(sql, text); missing != nil {
		return missing
	}
	text = withHint(sql, text)
	for _, group := range []string{userGroup, spannerGroup} {
		text = strings.ReplaceAll(text, "function "+strings.ToUpper(group)+":", "function ")
	}
	if w.nested {
		text = place.ReplaceAllString(text, "")
	}
	return usererror.InvalidSQL(withoutFarSuggestion(text))
}

// The expression place matches a line and column of the SQL text within an error message. The expression lastPlace
// matches them at the end of a message, where they are the position of the error itself.
var (
	place     = regexp.MustCompile(` ?\[at (\d+):(\d+)\]`)
	lastPlace = regexp.MustCompile(`\[at (\d+):(\d+)\]$`)
)

// pointed returns an error for the user with the line and column at which its message points, and with an excerpt of
// sql. It returns other errors unchanged.
func pointed(sql string, err error) error {
	user := (*usererror.Error)(nil)
	if !errors.As(err, &user) {
		return err
	}
	at := lastPlace.FindStringSubmatch(user.Message)
	if at == nil {
		return err
	}
	line, _ := strconv.Atoi(at[1])
	column, _ := strconv.Atoi(at[2])
	return user.PointAt(sql, usererror.Offset(sql, line, column))
}

var (
	statementRefused = regexp.MustCompile(`^Statement not supported: \w+`)
	typeNotFound     = regexp.MustCompile(`^Type not found: (\S+)`)
	keywordRefused   = regexp.MustCompile(`^Syntax error: Unexpected keyword \w+`)
	ddlWords         = []string{"CREATE", "ALTER", "DROP", "GRANT", "REVOKE", "RENAME", "ANALYZE"}
)

// withHint makes the library's errors more helpful. It replaces the library's names of statements by the user's words,
// names Spanner's type where the user wrote a type of another database, and explains reserved words. It names Spanner's
// type without a length, as in STRING and not STRING(MAX), since CAST takes no length.
func withHint(sql, text string) string {
	if at := statementRefused.FindStringIndex(text); at != nil {
		s := scanner{sql: sql}
		s.next()
		word := strings.ToUpper(s.token)
		if slices.Contains(ddlWords, word) {
			word += " is DDL, which is sent to UpdateDatabaseDdl"
		}
		return "Statement not supported: " + word + text[at[1]:]
	}
	if m := typeNotFound.FindStringSubmatchIndex(text); m != nil {
		hint, _, _ := strings.Cut(usererror.TypeHint(text[m[2]:m[3]]), "(")
		hint, _, _ = strings.Cut(hint, " GENERATED")
		return text[:m[3]] + hint + text[m[3]:]
	}
	if m := keywordRefused.FindStringIndex(text); m != nil {
		if name := meantAsName(sql, text); name != "" {
			return text[:m[1]] + ", a reserved word: as a name it is written `" + name + "`" + text[m[1]:]
		}
	}
	return text
}

// meantAsName returns the reserved word at which the syntax error text points, if the user seems to have meant the word
// as a name. That is the case if the token after the reserved word is one that follows names. It is also the case if
// the token before the reserved word is one that precedes names, such as FROM. Otherwise, or if the reserved word
// begins sql, meantAsName returns "".
func meantAsName(sql, text string) string {
	at := lastPlace.FindStringSubmatch(text)
	if at == nil {
		return ""
	}
	line, _ := strconv.Atoi(at[1])
	column, _ := strconv.Atoi(at[2])
	pos := usererror.Offset(sql, line, column)
	before := ""
	s := scanner{sql: sql}
	for s.next() && s.start < pos {
		before = strings.ToUpper(s.token)
	}
	name := s.token
	if before == "" || !token.IsKeyword(strings.ToUpper(name)) {
		return ""
	}
	if slices.Contains([]string{"FROM", "JOIN", "INTO", "UPDATE", "."}, before) ||
		!s.next() || slices.Contains([]string{",", ")", "=", "<", ">", "!", ".", "FROM", "AS", "IN", "IS", "LIKE", "BETWEEN", ";"}, strings.ToUpper(s.token)) {
		return name
	}
	return ""
}

// unimplementedFunctions are the functions of Spanner's reference that Crowfoot lacks: those of full-text search.
var unimplementedFunctions = map[string]bool{
	"DEBUG_TOKENLIST": true, "SCORE": true, "SCORE_NGRAMS": true, "SEARCH": true, "SEARCH_NGRAMS": true, "SEARCH_SUBSTRING": true,
	"SNIPPET": true, "TOKEN": true, "TOKENIZE_BOOL": true, "TOKENIZE_FULLTEXT": true, "TOKENIZE_JSON": true,
	"TOKENIZE_NGRAMS": true, "TOKENIZE_NUMBER": true, "TOKENIZE_SUBSTRING": true, "TOKENLIST_CONCAT": true,
}

// The beginnings of error messages of the library.
const (
	graphRefused = "Graph query is not supported"
	syntaxError  = "Syntax error: "
)

var (
	functionNotFound = regexp.MustCompile("^Function not found: `?(\\w+)`?")
	// tableFunctionNotFound matches the library's error for the table-valued functions of machine learning, which
	// Spanner has and Crowfoot lacks.
	tableFunctionNotFound = regexp.MustCompile(`^Table-valued function not found: (?i:(ML\.\w+))`)
)

// unimplemented returns the error for a statement that the library refuses because it uses a feature of Spanner that
// Crowfoot lacks; nil if the library has another reason. text is the library's error.
func unimplemented(sql, text string) *usererror.Error {
	if m := functionNotFound.FindStringSubmatch(text); m != nil {
		if name := strings.ToUpper(m[1]); unimplementedFunctions[name] {
			return usererror.FunctionUnimplemented(name)
		}
		return nil
	}
	if m := tableFunctionNotFound.FindStringSubmatch(text); m != nil {
		return usererror.SQLUnimplemented("Table-valued function " + m[1])
	}
	switch {
	case strings.HasPrefix(text, graphRefused):
		return usererror.SQLUnimplemented("GRAPH")
	case strings.HasPrefix(text, syntaxError) && callsGraphTable(sql):
		return usererror.SQLUnimplemented("GRAPH_TABLE")
	}
	return nil
}

// checkWindow refuses a WINDOW clause. Spanner has no window functions, but the library accepts the clause in a
// statement that calls none. It is enough to search for the token WINDOW, because that word is reserved.
func (w *walker) checkWindow() {
	if w.nested || !strings.Contains(strings.ToUpper(w.sql), "WINDOW") {
		return
	}
	s := scanner{sql: w.sql}
	for last := ""; s.next(); last = s.token {
		if strings.EqualFold(s.token, "WINDOW") && last != "." && last != "@" {
			refuse(usererror.WindowClause(usererror.PositionOf(w.sql, s.start)))
		}
	}
}

// callsGraphTable reports whether a text has GRAPH_TABLE(...). Since graph queries are turned off, the library
// reports a syntax error in such a text.
func callsGraphTable(sql string) bool {
	s := scanner{sql: sql}
	for last := ""; s.next(); last = s.token {
		if s.token == "(" && strings.EqualFold(last, "GRAPH_TABLE") {
			return true
		}
	}
	return false
}

// suggestion matches the two names in "Function not found: SUBST; Did you mean substr? [at 1:8]".
var suggestion = regexp.MustCompile(`: (\S+); Did you mean (\S+)\?`)

// withoutFarSuggestion removes a suggestion from the library's message if it is not similar enough to the name that
// was not found. The library suggests pow for NOW, since it accepts names that differ in half of their letters.
func withoutFarSuggestion(text string) string {
	m := suggestion.FindStringSubmatchIndex(text)
	if m == nil || isNear(text[m[2]:m[3]], text[m[4]:m[5]]) {
		return text
	}
	return text[:m[3]] + text[m[1]:]
}

// isNear reports whether its first parameter may be a misspelling of its second parameter, because they are similar.
func isNear(name, want string) bool {
	_, near := nearness(name, want)
	return near
}

// nearness compares two names. The result distance tells how many letters must be changed, inserted or deleted to turn
// one into the other. The result near is true if that number is less than a third of the letters of the longer name, or
// if one name is a prefix of the other. The result distance is valid only if near is true.
func nearness(name, want string) (distance int, near bool) {
	a, b := []rune(strings.ToUpper(unquoted(name))), []rune(strings.ToUpper(unquoted(want)))
	longer, shorter := max(len(a), len(b)), min(len(a), len(b))
	if slices.Equal(a[:shorter], b[:shorter]) {
		return longer - shorter, true
	}
	if 3*(longer-shorter) >= longer {
		return 0, false // the difference in length alone needs too many insertions or deletions
	}
	distance = editDistance(a, b)
	return distance, 3*distance < longer
}

// editDistance returns the Levenshtein distance of two words.
func editDistance(a, b []rune) int {
	row := make([]int, len(b)+1) // row[j] is the distance of the current prefix of a to b[:j]
	for j := range row {
		row[j] = j
	}
	for i, c := range a {
		diagonal := row[0]
		row[0] = i + 1
		for j, d := range b {
			change := diagonal
			if c != d {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
