package aggregate

import (
	"math"
	"math/big"

	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/value"
)

// statistics holds the aggregates for variance and standard deviation. The variance of a population is the sum of
// squared deviations divided by n; the variance of a sample is that sum divided by n - 1. The result for a sample of
// one row is NULL.
var statistics = []aggregateRecord{
	{name: "var_samp", doc: "The variance of a sample.", overloads: spreadOverloads(sample, false)},
	{name: "stddev_samp", doc: "The standard deviation of a sample.", overloads: spreadOverloads(sample, true)},
}

// basis is subtracted from the number of rows, n, to get the divisor of the sum of squared deviations.
type basis int64

const (
	population basis = 0
	sample     basis = 1
)

func spreadOverloads(b basis, root bool) []aggregateOverload {
	return []aggregateOverload{
		{"FLOAT64 -> FLOAT64", simple(func() fn.State { return &spread{basis: b, root: root} }), nil},
		{"NUMERIC -> FLOAT64", simple(func() fn.State { return &spreadNumeric{basis: b, root: root} }), nil},
	}
}

// spread computes a variance or standard deviation of FLOAT64. It updates the mean and the sum of squared deviations
// row by row (Welford, Technometrics 4, 1962).
type spread struct {
	basis         basis
	root          bool
	n             int64
	mean, squares float64
	// The field mean holds the mean times 2^-shift. The field squares holds the sum of squares times 2^(-2*shift). The
	// field shift is 0 until the square of a number may overflow.
	shift int
}

// After the first number whose absolute value is greater than the constant wide, spread multiplies all numbers by
// 2^-wideShift, so that the sum of their squares cannot overflow.
const (
	wide      = 1e150
	wideShift = 600
)

func (s *spread) Add(args []value.Value) error {
	if args[0].IsNull() {
		return nil
	}
	s.n++
	x := args[0].AsFloat64()
	if s.shift == 0 && math.Abs(x) > wide && fn.IsFinite(x) {
		s.shift, s.mean, s.squares = wideShift, math.Ldexp(s.mean, -wideShift), math.Ldexp(s.squares, -2*wideShift)
	}
	x = math.Ldexp(x, -s.shift)
	delta := x - s.mean
	s.mean += delta / float64(s.n)
	s.squares += delta * (x - s.mean)
	return nil
}

func (s *spread) Result() (value.Value, error) {
	n := s.n - int64(s.basis)
	if n <= 0 {
		return fn.Null(value.Float64)
	}
	variance := s.squares / float64(n)
	if s.root {
		return fn.OfFloat64(math.Ldexp(math.Sqrt(variance), s.shift))
	}
	return fn.OfFloat64(math.Ldexp(variance, 2*s.shift))
}

// spreadNumeric computes a variance or standard deviation of NUMERIC. It adds up the numbers and their squares as exact
// integers, and rounds only when it computes the result, a FLOAT64.
type spreadNumeric struct {
	basis        basis
	root         bool
	n            int64
	sum, squares big.Int // sum is in billionths, squares in squares of billionths
}

func (s *spreadNumeric) Add(args []value.Value) error {
	if args[0].IsNull() {
		return nil
	}
	s.n++
	x := args[0].AsNumeric().Big()
	s.sum.Add(&s.sum, x)
	s.squares.Add(&s.squares, x.Mul(x, x))
	return nil
}

func (s *spreadNumeric) Result() (value.Value, error) {
	n := s.n - int64(s.basis)
	if n <= 0 {
		return fn.Null(value.Float64)
	}
	variance := deviation(s.n, &s.squares, &s.sum, &s.sum, n)
	if s.root {
		variance = math.Sqrt(variance)
	}
	return fn.OfFloat64(variance)
}

// deviation returns (products - x * y / count) / n. It takes two lists of numbers, of which each has the length count.
// x is the sum of one list, and y is the sum of the other, in billionths. products is the sum of the products of the
// numbers at the same position in both lists, in squares of billionths. If both lists are the same, the result is the
// variance of the numbers.
func deviation(count int64, products, x, y *big.Int, n int64) float64 {
	top := new(big.Int).Mul(products, big.NewInt(count))
	top.Sub(top, new(big.Int).Mul(x, y))
	bottom := new(big.Int).Mul(big.NewInt(count), big.NewInt(n))
	bottom.Mul(bottom, fn.Billion).Mul(bottom, fn.Billion)
	f, _ := new(big.Rat).SetFrac(top, bottom).Float64()
	return f
}
