package mathematics

import (
	"fmt"
	"math"

	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// Vectors has the functions on vectors. A vector is an array of numbers, or a sparse array of (index, number) pairs,
// in which the numbers at all other indexes are zero. The index is an INT64 or a STRING. There is no vector index, so
// the APPROX functions are exact and ignore their options.
var Vectors = []fn.Record{
	{Name: "cosine_distance", Doc: "One minus the cosine of the angle between two vectors.", Overloads: vectorOverloads("COSINE_DISTANCE", cosineDistance, true)},
	{Name: "euclidean_distance", Doc: "The Euclidean distance of two vectors.", Overloads: vectorOverloads("EUCLIDEAN_DISTANCE", euclideanDistance, true)},
	{Name: "dot_product", Doc: "The scalar product of two vectors.", Overloads: vectorOverloads("DOT_PRODUCT", dotProduct, false)},
	{Name: "approx_cosine_distance", Doc: "As COSINE_DISTANCE.", Overloads: vectorOverloads("APPROX_COSINE_DISTANCE", cosineDistance, false)},
	{Name: "approx_euclidean_distance", Doc: "As EUCLIDEAN_DISTANCE.", Overloads: vectorOverloads("APPROX_EUCLIDEAN_DISTANCE", euclideanDistance, false)},
	{Name: "approx_dot_product", Doc: "As DOT_PRODUCT.", Overloads: vectorOverloads("APPROX_DOT_PRODUCT", dotProduct, false)},
}

// metric computes a number from two vectors of the same length. name is the function's name for errors.
type metric func(name string, x, y []float64) (value.Value, error)

func vectorOverloads(name string, m metric, sparse bool) []fn.Overload {
	dense := fn.Strict(func(_ *fn.Context, a []value.Value) (value.Value, error) {
		x, err := vector(name, a[0].AsList())
		if err != nil {
			return value.Value{}, err
		}
		y, err := vector(name, a[1].AsList())
		if err != nil {
			return value.Value{}, err
		}
		if len(x) != len(y) {
			return fn.BadArgument(fmt.Sprintf("Array arguments to %s must have equal length. The given arrays have lengths of %d and %d", name, len(x), len(y)))
		}
		return m(name, x, y)
	})
	overloads := []fn.Overload{
		fn.On("ARRAY<FLOAT64>, ARRAY<FLOAT64>, ?JSON -> FLOAT64", dense),
		fn.On("ARRAY<FLOAT32>, ARRAY<FLOAT32>, ?JSON -> FLOAT64", dense),
		fn.On("ARRAY<INT64>, ARRAY<INT64>, ?JSON -> FLOAT64", dense),
	}
	if sparse {
		overloads = append(overloads, fn.On("ARRAY, ARRAY -> FLOAT64", fn.Strict(func(_ *fn.Context, a []value.Value) (value.Value, error) {
			x, y, err := sparseVectors(name, a[0].AsList(), a[1].AsList())
			if err != nil {
				return value.Value{}, err
			}
			return m(name, x, y)
		})))
	}
	return overloads
}

func nullElement(name string) error {
	return usererror.BadArgument("Cannot compute " + name + " with a NULL element, since it is unclear if NULLs should be ignored, " +
		"counted as a zero value, or another interpretation.")
}

func vector(name string, list []value.Value) ([]float64, error) {
	x := make([]float64, len(list))
	for i, e := range list {
		switch {
		case e.IsNull():
			return nil, nullElement(name)
		case e.Kind() == value.Int64:
			x[i] = float64(e.AsInt64())
		default:
			x[i] = e.AsFloat64()
		}
	}
	return x, nil
}

// sparseVectors converts two lists of (index, number) pairs to vectors of the same length, with one number for each
// index that occurs in either list.
func sparseVectors(name string, a, b []value.Value) (x, y []float64, err error) {
	places := make(map[any]int)
	for _, list := range [][]value.Value{a, b} {
		for _, e := range list {
			if e.IsNull() || e.AsList()[0].IsNull() || e.AsList()[1].IsNull() {
				return nil, nil, nullElement(name)
			}
			if p := place(e); places[p] == 0 {
				places[p] = len(places) + 1
			}
		}
	}
	if x, err = layOut(a, places); err == nil {
		y, err = layOut(b, places)
	}
	return x, y, err
}

// place returns the first field of a pair, an INT64 or STRING.
func place(pair value.Value) any {
	p := pair.AsList()[0]
	if p.Kind() == value.String {
		return p.AsString()
	}
	return p.AsInt64()
}

func layOut(list []value.Value, places map[any]int) ([]float64, error) {
	x := make([]float64, len(places))
	filled := make([]bool, len(places))
	for _, e := range list {
		i := places[place(e)] - 1
		if filled[i] {
			return nil, usererror.BadArgument(fmt.Sprintf("Duplicate index %v found in the input array.", place(e)))
		}
		filled[i], x[i] = true, e.AsList()[1].AsFloat64()
	}
	return x, nil
}

func cosineDistance(_ string, x, y []float64) (value.Value, error) {
	var product, xx, yy float64
	for i := range x {
		product += x[i] * y[i]
		xx += x[i] * x[i]
		yy += y[i] * y[i]
	}
	if xx == 0 || yy == 0 {
		return fn.BadArgument("Cannot compute cosine distance against zero vector.")
	}
	return fn.OfFloat64(1 - product/math.Sqrt(xx)/math.Sqrt(yy))
}

func euclideanDistance(_ string, x, y []float64) (value.Value, error) {
	var sum float64
	for i := range x {
		sum += (x[i] - y[i]) * (x[i] - y[i])
	}
	return fn.OfFloat64(math.Sqrt(sum))
}

func dotProduct(name string, x, y []float64) (value.Value, error) {
	var product float64
	for i := range x {
		product += x[i] * y[i]
	}
	return fn.OfFloat64(product)
}
