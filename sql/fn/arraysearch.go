package fn

import (
	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/value"
)

// arraySearch are functions that look for a value, or for elements for which a lambda is TRUE. NULL equals no value.
var arraySearch = []record{
	{name: "array_includes", leakproof: true, doc: "ARRAY_INCLUDES(array, x): whether an element equals x, or a lambda is TRUE of one.", overloads: []overload{
		on("ARRAY, LAMBDA -> BOOL", higher(includesLambda)),
		on("ARRAY, ANY -> BOOL", byType(includes)),
	}},
	{name: "array_includes_any", doc: "Whether an element of the second array is in the first.", overloads: []overload{on("ARRAY, ARRAY -> BOOL", byType(includesAny))}},
	{name: "array_includes_all", doc: "Whether all elements of the second array are in the first.", overloads: []overload{on("ARRAY, ARRAY -> BOOL", byType(includesAll))}},
	{name: "array_filter", doc: "ARRAY_FILTER(array, (element, offset) -> condition): the elements of which the condition is TRUE.",
		overloads: []overload{on("ARRAY, LAMBDA -> ARRAY", higher(arrayFilter))}},
	{name: "array_transform", doc: "ARRAY_TRANSFORM(array, (element, offset) -> x): what the lambda makes of each element.",
		overloads: []overload{on("ARRAY, LAMBDA -> ARRAY", higher(arrayTransform))}},
}

// each calls the lambda with each element and its offset until f returns false. Lambdas with one parameter ignore the offset.
func each(list []value.Value, lambda Lambda, f func(i int, result value.Value) (more bool)) error {
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
func matching(list []value.Value, lambda Lambda) (offsets []int, err error) {
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

func includes(f *tree.Function) body {
	equals := equality(f.Args[1])
	return strict(func(_ *Context, a []value.Value) (value.Value, error) {
		return ofBool(contains(a[0].AsList(), a[1], equals))
	})
}

func includesLambda(_ *Context, a []value.Value, lambdas []Lambda) (value.Value, error) {
	if a[0].IsNull() {
		return null(value.Bool)
	}
	found := false
	err := each(a[0].AsList(), lambdas[0], func(_ int, v value.Value) bool {
		found = !v.IsNull() && v.AsBool()
		return !found
	})
	return value.OfBool(found), err
}

func includesAny(f *tree.Function) body {
	equals := equality(f.Args[0].Elem)
	return strict(func(_ *Context, a []value.Value) (value.Value, error) {
		for _, x := range a[1].AsList() {
			if contains(a[0].AsList(), x, equals) {
				return ofBool(true)
			}
		}
		return ofBool(false)
	})
}

func includesAll(f *tree.Function) body {
	equals := equality(f.Args[0].Elem)
	return strict(func(_ *Context, a []value.Value) (value.Value, error) {
		for _, x := range a[1].AsList() {
			if !contains(a[0].AsList(), x, equals) {
				return ofBool(false)
			}
		}
		return ofBool(true)
	})
}

func arrayFilter(_ *Context, a []value.Value, lambdas []Lambda) (value.Value, error) {
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

func arrayTransform(_ *Context, a []value.Value, lambdas []Lambda) (value.Value, error) {
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
