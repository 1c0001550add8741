package analyze

import (
	"context"
	"strconv"
	"time"

	"github.com/goccy/go-googlesql"

	"github.com/crowfoot-db/crowfoot/value"
)

// LiteralTypes returns the types that the literals of a statement have in their context. For example, '2024-01-02' is a
// DATE if it is compared with a DATE. If GoogleSQL's library does not record where a literal stands in sql,
// LiteralTypes returns the type that the literal has by its spelling (Literal.Type).
func (a *Analyzer) LiteralTypes(ctx context.Context, sql string, params map[string]*value.Type, literals []Literal) ([]*value.Type, error) {
	types := make([]*value.Type, len(literals))
	w := &walker{catalog: a.catalog, literals: make(map[int]**value.Type, len(literals))}
	for i, l := range literals {
		types[i] = l.Type
		w.literals[l.End] = &types[i]
	}
	w.declare(params)
	weight, err := guard(sql, a.columns)
	if err != nil {
		return nil, err
	}
	err = a.with(ctx, weight, sql, func(l *library) { w.analyze(l, sql) })
	return types, err
}

// typed records t as the type of the literal n, if LiteralTypes must return the type of n.
func (w *walker) typed(n *googlesql.ResolvedLiteral, t *value.Type) {
	at := get(n.GetParseLocationRangeOrNULL())
	if at == nil {
		return
	}
	if into := w.literals[int(get(get(at.End()).GetByteOffset()))]; into != nil {
		*into = t
	}
}

// castLiteral records t, the type to which the cast n converts, as the type of the literal that n casts. The library
// returns such a cast, and not just a literal of type t, if it was told not to fold casts of literals (walker.options).
// A literal that is cast to TIMESTAMP stays a STRING, since its value depends on the time zone.
func (w *walker) castLiteral(n *googlesql.ResolvedCast, t *value.Type) {
	if literal, ok := get(n.Expr()).(*googlesql.ResolvedLiteral); ok && t.Kind != value.Timestamp {
		w.typed(literal, t)
	}
}

// As returns the literal as a value of type t. It returns false if the literal is not written in the plainest form of
// type t, because GoogleSQL might read any other form as another value.
func (l *Literal) As(t *value.Type) (value.Value, bool) {
	switch l.Type.Kind {
	case value.String:
		return stringAs(l.Text, t)
	case value.Int64:
		return integerAs(l.Text, t)
	}
	return fractionAs(l.Text, t)
}

func stringAs(text string, t *value.Type) (value.Value, bool) {
	switch t.Kind {
	case value.String:
		return value.OfString(text), true
	case value.Date:
		days, err := value.ParseDate(text)
		return value.OfDate(days), err == nil && len(text) == len(time.DateOnly)
	case value.Timestamp:
		v, err := value.ParseTimestampZ(text) // a text in another form may depend on a time zone
		return v, err == nil
	case value.UUID:
		u, err := value.ParseUUID(text)
		return value.OfUUID(u), err == nil && len(text) == uuidLength
	}
	return value.Value{}, false
}

// uuidLength is the number of characters of a UUID with hyphens and without braces.
const uuidLength = 36

func integerAs(text string, t *value.Type) (value.Value, bool) {
	const exact = 1 << 53 // each integer up to this one has an exact FLOAT64
	i, err := strconv.ParseInt(text, 10, 64)
	switch t.Kind {
	case value.Int64:
		return value.OfInt64(i), err == nil
	case value.Float64:
		return value.OfFloat64(float64(i)), err == nil && -exact <= i && i <= exact
	case value.Numeric:
		return value.OfNumeric(value.DecimalFromInt64(i)), err == nil
	}
	return value.Value{}, false
}

func fractionAs(text string, t *value.Type) (value.Value, bool) {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || f == 0 && text[0] == '-' {
		return value.Value{}, false
	}
	switch t.Kind {
	case value.Float64:
		return value.OfFloat64(f), true
	case value.Numeric:
		d, err := value.ParseDecimalStrict(text)
		rounded, ok := value.DecimalFromFloat64(f)
		return value.OfNumeric(d), err == nil && ok && d == rounded // the text and its FLOAT64 give the same NUMERIC
	}
	return value.Value{}, false
}
