package fn

import (
	"errors"

	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// Suppressible reports whether SAFE. and SAFE_CAST turn an error into NULL. They turn errors that the data caused
// into NULL, but not errors of the system.
func Suppressible(err error) bool {
	var e *usererror.Error
	return errors.As(err, &e) && (e.Code == codes.OutOfRange || e.Code == codes.InvalidArgument)
}

// Unsupported returns the error for a call whose arguments no overload accepts.
func Unsupported(f *tree.Function) error {
	args := make([]string, len(f.Args))
	for i, t := range f.Args {
		if args[i] = "LAMBDA"; t != nil {
			args[i] = t.String()
		}
	}
	return usererror.UnsupportedFunction(f.Name, args)
}

// Null returns NULL of a kind and a nil error.
func Null(k value.Kind) (value.Value, error) { return value.Null(k), nil }

// OfBool, OfInt64, OfFloat64, OfString and OfBytes return a value and a nil error.

func OfBool(b bool) (value.Value, error)       { return value.OfBool(b), nil }
func OfInt64(i int64) (value.Value, error)     { return value.OfInt64(i), nil }
func OfFloat64(f float64) (value.Value, error) { return value.OfFloat64(f), nil }
func OfString(s string) (value.Value, error)   { return value.OfString(s), nil }
func OfBytes(b []byte) (value.Value, error)    { return value.OfBytes(b), nil }
