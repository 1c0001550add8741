package fn

import (
	"fmt"
	"hash/maphash"
	"math"

	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

var arrays = []record{
	{name: "$make_array", doc: "[x, y, ...].", overloads: []overload{on("ANY... -> ARRAY", nullable(makeArray))}},
	{name: "$array_at_offset", doc: "array[OFFSET(i)], counting from 0.", overloads: []overload{on("ARRAY, INT64 -> ANY", elementAt(0, false))}},
	{name: "$array_at_ordinal", doc: "array[ORDINAL(i)], counting from 1.", overloads: []overload{on("ARRAY, INT64 -> ANY", elementAt(1, false))}},
	{name: "$safe_array_at_offset", leakproof: true, doc: "array[SAFE_OFFSET(i)]: NULL beyond the array.", overloads: []overload{on("ARRAY, INT64 -> ANY", elementAt(0, true))}},
	{name: "$safe_array_at_ordinal", leakproof: true, doc: "array[SAFE_ORDINAL(i)]: NULL beyond the array.", overloads: []overload{on("ARRAY, INT64 -> ANY", elementAt(1, true))}},
	{name: "array_length", leakproof: true, doc: "The number of elements.", overloads: []overload{on("ARRAY -> INT64", strict(arrayLength))}},
	{name: "array_concat", doc: "The elements of all arrays; NULL if one is NULL.", overloads: []overload{on("ARRAY... -> ARRAY", strict(arrayConcat))}},
	{name: "array_reverse", doc: "The elements in reverse order.", overloads: []overload{on("ARRAY -> ARRAY", strict(arrayReverse))}},
	{name: "array_to_string", doc: "ARRAY_TO_STRING(array, delimiter, null_text): the elements with delimiters between; NULLs are left out, or stand as null_text.",
		overloads: []overload{
			on("ARRAY<STRING>, STRING, ?STRING -> STRING", strict(arrayToString)),
			on("ARRAY<BYTES>, BYTES, ?BYTES -> BYTES", strict(arrayToString)),
		}},
	{name: "array_is_distinct", leakproof: true, doc: "Whether no element occurs twice; NULL is as any element.", overloads: []overload{on("ARRAY -> BOOL", byType(arrayIsDistinct))}},
	{name: "array_first", doc: "The first element; an error for an empty array.", overloads: []overload{on("ARRAY -> ANY", strict(arrayFirst))}},
	{name: "array_last", doc: "The last element; an error for an empty array.", overloads: []overload{on("ARRAY -> ANY", strict(arrayLast))}},
	{name: "array_slice", doc: "ARRAY_SLICE(array, start, end): the elements between two offsets, both included; negative ones count from the end.",
		overloads: []overload{on("ARRAY, INT64, INT64 -> ARRAY", strict(arraySlice))}},
	{name: "array_min", doc: "The least element; NULL if there is none.", overloads: []overload{on("ARRAY -> ANY", aggregated("min"))}},
	{name: "array_max", doc: "The greatest element; NULL if there is none.", overloads: []overload{on("ARRAY -> ANY", aggregated("max"))}},
	{name: "generate_array", doc: "GENERATE_ARRAY(first, last, step): numbers from the first to the last, a step (1) apart.", overloads: []overload{
		on("INT64, INT64, ?INT64 -> ARRAY<INT64>", strict(generateInt64)),
		on("NUMERIC, NUMERIC, ?NUMERIC -> ARRAY<NUMERIC>", strict(generateNumeric)),
		on("FLOAT64, FLOAT64, ?FLOAT64 -> ARRAY<FLOAT64>", strict(generateFloat64)),
	}},
}

func makeArray(_ *Context, a []value.Value) (value.Value, error) {
	return value.OfArray(append([]value.Value{}, a...)), nil
}

func elementAt(base int64, safe bool) body {
	return byType(func(f *tree.Function) body {
		missing := value.Null(f.Type.Kind)
		return strict(func(_ *Context, a []value.Value) (value.Value, error) {
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

func arrayLength(_ *Context, a []value.Value) (value.Value, error) {
	return ofInt64(int64(len(a[0].AsList())))
}

func arrayConcat(_ *Context, a []value.Value) (value.Value, error) {
	all := []value.Value{}
	for _, v := range a {
		all = append(all, v.AsList()...)
	}
	return value.OfArray(all), nil
}

func arrayReverse(_ *Context, a []value.Value) (value.Value, error) {
	list := a[0].AsList()
	reversed := make([]value.Value, len(list))
	for i, v := range list {
		reversed[len(list)-1-i] = v
	}
	return value.OfArray(reversed), nil
}

func arrayToString(_ *Context, a []value.Value) (value.Value, error) {
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
	return textOf(a[1].Kind(), string(text)), nil
}

func arrayIsDistinct(f *tree.Function) body {
	elem := f.Args[0].Elem
	seed := maphash.MakeSeed()
	return strict(func(_ *Context, a []value.Value) (value.Value, error) {
		list := a[0].AsList()
		buckets := make(map[uint64][]value.Value, len(list))
		for _, e := range list {
			var h maphash.Hash
			h.SetSeed(seed)
			value.Hash(&h, e, elem)
			bucket := h.Sum64()
			for _, other := range buckets[bucket] {
				if value.Equal(e, other, elem) {
					return ofBool(false)
				}
			}
			buckets[bucket] = append(buckets[bucket], e)
		}
		return ofBool(true)
	})
}

func arrayFirst(_ *Context, a []value.Value) (value.Value, error) {
	list := a[0].AsList()
	if len(list) == 0 {
		return badArgument("ARRAY_FIRST cannot get the first element of an empty array")
	}
	return list[0], nil
}

func arrayLast(_ *Context, a []value.Value) (value.Value, error) {
	list := a[0].AsList()
	if len(list) == 0 {
		return badArgument("ARRAY_LAST cannot get the last element of an empty array")
	}
	return list[len(list)-1], nil
}

func arraySlice(_ *Context, a []value.Value) (value.Value, error) {
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

// aggregated computes an aggregate over the elements of an array.
func aggregated(name string) body {
	return byType(func(f *tree.Function) body {
		elem := f.Args[0].Elem
		if f.Type.Kind == value.Float64 && elem.Kind == value.Float32 {
			elem = value.Float64Type // values of both are read in the same way
		}
		over, err := LookupAggregate(&tree.Function{Name: name, Args: []*value.Type{elem}, Type: f.Type})
		return strict(func(_ *Context, a []value.Value) (value.Value, error) {
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

func generateInt64(_ *Context, a []value.Value) (value.Value, error) {
	first, last, step := a[0].AsInt64(), a[1].AsInt64(), int64(1)
	if len(a) > 2 {
		step = a[2].AsInt64()
	}
	if step == 0 {
		return badArgument(zeroStep)
	}
	if step > 0 && first > last || step < 0 && first < last {
		return value.OfArray(nil), nil
	}
	count := (magnitudeOfDifference(last, first))/magnitude(step) + 1
	if count > maxGenerated || count == 0 {
		return badArgument(tooManyGenerated)
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

func generateFloat64(_ *Context, a []value.Value) (value.Value, error) {
	first, last, step := a[0].AsFloat64(), a[1].AsFloat64(), 1.0
	if len(a) > 2 {
		step = a[2].AsFloat64()
	}
	for _, x := range []float64{first, last, step} {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return badArgument(fmt.Sprintf("Illegal non-finite double value %s when generating double array", floatText(x)))
		}
	}
	if step == 0 {
		return badArgument(zeroStep)
	}
	if (last-first)/step > maxGenerated {
		return badArgument(tooManyGenerated)
	}
	list := []value.Value{}
	for i := 0; ; i++ {
		x := first + float64(i)*step
		if step > 0 && x > last || step < 0 && x < last || !finite(x) {
			return value.OfArray(list), nil
		}
		if i == maxGenerated {
			return badArgument(tooManyGenerated)
		}
		list = append(list, value.OfFloat64(x))
	}
}

func generateNumeric(_ *Context, a []value.Value) (value.Value, error) {
	x, last, step := a[0].AsNumeric(), a[1].AsNumeric(), value.DecimalFromInt64(1)
	if len(a) > 2 {
		step = a[2].AsNumeric()
	}
	if step.Sign() == 0 {
		return badArgument(zeroStep)
	}
	if (last.Float64()-x.Float64())/step.Float64() > maxGenerated {
		return badArgument(tooManyGenerated)
	}
	list := []value.Value{}
	for ok := true; ok && x.Cmp(last) != step.Sign(); x, ok = x.Add(step) {
		if len(list) == maxGenerated {
			return badArgument(tooManyGenerated)
		}
		list = append(list, value.OfNumeric(x))
	}
	return value.OfArray(list), nil
}
