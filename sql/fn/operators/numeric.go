package operators

import (
	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// The functions in this file do arithmetic on NUMERIC. They round results to nine digits after the point, and round
// halves away from zero.

func addNumeric(_ *fn.Context, a []value.Value) (value.Value, error) {
	return numericOperation(a, "+", value.Decimal.Add)
}

func subtractNumeric(_ *fn.Context, a []value.Value) (value.Value, error) {
	return numericOperation(a, "-", value.Decimal.Sub)
}

func multiplyNumeric(_ *fn.Context, a []value.Value) (value.Value, error) {
	return numericOperation(a, "*", value.Decimal.Mul)
}

func divideNumeric(_ *fn.Context, a []value.Value) (value.Value, error) {
	if a[1].AsNumeric().Sign() == 0 {
		return value.Value{}, numericByZero(a)
	}
	return numericOperation(a, "/", value.Decimal.Div)
}

func divNumeric(_ *fn.Context, a []value.Value) (value.Value, error) {
	x, y := a[0].AsNumeric(), a[1].AsNumeric()
	if y.Sign() == 0 {
		return value.Value{}, numericByZero(a)
	}
	rest, _ := x.Mod(y)
	whole, _ := x.Sub(rest) // a multiple of y, so the division below is exact
	quotient, ok := whole.Div(y)
	if !ok {
		return value.Value{}, fn.NumericOverflow(fn.InfixText(x.String(), "/", y.String()))
	}
	return value.OfNumeric(quotient), nil
}

func modNumeric(_ *fn.Context, a []value.Value) (value.Value, error) {
	if a[1].AsNumeric().Sign() == 0 {
		return value.Value{}, numericByZero(a)
	}
	return numericOperation(a, "%", value.Decimal.Mod)
}

func negateNumeric(_ *fn.Context, a []value.Value) (value.Value, error) {
	return value.OfNumeric(a[0].AsNumeric().Neg()), nil
}

func numericOperation(a []value.Value, operator string, f func(x, y value.Decimal) (value.Decimal, bool)) (value.Value, error) {
	x, y := a[0].AsNumeric(), a[1].AsNumeric()
	z, ok := f(x, y)
	if !ok {
		return value.Value{}, fn.NumericOverflow(fn.InfixText(x.String(), operator, y.String()))
	}
	return value.OfNumeric(z), nil
}

func numericByZero(a []value.Value) error {
	return usererror.DivisionByZero(fn.InfixText(a[0].AsNumeric().String(), "/", a[1].AsNumeric().String()))
}
