package schema

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"github.com/cloudspannerecosystem/memefish/token"

	"github.com/crowfoot-db/crowfoot/usererror"
)

// What is computed from a row is kept in many places: stored columns, keys and index entries hold it, constraints were checked with it, columnar copies and open
// transactions rely on it. It is good for as long as it is computed from the same. An origin is what all of these compare. The database's default time zone
// is no part of it: it changes only while there are no tables.

// origin is what the values of an expression are computed from, as hashes: a column that reads those before it, as each of them does, would be a text twice as long
// as theirs. Two expressions with the same origin have the same value in the same row.
type origin struct {
	text  string // of the expression, the columns that it reads and the functions that it calls
	types string // of the definitions of the PROTO and ENUM types that it may look into; "" if there are none
}

// computedFrom is the origin of an expression, which may be nil. It must be complete, and so must the columns that it reads.
func (e *Expr) computedFrom() origin {
	if e == nil {
		return origin{}
	}
	if known := e.origin.Load(); known != nil {
		return *known
	}
	var text, types strings.Builder
	text.WriteString(canonical(e.SQL))
	for _, c := range slices.SortedFunc(slices.Values(e.Uses), func(a, b *Column) int { return cmp.Compare(a.ID, b.ID) }) {
		of := c.computedFrom()
		text.WriteString("\n" + strconv.Itoa(int(c.ID)) + " " + of.text)
		types.WriteString(of.types)
	}
	for _, f := range e.Functions {
		text.WriteString("\n" + strconv.Itoa(int(f.ID)) + " " + canonical(f.Text()))
	}
	types.WriteString(e.definitions())
	o := origin{hashOf(text.String()), hashOf(types.String())}
	e.origin.Store(&o)
	return o
}

// hashOf is a text that differs from those of other texts; "" of "".
func hashOf(text string) string {
	if text == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// computedFrom is the origin of a column's values. Those that stand in the row itself are computed from nothing else.
func (c *Column) computedFrom() origin {
	o := origin{text: c.Type.String()}
	if c.Generated != nil && !c.Stored && c.KeyOrdinal < 0 {
		of := c.Generated.computedFrom()
		o.text, o.types = o.text+" AS "+of.text, of.types
	}
	return o
}

// ComputedFrom is the type of a column's values and, if they do not stand in the row itself, a hash of what they are computed from. Two versions of a column for
// which it is the same have the same value in the same row.
func (c *Column) ComputedFrom() string {
	o := c.computedFrom()
	return o.text + o.types
}

// canonical is an expression without what means nothing: white space, comments, and the case of keywords and names. That of names means something where they are
// members of JSON: behind a point, or in a STRUCT that may become JSON.
func canonical(sql string) string {
	folds := !containsWord(sql, "STRUCT")
	var words []string
	lexer := newLexer(sql)
	for last := token.TokenKind(""); ; last = lexer.Token.Kind {
		if lexer.next() != nil {
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

// compareComputed is for a table of the draft whose expressions may have got other values. What was computed with the old ones may stand in rows, keys and
// index entries only if it is the same, and existing rows must satisfy constraints as they are now.
func (d *draft) compareComputed(t *Table) error {
	before := d.old.TableByID(t.ID)
	for _, c := range t.Columns {
		old := before.columnByID(c.ID)
		if old == nil || old.Generated == nil || c.Generated == nil || !before.holds(old) {
			continue
		}
		was, is := old.Generated.computedFrom(), c.Generated.computedFrom()
		switch {
		case was == is:
		case was.text != is.text || old.Generated.isRedefined(c.Generated.bundle):
			return usererror.ChangeGeneratedExpression(t.FullName() + "." + c.Name)
		default: // types have got or lost fields or numbers
			d.validate(ValidateComputed, t, c, old)
		}
	}
	for _, ck := range t.Checks {
		at := slices.IndexFunc(before.Checks, func(old *Check) bool { return sameName(old.Name, ck.Name) })
		if at >= 0 && before.Checks[at].Expr.computedFrom() != ck.Expr.computedFrom() {
			d.change.Validations = append(d.change.Validations, Validation{Kind: ValidateCheck, Table: t, Check: ck, Replaces: before.Checks[at]})
		}
	}
	return nil
}
