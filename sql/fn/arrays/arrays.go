// Package arrays has GoogleSQL's functions on arrays.
//
// Imports of this module: sql/fn, sql/fn/aggregate, sql/fn/operators, sql/tree, usererror, value.
package arrays

import (
	"fmt"
	"hash/maphash"
	"math"

	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/sql/fn/aggregate"
	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// Basic has the functions on arrays, except those that search.
var Basic = []fn.Record{
	{Name: "$make_array", Doc: "[x, y, ...].", Overloads: []fn.Overload{fn.On("ANY... -> ARRAY", fn.Nullable(makeArray))}},
	{Name: "$array_at_offset", Doc: "array[OFFSET(i)], counting from 0.", Overloads: []fn.Overload{fn.On("ARRAY, INT64 -> ANY", elementAt(0, false))}},
	{Name: "$array_at_ordinal", Doc: "array[ORDINAL(i)], counting from 1.", Overloads: []fn.Overload{fn.On("ARRAY, INT64 -> ANY", elementAt(1, false))}},
	{Name: "$safe_array_at_offset", Leakproof: true, Doc: "array[SAFE_OFFSET(i)]: NULL beyond the array.", Overloads: []fn.Overload{fn.On("ARRAY, INT64 -> ANY", elementAt(0, true))}},
	{Name: "$safe_array_at_ordinal", Leakproof: true, Doc: "array[SAFE_ORDINAL(i)]: NULL beyond the array.", Overloads: []fn.Overload{fn.On("ARRAY, INT64 -> ANY", elementAt(1, true))}},
	{Name: "array_length", Leakproof: true, Doc: "The number of elements.", Overloads: []fn.Overload{fn.On("ARRAY -> INT64", fn.Strict(arrayLength))}},
	{Name: "array_concat", Doc: "The elements of all arrays; NULL if one is NULL.", Overloads: []fn.Overload{fn.On("ARRAY... -> ARRAY", fn.Strict(arrayConcat))}},
	{Name: "array_reverse", Doc: "The elements in reverse order.", Overloads: []fn.Overload{fn.On("ARRAY -> ARRAY", fn.Strict(arrayReverse))}},
	{Name: "array_to_string", Doc: "ARRAY_TO_STRING(array, delimiter, null_text): the elements with delimiters between; NULLs are left out, or stand as null_text.",
		Overloads: []fn.Overload{
			fn.On("ARRAY<STRING>, STRING, ?STRING -> STRING", fn.Strict(arrayToString)),
			fn.On("ARRAY<BYTES>, BYTES, ?BYTES -> BYTES", fn.Strict(arrayToString)),
		}},
	{Name: "array_is_distinct", Leakproof: true, Doc: "Whether no element occurs twice; NULL is as any element.", Overloads: []fn.Overload{fn.On("ARRAY -> BOOL", fn.ByType(arrayIsDistinct))}},
	{Name: "array_first", Doc: "The first element; an error for an empty array.", Overloads: []fn.Overload{fn.On("ARRAY -> ANY", fn.Strict(arrayFirst))}},
	{Name: "array_last", Doc: "The last element; an error for an empty array.", Overloads: []fn.Overload{fn.On("ARRAY -> ANY", fn.Strict(arrayLast))}},
	{Name: "array_slice", Doc: "ARRAY_SLICE(array, start, end): the elements between two offsets, both included; negative ones count from the end.",
		Overloads: []fn.Overload{fn.On("ARRAY, INT64, INT64 -> ARRAY", fn.Strict(arraySlice))}},
	{Name: "array_min", Doc: "The least element; NULL if there is none.", Overloads: []fn.Overload{fn.On("ARRAY -> ANY", aggregated("min"))}},
	{Name: "array_max", Doc: "The greatest element; NULL if there is none.", Overloads: []fn.Overload{fn.On("ARRAY -> ANY", aggregated("max"))}},
	{Name: "generate_array", Doc: "GENERATE_ARRAY(first, last, step): numbers from the first to the last, a step (1) apart.", Overloads: []fn.Overload{
		fn.On("INT64, INT64, ?INT64 -> ARRAY<INT64>", fn.Strict(generateInt64)),
		fn.On("NUMERIC, NUMERIC, ?NUMERIC -> ARRAY<NUMERIC>", fn.Strict(generateNumeric)),
		fn.On("FLOAT64, FLOAT64, ?FLOAT64 -> ARRAY<FLOAT64>", fn.Strict(generateFloat64)),
	}},
}

func makeArray(_ *fn.Context, a []value.Value) (value.Value, error) {
	return value.OfArray(append([]value.Value{}, a...)), nil
}

func elementAt(base int64, safe bool) fn.Body {
	return fn.ByType(func(f *tree.Function) fn.Body {
		missing := value.Null(f.Type.Kind)
		return fn.Strict(func(_ *fn.Context, a []value.Value) (value.Value, error) {
			list, i := a[0].AsList(), a[1].AsInt64()
			if i >= base && i-base < int64(len(list)) {
				return list[i-base], nil
			}
			if safe {
				return missing, nil
			}
			return value.Value{}, usererror.ArrayIndex(i)
		})
	})
}

func arrayLength(_ *fn.Context, a []value.Value) (value.Value, error) {
	return fn.OfInt64(int64(len(a[0].AsList())))
}

func arrayConcat(_ *fn.Context, a []value.Value) (value.Value, error) {
	all := []value.Value{}
	for _, v := range a {
		all = append(all, v.AsList()...)
	}
	return value.OfArray(all), nil
}

func arrayReverse(_ *fn.Context, a []value.Value) (value.Value, error) {
	list := a[0].AsList()
	reversed := make([]value.Value, len(list))
	for i, v := range list {
		reversed[len(list)-1-i] = v
	}
	return value.OfArray(reversed), nil
}

func arrayToString(_ *fn.Context, a []value.Value) (value.Value, error) {
	var text []byte
	some := false
	for _, e := range a[0].AsList() {
		if e.IsNull() {
			if len(a) < 3 {
				continue
			}
			e = a[2]
		}
		if some {
			text = append(text, a[1].AsBytes()...)
		}
		text, some = append(text, e.AsBytes()...), true
	}
	return fn.TextOf(a[1].Kind(), string(text)), nil
}

func arrayIsDistinct(f *tree.Function) fn.Body {
	elem := f.Args[0].Elem
	seed := maphash.MakeSeed()
	return fn.Strict(func(_ *fn.Context, a []value.Value) (value.Value, error) {
		list := a[0].AsList()
		buckets := make(map[uint64][]value.Value, len(list))
		for _, e := range list {
			var h maphash.Hash
			h.SetSeed(seed)
			value.Hash(&h, e, elem)
			bucket := h.Sum64()
			for _, other := range buckets[bucket] {
				if value.Equal(e, other, elem) {
					return fn.OfBool(false)
				}
			}
			buckets[bucket] = append(buckets[bucket], e)
		}
		return fn.OfBool(true)
	})
}

func arrayFirst(_ *fn.Context, a []value.Value) (value.Value, error) {
	list := a[0].AsList()
	if len(list) == 0 {
		return fn.BadArgument("ARRAY_FIRST cannot get the first element of an empty array")
	}
	return list[0], nil
}

func arrayLast(_ *fn.Context, a []value.Value) (value.Value, error) {
	list := a[0].AsList()
	if len(list) == 0 {
		return fn.BadArgument("ARRAY_LAST cannot get the last element of an empty array")
	}
	return list[len(list)-1], nil
}

func arraySlice(_ *fn.Context, a []value.Value) (value.Value, error) {
	list := a[0].AsList()
	n := int64(len(list))
	start, end := a[1].AsInt64(), a[2].AsInt64()
	if start < 0 {
		start = max(0, start+n)
	}
	if end < 0 {
		end += n
	}
	if end = min(end, n-1); start > end {
		return value.OfArray(nil), nil
	}
	return value.OfArray(list[start : end+1]), nil
}

// aggregated makes a body that computes the aggregate function with the given name over the elements of an array.
func aggregated(name string) fn.Body {
	return fn.ByType(func(f *tree.Function) fn.Body {
		elem := f.Args[0].Elem
		if f.Type.Kind == value.Float64 && elem.Kind == value.Float32 {
			elem = value.Float64Type // values of FLOAT32 and FLOAT64 are read in the same way
		}
		over, err := aggregate.Lookup(&tree.Function{Name: name, Args: []*value.Type{elem}, Type: f.Type})
		return fn.Strict(func(_ *fn.Context, a []value.Value) (value.Value, error) {
			if err != nil {
				return value.Value{}, err
			}
			state := over.New()
			for _, e := range a[0].AsList() {
				if err := state.Add([]value.Value{e}); err != nil {
					return value.Value{}, err
				}
			}
			return state.Result()
		})
	})
}

const zeroStep = "Sequence step cannot be 0."

func generateInt64(_ *fn.Context, a []value.Value) (value.Value, error) {
	first, last, step := a[0].AsInt64(), a[1].AsInt64(), int64(1)
	if len(a) > 2 {
		step = a[2].AsInt64()
	}
	if step == 0 {
		return fn.BadArgument(zeroStep)
	}
	if step > 0 && first > last || step < 0 && first < last {
		return value.OfArray(nil), nil
	}
	count := (magnitudeOfDifference(last, first))/fn.Magnitude(step) + 1
	if count > fn.MaxGenerated || count == 0 {
		return fn.BadArgument(fn.TooManyGenerated)
	}
	list := make([]value.Value, count)
	for i := range list {
		list[i] = value.OfInt64(first + int64(i)*step)
	}
	return value.OfArray(list), nil
}

func magnitudeOfDifference(x, y int64) uint64 {
	if x < y {
		x, y = y, x
	}
	return uint64(x) - uint64(y)
}

func generateFloat64(_ *fn.Context, a []value.Value) (value.Value, error) {
	first, last, step := a[0].AsFloat64(), a[1].AsFloat64(), 1.0
	if len(a) > 2 {
		step = a[2].AsFloat64()
	}
	for _, x := range []float64{first, last, step} {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return fn.BadArgument(fmt.Sprintf("Illegal non-finite double value %s when generating double array", fn.FloatText(x)))
		}
	}
	if step == 0 {
		return fn.BadArgument(zeroStep)
	}
	if (last-first)/step > fn.MaxGenerated {
		return fn.BadArgument(fn.TooManyGenerated)
	}
	list := []value.Value{}
	for i := 0; ; i++ {
		x := first + float64(i)*step
		if step > 0 && x > last || step < 0 && x < last || !fn.IsFinite(x) {
			return value.OfArray(list), nil
		}
		if i == fn.MaxGenerated {
			return fn.BadArgument(fn.TooManyGenerated)
		}
		list = append(list, value.OfFloat64(x))
	}
}

func generateNumeric(_ *fn.Context, a []value.Value) (value.Value, error) {
	x, last, step := a[0].AsNumeric(), a[1].AsNumeric(), value.DecimalFromInt64(1)
	if len(a) > 2 {
		step = a[2].AsNumeric()
	}
	if step.Sign() == 0 {
		return fn.BadArgument(zeroStep)
	}
	if (last.Float64()-x.Float64())/step.Float64() > fn.MaxGenerated {
		return fn.BadArgument(fn.TooManyGenerated)
	}
	list := []value.Value{}
	for ok := true; ok && x.Cmp(last) != step.Sign(); x, ok = x.Add(step) {
		if len(list) == fn.MaxGenerated {
			return fn.BadArgument(fn.TooManyGenerated)
		}
		list = append(list, value.OfNumeric(x))
	}
	return value.OfArray(list), nil
}
