package operators

import (
	"cmp"

	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/value"
)

// A Kernel computes a function for many rows at once. The arguments are the columns in args, and span is the number of
// their rows. The Kernel computes only the rows whose numbers are the elements of places, and writes the results to
// out. ok is false if it cannot compute a row, mostly because the function fails for this row. The executor then
// computes the rows one by one with the function's Scalar, which returns the error.
type Kernel func(out *Output, args []fn.Column, span int, places []int32) (ok bool)

// Kernels holds the functions that have a Kernel, by the kind of their arguments. All arguments of such a function
// have one type, and its result is NULL if an argument is.
var Kernels = map[string]map[value.Kind]Kernel{
	"$add":              {value.Int64: onInts(addInts), value.Float64: onFloats(addFloats), value.Numeric: onDecimals(value.Decimal.Add)},
	"$subtract":         {value.Int64: onInts(subtractInts), value.Float64: onFloats(subtractFloats), value.Numeric: onDecimals(value.Decimal.Sub)},
	"$multiply":         {value.Int64: onInts(multiplyInts), value.Float64: onFloats(multiplyFloats), value.Numeric: onDecimals(value.Decimal.Mul)},
	"$divide":           {value.Float64: onFloats(divideFloats)},
	"$equal":            comparisons(isEqual[int64], isEqual[float64], isEqual[string], func(c int) bool { return c == 0 }),
	"$not_equal":        comparisons(isUnequal[int64], isUnequal[float64], isUnequal[string], func(c int) bool { return c != 0 }),
	"$less":             comparisons(isLess[int64], isLess[float64], isLess[string], func(c int) bool { return c < 0 }),
	"$less_or_equal":    comparisons(isAtMost[int64], isAtMost[float64], isAtMost[string], func(c int) bool { return c <= 0 }),
	"$greater":          comparisons(swapped(isLess[int64]), swapped(isLess[float64]), swapped(isLess[string]), func(c int) bool { return c > 0 }),
	"$greater_or_equal": comparisons(swapped(isAtMost[int64]), swapped(isAtMost[float64]), swapped(isAtMost[string]), func(c int) bool { return c >= 0 }),
}

// LookupKernel returns the kernel of a function; nil if it has none.
func LookupKernel(f *tree.Function) Kernel {
	if f.Safe || len(f.Args) != 2 || f.Args[0].Kind != f.Args[1].Kind {
		return nil
	}
	return Kernels[f.Name][f.Args[0].Kind]
}

// Output holds the values that a kernel has computed, by row. The next computation overwrites them, to reuse their
// memory. The zero Output is ready for use.
type Output struct {
	Vector value.Vector

	nulls    []bool
	places   []int32 // numbers of the rows without NULL arguments
	ints     []int64
	floats   []float64
	bools    []bool
	decimals []value.Decimal
	left     operand
	right    operand
}

// operand is a buffer for the values of an argument, by row number. The kernel fills the slice of the type that it
// computes with, if the fn.Column of the argument holds the values in another form.
type operand struct {
	ints     []int64
	floats   []float64
	texts    []string
	decimals []value.Decimal
}

func sized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// Begin starts the output of values of type t. The elements of places are the numbers of the rows to compute. If an
// argument of such a row is NULL, Begin sets the row's result to NULL. It returns the numbers of the other rows, which
// the caller must compute.
func (o *Output) Begin(t *value.Type, args []fn.Column, span int, places []int32) []int32 {
	o.Vector = value.Vector{Type: t}
	for i := range args {
		o.markNulls(&args[i], span, places)
	}
	if o.Vector.Nulls == nil {
		return places
	}
	o.places = o.places[:0]
	for _, i := range places {
		if !o.nulls[i] {
			o.places = append(o.places, i)
		}
	}
	return o.places
}

// markNulls looks at the rows whose numbers are the elements of places. It sets the result of a row to NULL if the
// argument in column c is NULL.
func (o *Output) markNulls(c *fn.Column, span int, places []int32) {
	if c.Vector != nil {
		if c.Vector.Nulls != nil {
			nulls := o.Nulls(span)
			for _, i := range places {
				nulls[i] = nulls[i] || c.Vector.Nulls[i]
			}
		}
		return
	}
	for _, i := range places {
		if c.Values[int(i)*c.Stride].IsNull() {
			o.Nulls(span)[i] = true
		}
	}
}

// Nulls returns the flags, by row, that tell which values of the output are NULL. The caller may change them.
func (o *Output) Nulls(span int) []bool {
	if o.Vector.Nulls == nil {
		o.nulls = sized(o.nulls, span)
		clear(o.nulls)
		o.Vector.Nulls = o.nulls
	}
	return o.nulls
}

// Bools makes the output a column of BOOLs. It returns the slice of these BOOLs, which the caller must fill. The length
// of the slice is span.
func (o *Output) Bools(span int) []bool {
	o.bools = sized(o.bools, span)
	o.Vector.Bools = o.bools
	return o.bools
}

// dense copies the values of an argument to room, a buffer for reuse, and returns them by row. The parameter of is the
// function that converts one value.
func dense[T any](c *fn.Column, room *[]T, span int, places []int32, of func(value.Value) T) []T {
	*room = sized(*room, span)
	out := *room
	if c.Vector == nil && c.Stride == 0 {
		x := of(c.Values[0])
		for i := range out {
			out[i] = x
		}
		return out
	}
	if c.Vector == nil {
		for _, i := range places {
			out[i] = of(c.Values[int(i)*c.Stride])
		}
		return out
	}
	for _, i := range places {
		out[i] = of(c.Vector.Peek(int(i)))
	}
	return out
}

func (p *operand) intsOf(c *fn.Column, span int, places []int32) []int64 {
	if c.Vector != nil && c.Vector.Ints != nil {
		return c.Vector.Ints
	}
	return dense(c, &p.ints, span, places, value.Value.AsInt64)
}

func (p *operand) floatsOf(c *fn.Column, span int, places []int32) []float64 {
	if c.Vector != nil && c.Vector.Floats != nil {
		return c.Vector.Floats
	}
	return dense(c, &p.floats, span, places, value.Value.AsFloat64)
}

func (p *operand) textsOf(c *fn.Column, span int, places []int32) []string {
	if c.Vector == nil || c.Vector.Offsets == nil {
		return dense(c, &p.texts, span, places, value.Value.AsString)
	}
	p.texts = sized(p.texts, span)
	for _, i := range places {
		p.texts[i] = c.Vector.StringAt(int(i))
	}
	return p.texts
}

func (p *operand) decimalsOf(c *fn.Column, span int, places []int32) []value.Decimal {
	if c.Vector != nil && c.Vector.Decimals != nil {
		return c.Vector.Decimals
	}
	return dense(c, &p.decimals, span, places, value.Value.AsNumeric)
}

// nanosOf returns TIMESTAMPs as nanoseconds since 1970. ok is false if a timestamp is too far from 1970 for that.
func (p *operand) nanosOf(c *fn.Column, span int, places []int32) (nanos []int64, ok bool) {
	if c.Vector != nil && c.Vector.Ints != nil {
		return c.Vector.Ints, true
	}
	ok = true
	return dense(c, &p.ints, span, places, func(v value.Value) int64 {
		n, in := v.UnixNanos()
		ok = ok && in
		return n
	}), ok
}

func onInts(f func(z, x, y []int64, places []int32) bool) Kernel {
	return func(o *Output, args []fn.Column, span int, places []int32) bool {
		places = o.Begin(value.Int64Type, args, span, places)
		o.ints = sized(o.ints, span)
		o.Vector.Ints = o.ints
		return len(places) == 0 || f(o.ints, o.left.intsOf(&args[0], span, places), o.right.intsOf(&args[1], span, places), places)
	}
}

func onFloats(f func(z, x, y []float64, places []int32) bool) Kernel {
	return func(o *Output, args []fn.Column, span int, places []int32) bool {
		places = o.Begin(value.Float64Type, args, span, places)
		o.floats = sized(o.floats, span)
		o.Vector.Floats = o.floats
		return len(places) == 0 || f(o.floats, o.left.floatsOf(&args[0], span, places), o.right.floatsOf(&args[1], span, places), places)
	}
}

func onDecimals(f func(x, y value.Decimal) (value.Decimal, bool)) Kernel {
	return func(o *Output, args []fn.Column, span int, places []int32) bool {
		places = o.Begin(value.NumericType, args, span, places)
		o.decimals = sized(o.decimals, span)
		o.Vector.Decimals = o.decimals
		x, y := o.left.decimalsOf(&args[0], span, places), o.right.decimalsOf(&args[1], span, places)
		for _, i := range places {
			var ok bool
			if o.decimals[i], ok = f(x[i], y[i]); !ok {
				return false
			}
		}
		return true
	}
}

func addInts(z, x, y []int64, places []int32) bool {
	var over int64
	for _, i := range places {
		a, b := x[i], y[i]
		c := a + b
		over |= (a ^ c) & (b ^ c)
		z[i] = c
	}
	return over >= 0
}

func subtractInts(z, x, y []int64, places []int32) bool {
	var over int64
	for _, i := range places {
		a, b := x[i], y[i]
		c := a - b
		over |= (a ^ b) & (a ^ c)
		z[i] = c
	}
	return over >= 0
}

func multiplyInts(z, x, y []int64, places []int32) bool {
	for _, i := range places {
		a, b := x[i], y[i]
		if a == int64(int32(a)) && b == int64(int32(b)) {
			z[i] = a * b
			continue
		}
		var ok bool
		if z[i], ok = product(a, b); !ok {
			return false
		}
	}
	return true
}

func addFloats(z, x, y []float64, places []int32) bool {
	for _, i := range places {
		z[i] = x[i] + y[i]
		if !fn.IsFinite(z[i]) && fn.IsFinite(x[i]) && fn.IsFinite(y[i]) {
			return false
		}
	}
	return true
}

func subtractFloats(z, x, y []float64, places []int32) bool {
	for _, i := range places {
		z[i] = x[i] - y[i]
		if !fn.IsFinite(z[i]) && fn.IsFinite(x[i]) && fn.IsFinite(y[i]) {
			return false
		}
	}
	return true
}

func multiplyFloats(z, x, y []float64, places []int32) bool {
	for _, i := range places {
		z[i] = x[i] * y[i]
		if !fn.IsFinite(z[i]) && fn.IsFinite(x[i]) && fn.IsFinite(y[i]) {
			return false
		}
	}
	return true
}

func divideFloats(z, x, y []float64, places []int32) bool {
	for _, i := range places {
		z[i] = x[i] / y[i]
		if y[i] == 0 || !fn.IsFinite(z[i]) && fn.IsFinite(x[i]) && fn.IsFinite(y[i]) {
			return false
		}
	}
	return true
}

// compares is a loop over the elements of places, which are row numbers. For each row number i, it sets z[i] to the
// result of comparing x[i] and y[i].
type compares[T cmp.Ordered] func(z []bool, x, y []T, places []int32)

// comparisons returns the kernels of a comparison. ints, floats and texts are the loops for types that Go can compare.
// The parameter holds is for NUMERIC: it converts the result of Decimal.Cmp (-1, 0 or 1) to that of the comparison.
func comparisons(ints compares[int64], floats compares[float64], texts compares[string], holds func(int) bool) map[value.Kind]Kernel {
	whole := func(o *Output, args []fn.Column, span int, places []int32) bool {
		places = o.Begin(value.BoolType, args, span, places)
		ints(o.Bools(span), o.left.intsOf(&args[0], span, places), o.right.intsOf(&args[1], span, places), places)
		return true
	}
	text := func(o *Output, args []fn.Column, span int, places []int32) bool {
		places = o.Begin(value.BoolType, args, span, places)
		texts(o.Bools(span), o.left.textsOf(&args[0], span, places), o.right.textsOf(&args[1], span, places), places)
		return true
	}
	return map[value.Kind]Kernel{
		value.Int64: whole, value.Date: whole, value.String: text, value.Bytes: text,
		value.Timestamp: func(o *Output, args []fn.Column, span int, places []int32) bool {
			places = o.Begin(value.BoolType, args, span, places)
			x, ok := o.left.nanosOf(&args[0], span, places)
			y, also := o.right.nanosOf(&args[1], span, places)
			if !ok || !also {
				return len(places) == 0
			}
			ints(o.Bools(span), x, y, places)
			return true
		},
		value.Float64: func(o *Output, args []fn.Column, span int, places []int32) bool {
			places = o.Begin(value.BoolType, args, span, places)
			floats(o.Bools(span), o.left.floatsOf(&args[0], span, places), o.right.floatsOf(&args[1], span, places), places)
			return true
		},
		value.Numeric: func(o *Output, args []fn.Column, span int, places []int32) bool {
			places = o.Begin(value.BoolType, args, span, places)
			x, y := o.left.decimalsOf(&args[0], span, places), o.right.decimalsOf(&args[1], span, places)
			bools := o.Bools(span)
			for _, i := range places {
				bools[i] = holds(x[i].Cmp(y[i]))
			}
			return true
		},
	}
}

func isEqual[T cmp.Ordered](z []bool, x, y []T, places []int32) {
	for _, i := range places {
		z[i] = x[i] == y[i]
	}
}

func isUnequal[T cmp.Ordered](z []bool, x, y []T, places []int32) {
	for _, i := range places {
		z[i] = x[i] != y[i]
	}
}

func isLess[T cmp.Ordered](z []bool, x, y []T, places []int32) {
	for _, i := range places {
		z[i] = x[i] < y[i]
	}
}

func isAtMost[T cmp.Ordered](z []bool, x, y []T, places []int32) {
	for _, i := range places {
		z[i] = x[i] <= y[i]
	}
}

func swapped[T cmp.Ordered](f compares[T]) compares[T] {
	return func(z []bool, x, y []T, places []int32) { f(z, y, x, places) }
}
