package aggregate

import (
	"math"
	"math/big"
	"math/bits"

	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/sql/fn/timestamps"
	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// summing holds the aggregates for sums and averages. Their result is NULL if there are no rows, or only rows with
// NULL.
var summing = []aggregateRecord{
	{name: "sum", doc: "The sum.", overloads: []aggregateOverload{
		{"INT64 -> INT64", simple(func() fn.State { return new(sumInt64) }), simple(int64Sums((*sumInt64).Result))},
		{"FLOAT64 -> FLOAT64", simple(func() fn.State { return new(sumFloat64) }), simple(float64Sums((*sumFloat64).Result))},
		{"NUMERIC -> NUMERIC", simple(func() fn.State { return new(sumNumeric) }), simple(numericSums((*sumNumeric).Result))},
		{"INTERVAL -> INTERVAL", simple(func() fn.State { return new(sumInterval) }), nil},
	}},
	{name: "avg", doc: "The average: FLOAT64 of integers.", overloads: []aggregateOverload{
		{"INT64 -> FLOAT64", simple(func() fn.State { return &averageInt64{} }), simple(int64Sums((*sumInt64).average))},
		{"FLOAT64 -> FLOAT64", simple(func() fn.State { return &averageFloat64{} }), simple(float64Sums((*sumFloat64).average))},
		{"NUMERIC -> NUMERIC", simple(func() fn.State { return &averageNumeric{} }), simple(numericSums((*sumNumeric).average))},
		{"INTERVAL -> INTERVAL", simple(func() fn.State { return &averageInterval{} }), nil},
	}},
	{name: "bit_and", doc: "All values combined by &.", overloads: []aggregateOverload{
		{"INT64 -> INT64", combine(func(x, y int64) int64 { return x & y }), nil},
	}},
	{name: "bit_or", doc: "All values combined by |.", overloads: []aggregateOverload{
		{"INT64 -> INT64", combine(func(x, y int64) int64 { return x | y }), nil},
	}},
	{name: "bit_xor", doc: "All values combined by ^.", overloads: []aggregateOverload{
		{"INT64 -> INT64", combine(func(x, y int64) int64 { return x ^ y }), nil},
	}},
}

// sumInt64 adds in 128 bits, so that an intermediate sum beyond INT64 is no error. Only a final sum beyond INT64 is
// an error.
type sumInt64 struct {
	hi int64
	lo uint64
	n  int64
}

func (s *sumInt64) Add(args []value.Value) error {
	if !args[0].IsNull() {
		s.add(args[0].AsInt64())
	}
	return nil
}

func (s *sumInt64) add(x int64) {
	var carry uint64
	s.lo, carry = bits.Add64(s.lo, uint64(x), 0)
	s.hi += x>>63 + int64(carry)
	s.n++
}

func (s *sumInt64) Result() (value.Value, error) {
	switch {
	case s.n == 0:
		return fn.Null(value.Int64)
	case s.hi != int64(s.lo)>>63:
		return value.Value{}, usererror.AggregateOverflow("int64")
	}
	return fn.OfInt64(int64(s.lo))
}

// int64Sums makes the Groups for sums or averages of INT64. The parameter result computes the result of a group. Each
// numeric type has a loop of its own over the rows, because a generic loop cannot inline the method add and takes twice
// as long.
func int64Sums(result func(*sumInt64) (value.Value, error)) func() fn.Groups {
	return func() fn.Groups { return &sumsInt64{stateList: stateList[sumInt64]{result: result}} }
}

type sumsInt64 struct {
	stateList[sumInt64]
	room []int32
}

func (s *sumsInt64) Add(rows, groups []int32, args []fn.Column) error {
	col := &args[0]
	if col.Vector != nil {
		list := col.Vector.Ints
		for _, i := range col.NotNull(rows, &s.room) {
			s.states[groups[i]].add(list[i])
		}
		return nil
	}
	for _, i := range rows {
		if v := &col.Values[int(i)*col.Stride]; !v.IsNull() {
			s.states[groups[i]].add(v.AsInt64())
		}
	}
	return nil
}

type averageInt64 struct{ sumInt64 }

func (s *averageInt64) Result() (value.Value, error) { return s.average() }

func (s *sumInt64) average() (value.Value, error) {
	if s.n == 0 {
		return fn.Null(value.Float64)
	}
	total := math.Ldexp(float64(s.hi), 64) + float64(s.lo)
	if s.hi == int64(s.lo)>>63 {
		total = float64(int64(s.lo))
	}
	return fn.OfFloat64(total / float64(s.n))
}

// sumFloat64 also adds up the rounding errors (Neumaier, ZAMM 54, 1974), so that the order of rows hardly changes the
// sum.
type sumFloat64 struct {
	total, lost float64
	n           int64
	special     float64 // the sum of infinities and NaNs
	halved      bool    // total and lost hold half of the true sums, since an intermediate sum has left FLOAT64's range
}

func (s *sumFloat64) Add(args []value.Value) error {
	if !args[0].IsNull() {
		s.add(args[0].AsFloat64())
	}
	return nil
}

func (s *sumFloat64) add(x float64) {
	s.n++
	if !fn.IsFinite(x) {
		s.special += x
		return
	}
	if s.halved {
		x /= 2
	}
	if !s.halved && !fn.IsFinite(s.total+x) {
		s.halved, s.total, s.lost, x = true, s.total/2, s.lost/2, x/2
	}
	total := s.total + x
	if math.Abs(s.total) >= math.Abs(x) {
		s.lost += s.total - total + x
	} else {
		s.lost += x - total + s.total
	}
	s.total = total
}

// float64Sums makes the Groups for sums or averages of FLOAT64. The parameter result computes the result of a group.
func float64Sums(result func(*sumFloat64) (value.Value, error)) func() fn.Groups {
	return func() fn.Groups { return &sumsFloat64{stateList: stateList[sumFloat64]{result: result}} }
}

type sumsFloat64 struct {
	stateList[sumFloat64]
	room []int32
}

func (s *sumsFloat64) Add(rows, groups []int32, args []fn.Column) error {
	col := &args[0]
	if col.Vector != nil {
		list := col.Vector.Floats
		for _, i := range col.NotNull(rows, &s.room) {
			s.states[groups[i]].add(list[i])
		}
		return nil
	}
	for _, i := range rows {
		if v := &col.Values[int(i)*col.Stride]; !v.IsNull() {
			s.states[groups[i]].add(v.AsFloat64())
		}
	}
	return nil
}

func (s *sumFloat64) sum() float64 {
	sum := s.total + s.lost
	if s.halved {
		sum *= 2
	}
	return sum
}

func (s *sumFloat64) Result() (value.Value, error) {
	switch sum := s.sum(); {
	case s.n == 0:
		return fn.Null(value.Float64)
	case s.special != 0:
		return fn.OfFloat64(s.special)
	case !fn.IsFinite(sum):
		return value.Value{}, usererror.AggregateOverflow("double")
	default:
		return fn.OfFloat64(sum)
	}
}

type averageFloat64 struct{ sumFloat64 }

func (s *averageFloat64) Result() (value.Value, error) { return s.average() }

func (s *sumFloat64) average() (value.Value, error) {
	switch {
	case s.n == 0:
		return fn.Null(value.Float64)
	case s.special != 0:
		return fn.OfFloat64(s.special)
	case s.halved:
		return fn.OfFloat64((s.total + s.lost) / float64(s.n) * 2)
	}
	return fn.OfFloat64(s.sum() / float64(s.n))
}

// sumNumeric adds up numbers in a Decimal, which has 38 digits. When the next sum does not fit in it, the sum so far is
// moved to a big.Int, and the Decimal continues with the next number.
type sumNumeric struct {
	sum  value.Decimal
	wide *big.Int // the part of the total that was moved out of the Decimal, in billionths; nil if there is none
	n    int64
}

func (s *sumNumeric) Add(args []value.Value) error {
	if !args[0].IsNull() {
		s.add(args[0].AsNumeric())
	}
	return nil
}

func (s *sumNumeric) add(x value.Decimal) {
	s.n++
	sum, ok := s.sum.Add(x)
	if !ok {
		if s.wide == nil {
			s.wide = new(big.Int)
		}
		s.wide.Add(s.wide, s.sum.Big())
		sum = x
	}
	s.sum = sum
}

// numericSums makes the Groups for sums or averages of NUMERIC. The parameter result computes the result of a group.
func numericSums(result func(*sumNumeric) (value.Value, error)) func() fn.Groups {
	return func() fn.Groups { return &sumsNumeric{stateList: stateList[sumNumeric]{result: result}} }
}

type sumsNumeric struct {
	stateList[sumNumeric]
	room []int32
}

func (s *sumsNumeric) Add(rows, groups []int32, args []fn.Column) error {
	col := &args[0]
	if col.Vector != nil {
		list := col.Vector.Decimals
		for _, i := range col.NotNull(rows, &s.room) {
			s.states[groups[i]].add(list[i])
		}
		return nil
	}
	for _, i := range rows {
		if v := &col.Values[int(i)*col.Stride]; !v.IsNull() {
			s.states[groups[i]].add(v.AsNumeric())
		}
	}
	return nil
}

func (s *sumNumeric) total() *big.Int {
	total := s.sum.Big()
	if s.wide != nil {
		total.Add(total, s.wide)
	}
	return total
}

func (s *sumNumeric) Result() (value.Value, error) {
	if s.n == 0 {
		return fn.Null(value.Numeric)
	}
	d, ok := value.DecimalFromBig(s.total())
	if !ok {
		return value.Value{}, fn.NumericOverflow("SUM")
	}
	return value.OfNumeric(d), nil
}

type averageNumeric struct{ sumNumeric }

func (s *averageNumeric) Result() (value.Value, error) { return s.average() }

func (s *sumNumeric) average() (value.Value, error) {
	if s.n == 0 {
		return fn.Null(value.Numeric)
	}
	// The average is in the range of NUMERIC, since it lies between the least and the greatest value.
	d, _ := value.DecimalFromBig(divideHalfAway(s.total(), big.NewInt(s.n)))
	return value.OfNumeric(d), nil
}

// divideHalfAway returns x/y, rounded to the nearest integer; halves are rounded away from zero. y must be positive.
func divideHalfAway(x, y *big.Int) *big.Int {
	half := new(big.Int).Rsh(y, 1)
	if x.Sign() < 0 {
		half.Neg(half)
	}
	return new(big.Int).Quo(new(big.Int).Add(x, half), y)
}

type sumInterval struct{ value.IntervalSum }

func (s *sumInterval) Add(args []value.Value) error {
	if !args[0].IsNull() {
		s.IntervalSum.Add(args[0].AsInterval())
	}
	return nil
}

func (s *sumInterval) Result() (value.Value, error) {
	if s.Count() == 0 {
		return fn.Null(value.Interval)
	}
	return timestamps.CheckedInterval(s.Sum())
}

type averageInterval struct{ sumInterval }

func (s *averageInterval) Result() (value.Value, error) {
	if s.Count() == 0 {
		return fn.Null(value.Interval)
	}
	return timestamps.CheckedInterval(s.Average())
}

// combine makes the start function of an aggregate that combines all values by f.
func combine(f func(x, y int64) int64) func(*tree.Function) func() fn.State {
	return simple(func() fn.State { return &combined{f: f} })
}

type combined struct {
	f        func(x, y int64) int64
	bits     int64
	hasValue bool
}

func (c *combined) Add(args []value.Value) error {
	switch {
	case args[0].IsNull():
	case !c.hasValue:
		c.hasValue, c.bits = true, args[0].AsInt64()
	default:
		c.bits = c.f(c.bits, args[0].AsInt64())
	}
	return nil
}

func (c *combined) Result() (value.Value, error) {
	if !c.hasValue {
		return fn.Null(value.Int64)
	}
	return fn.OfInt64(c.bits)
}
