package arrays

import (
	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/sql/fn/operators"
	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/value"
)

// Search has the functions that look for a value in an array, or for elements for which a lambda is TRUE. A NULL
// equals no value.
var Search = []fn.Record{
	{Name: "array_includes", Leakproof: true, Doc: "ARRAY_INCLUDES(array, x): whether an element equals x, or a lambda is TRUE of one.", Overloads: []fn.Overload{
		fn.On("ARRAY, LAMBDA -> BOOL", fn.Higher(includesLambda)),
		fn.On("ARRAY, ANY -> BOOL", fn.ByType(includes)),
	}},
	{Name: "array_includes_any", Doc: "Whether an element of the second array is in the first.", Overloads: []fn.Overload{fn.On("ARRAY, ARRAY -> BOOL", fn.ByType(includesAny))}},
	{Name: "array_includes_all", Doc: "Whether all elements of the second array are in the first.", Overloads: []fn.Overload{fn.On("ARRAY, ARRAY -> BOOL", fn.ByType(includesAll))}},
	{Name: "array_filter", Doc: "ARRAY_FILTER(array, (element, offset) -> condition): the elements of which the condition is TRUE.",
		Overloads: []fn.Overload{fn.On("ARRAY, LAMBDA -> ARRAY", fn.Higher(arrayFilter))}},
	{Name: "array_transform", Doc: "ARRAY_TRANSFORM(array, (element, offset) -> x): what the lambda makes of each element.",
		Overloads: []fn.Overload{fn.On("ARRAY, LAMBDA -> ARRAY", fn.Higher(arrayTransform))}},
}

// each calls the lambda for every element, with the element and its offset as arguments, and then calls f with the
// offset and the lambda's result. It stops when f returns false. A lambda with one parameter ignores the offset.
func each(list []value.Value, lambda fn.Lambda, f func(i int, result value.Value) (more bool)) error {
	args := make([]value.Value, 2)
	for i, e := range list {
		args[0], args[1] = e, value.OfInt64(int64(i))
		v, err := lambda.Apply(args)
		if err != nil {
			return err
		}
		if !f(i, v) {
			return nil
		}
	}
	return nil
}

// matching returns the offsets of the elements for which the lambda is TRUE.
func matching(list []value.Value, lambda fn.Lambda) (offsets []int, err error) {
	err = each(list, lambda, func(i int, v value.Value) bool {
		if !v.IsNull() && v.AsBool() {
			offsets = append(offsets, i)
		}
		return true
	})
	return offsets, err
}

func contains(list []value.Value, x value.Value, equals func(a, b value.Value) (equal, unknown bool)) bool {
	for _, e := range list {
		if equal, unknown := equals(e, x); equal && !unknown {
			return true
		}
	}
	return false
}

func includes(f *tree.Function) fn.Body {
	equals := operators.Equality(f.Args[1])
	return fn.Strict(func(_ *fn.Context, a []value.Value) (value.Value, error) {
		return fn.OfBool(contains(a[0].AsList(), a[1], equals))
	})
}

func includesLambda(_ *fn.Context, a []value.Value, lambdas []fn.Lambda) (value.Value, error) {
	if a[0].IsNull() {
		return fn.Null(value.Bool)
	}
	found := false
	err := each(a[0].AsList(), lambdas[0], func(_ int, v value.Value) bool {
		found = !v.IsNull() && v.AsBool()
		return !found
	})
	return value.OfBool(found), err
}

func includesAny(f *tree.Function) fn.Body {
	equals := operators.Equality(f.Args[0].Elem)
	return fn.Strict(func(_ *fn.Context, a []value.Value) (value.Value, error) {
		for _, x := range a[1].AsList() {
			if contains(a[0].AsList(), x, equals) {
				return fn.OfBool(true)
			}
		}
		return fn.OfBool(false)
	})
}

func includesAll(f *tree.Function) fn.Body {
	equals := operators.Equality(f.Args[0].Elem)
	return fn.Strict(func(_ *fn.Context, a []value.Value) (value.Value, error) {
		for _, x := range a[1].AsList() {
			if !contains(a[0].AsList(), x, equals) {
				return fn.OfBool(false)
			}
		}
		return fn.OfBool(true)
	})
}

func arrayFilter(_ *fn.Context, a []value.Value, lambdas []fn.Lambda) (value.Value, error) {
	if a[0].IsNull() {
		return a[0], nil
	}
	list := a[0].AsList()
	offsets, err := matching(list, lambdas[0])
	return elementsAt(list, offsets), err
}

func elementsAt(list []value.Value, offsets []int) value.Value {
	kept := make([]value.Value, len(offsets))
	for i, o := range offsets {
		kept[i] = list[o]
	}
	return value.OfArray(kept)
}

func arrayTransform(_ *fn.Context, a []value.Value, lambdas []fn.Lambda) (value.Value, error) {
	if a[0].IsNull() {
		return a[0], nil
	}
	list := a[0].AsList()
	results := make([]value.Value, len(list))
	err := each(list, lambdas[0], func(i int, v value.Value) bool {
		results[i] = v
		return true
	})
	return value.OfArray(results), err
}
