package operators

import (
	"cmp"

	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/value"
)

// Comparison has the comparison operators. The operands of a call have the same type, and the analyzer has checked
// that values of this type can be compared.
var Comparison = []fn.Record{
	{Name: "$equal", Leakproof: true, Doc: "x = y. NaN equals nothing.", Overloads: []fn.Overload{fn.On("ANY, ANY -> BOOL", fn.ByType(equal))}},
	{Name: "$not_equal", Leakproof: true, Doc: "x != y.", Overloads: []fn.Overload{fn.On("ANY, ANY -> BOOL", fn.ByType(notEqual))}},
	{Name: "$less", Leakproof: true, Doc: "x < y. FALSE for NaN.", Overloads: []fn.Overload{fn.On("ANY, ANY -> BOOL", fn.ByType(less))}},
	{Name: "$less_or_equal", Leakproof: true, Doc: "x <= y. FALSE for NaN.", Overloads: []fn.Overload{fn.On("ANY, ANY -> BOOL", fn.ByType(lessOrEqual))}},
	{Name: "$greater", Leakproof: true, Doc: "x > y. FALSE for NaN.", Overloads: []fn.Overload{fn.On("ANY, ANY -> BOOL", fn.ByType(greater))}},
	{Name: "$greater_or_equal", Leakproof: true, Doc: "x >= y. FALSE for NaN.", Overloads: []fn.Overload{fn.On("ANY, ANY -> BOOL", fn.ByType(greaterOrEqual))}},
	{Name: "$between", Leakproof: true, Doc: "x BETWEEN y AND z: y <= x AND x <= z.", Overloads: []fn.Overload{fn.On("ANY, ANY, ANY -> BOOL", fn.ByType(between))}},
	{Name: "$in", Leakproof: true, Doc: "x IN (y, z, ...): TRUE if x equals one, else NULL if a comparison is NULL, else FALSE.", Overloads: []fn.Overload{fn.On("ANY, ANY... -> BOOL", fn.ByType(in))}},
	{Name: "$in_array", Leakproof: true, Doc: "x IN UNNEST(array), as IN. FALSE for a NULL or empty array.", Overloads: []fn.Overload{fn.On("ANY, ARRAY -> BOOL", fn.ByType(inArray))}},
	{Name: "$is_distinct_from", Leakproof: true, Doc: "x IS DISTINCT FROM y: as GROUP BY tells values apart, NULL equals NULL.", Overloads: []fn.Overload{fn.On("ANY, ANY -> BOOL", fn.ByType(distinct))}},
	{Name: "$is_not_distinct_from", Leakproof: true, Doc: "x IS NOT DISTINCT FROM y.", Overloads: []fn.Overload{fn.On("ANY, ANY -> BOOL", fn.ByType(notDistinct))}},
	{Name: "greatest", Leakproof: true, Doc: "The greatest argument; NULL if one is NULL, NaN if one is NaN.", Overloads: []fn.Overload{fn.On("ANY, ANY... -> ANY", fn.ByType(func(f *tree.Function) fn.Body { return extreme(f, 1) }))}},
	{Name: "least", Leakproof: true, Doc: "The least argument; NULL if one is NULL, NaN if one is NaN.", Overloads: []fn.Overload{fn.On("ANY, ANY... -> ANY", fn.ByType(func(f *tree.Function) fn.Body { return extreme(f, -1) }))}},
}

// holds makes the body of a comparison of two values of type t. The three flags say whether the comparison is TRUE if
// the first value is less than, equal to, or greater than the second value. Common types have bodies of their own,
// which need not look at the type for each row.
func holds(t *value.Type, less, equal, greater bool) fn.Body {
	switch t.Kind {
	case value.Int64, value.Date, value.Bool, value.Enum:
		return fn.Strict(func(_ *fn.Context, a []value.Value) (value.Value, error) {
			x, y := a[0].AsInt64(), a[1].AsInt64()
			return fn.OfBool(x < y && less || x == y && equal || x > y && greater)
		})
	case value.Float64, value.Float32:
		return fn.Strict(func(_ *fn.Context, a []value.Value) (value.Value, error) {
			x, y := a[0].AsFloat64(), a[1].AsFloat64()
			return fn.OfBool(x < y && less || x == y && equal || x > y && greater || (x != x || y != y) && less && greater)
		})
	case value.String, value.Bytes:
		return fn.Strict(func(_ *fn.Context, a []value.Value) (value.Value, error) {
			c := cmp.Compare(a[0].AsString(), a[1].AsString())
			return fn.OfBool(c < 0 && less || c == 0 && equal || c > 0 && greater)
		})
	}
	return fn.Strict(func(_ *fn.Context, a []value.Value) (value.Value, error) {
		c := value.Compare(a[0], a[1], t)
		return fn.OfBool(c < 0 && less || c == 0 && equal || c > 0 && greater)
	})
}

func less(f *tree.Function) fn.Body           { return holds(f.Args[0], true, false, false) }
func lessOrEqual(f *tree.Function) fn.Body    { return holds(f.Args[0], true, true, false) }
func greater(f *tree.Function) fn.Body        { return holds(f.Args[0], false, false, true) }
func greaterOrEqual(f *tree.Function) fn.Body { return holds(f.Args[0], false, true, true) }

func equal(f *tree.Function) fn.Body {
	t := f.Args[0]
	switch {
	case t.Kind == value.String || t.Kind == value.Bytes:
		return fn.Strict(func(_ *fn.Context, a []value.Value) (value.Value, error) {
			return fn.OfBool(a[0].AsString() == a[1].AsString())
		})
	case IsComposite(t):
		return fn.Strict(func(_ *fn.Context, a []value.Value) (value.Value, error) {
			return equalComposite(a[0], a[1], t, true)
		})
	}
	return holds(t, false, true, false)
}

func notEqual(f *tree.Function) fn.Body {
	t := f.Args[0]
	switch {
	case t.Kind == value.String || t.Kind == value.Bytes:
		return fn.Strict(func(_ *fn.Context, a []value.Value) (value.Value, error) {
			return fn.OfBool(a[0].AsString() != a[1].AsString())
		})
	case IsComposite(t):
		return fn.Strict(func(_ *fn.Context, a []value.Value) (value.Value, error) {
			return equalComposite(a[0], a[1], t, false)
		})
	}
	return holds(t, true, false, true)
}

// IsComposite reports whether t is an ARRAY or STRUCT, whose values may contain NULLs and NaNs.
func IsComposite(t *value.Type) bool { return t.Kind == value.Array || t.Kind == value.Struct }

func equalComposite(a, b value.Value, t *value.Type, want bool) (value.Value, error) {
	equal, unknown := value.SQLEqual(a, b, t)
	if unknown {
		return fn.Null(value.Bool)
	}
	return fn.OfBool(equal == want)
}

// Equality returns a Go function that compares values of type t by =. The values may be NULL; unknown is true if the
// result of = is NULL.
func Equality(t *value.Type) func(a, b value.Value) (equal, unknown bool) {
	return func(a, b value.Value) (bool, bool) {
		if a.IsNull() || b.IsNull() {
			return false, true
		}
		return value.SQLEqual(a, b, t)
	}
}

func in(f *tree.Function) fn.Body {
	equals := Equality(f.Args[0])
	return fn.Nullable(func(_ *fn.Context, a []value.Value) (value.Value, error) {
		return among(a[0], a[1:], equals)
	})
}

func inArray(f *tree.Function) fn.Body {
	equals := Equality(f.Args[0])
	return fn.Nullable(func(_ *fn.Context, a []value.Value) (value.Value, error) {
		if a[1].IsNull() {
			return fn.OfBool(false)
		}
		return among(a[0], a[1].AsList(), equals)
	})
}

func among(x value.Value, list []value.Value, equals func(a, b value.Value) (equal, unknown bool)) (value.Value, error) {
	result := value.OfBool(false)
	for _, e := range list {
		switch equal, unknown := equals(x, e); {
		case unknown:
			result = value.Null(value.Bool)
		case equal:
			return fn.OfBool(true)
		}
	}
	return result, nil
}

// between makes the body of BETWEEN. The result is FALSE if one of the two comparisons is FALSE, even if the other
// comparison is NULL.
func between(f *tree.Function) fn.Body {
	order := ordering(f.Args[0])
	atMost := func(x, y value.Value) (holds, unknown bool) {
		if x.IsNull() || y.IsNull() {
			return false, true
		}
		return order(x, y) <= 0, false
	}
	return fn.Nullable(func(_ *fn.Context, a []value.Value) (value.Value, error) {
		low, lowUnknown := atMost(a[1], a[0])
		high, highUnknown := atMost(a[0], a[2])
		switch {
		case !low && !lowUnknown || !high && !highUnknown:
			return fn.OfBool(false)
		case lowUnknown || highUnknown:
			return fn.Null(value.Bool)
		}
		return fn.OfBool(true)
	})
}

// unordered is the result of the functions that ordering() returns, if an operand is NaN. Then every comparison except
// != is FALSE.
const unordered = 2

// ordering returns a function that compares values of a type: the result is -1, 0, 1, or unordered. The values must
// not be NULL.
func ordering(t *value.Type) func(x, y value.Value) int {
	switch t.Kind {
	case value.Int64, value.Date, value.Bool, value.Enum:
		return func(x, y value.Value) int { return cmp.Compare(x.AsInt64(), y.AsInt64()) }
	case value.String, value.Bytes:
		return func(x, y value.Value) int { return cmp.Compare(x.AsString(), y.AsString()) }
	case value.Float64, value.Float32:
		return func(x, y value.Value) int {
			if x.IsNaN() || y.IsNaN() {
				return unordered
			}
			return cmp.Compare(x.AsFloat64(), y.AsFloat64())
		}
	}
	return func(x, y value.Value) int { return value.Compare(x, y, t) }
}

func distinct(f *tree.Function) fn.Body {
	t := f.Args[0]
	return fn.Nullable(func(_ *fn.Context, a []value.Value) (value.Value, error) {
		return fn.OfBool(!value.Equal(a[0], a[1], t))
	})
}

func notDistinct(f *tree.Function) fn.Body {
	t := f.Args[0]
	return fn.Nullable(func(_ *fn.Context, a []value.Value) (value.Value, error) {
		return fn.OfBool(value.Equal(a[0], a[1], t))
	})
}

// extreme makes the body of GREATEST (sign 1) and LEAST (sign -1).
func extreme(f *tree.Function, sign int) fn.Body {
	t := f.Type
	floating := t.Kind == value.Float64 || t.Kind == value.Float32
	return fn.Strict(func(_ *fn.Context, a []value.Value) (value.Value, error) {
		best := a[0]
		for _, v := range a {
			if floating && v.IsNaN() {
				return v, nil
			}
			if value.Compare(v, best, t) == sign {
				best = v
			}
		}
		return best, nil
	})
}
