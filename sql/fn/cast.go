package fn

import (
	"github.com/crowfoot-db/crowfoot/fault"
	"github.com/crowfoot-db/crowfoot/value"
)

// Cast picks the conversion of one type to another. Its arguments are the value and, for CAST with FORMAT, the format and,
// if given, the time zone: three at most. A safe cast turns what cannot be converted into NULL.
func Cast(from, to *value.Type, safe bool) (*Scalar, error) {
	convert := conversion(from, to)
	if convert == nil {
		return nil, fault.NoCast(from.String(), to.String())
	}
	return &Scalar{eval: convert, null: value.Null(to.Kind), safe: safe, Stable: true}, nil
}

// conversion is nil if there is none.
func conversion(from, to *value.Type) Eval {
	if from.Equal(to) {
		return func(_ *Context, a []value.Value) (value.Value, error) { return a[0], nil }
	}
	return nil
}
