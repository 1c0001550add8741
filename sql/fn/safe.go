package fn

import (
	"errors"

	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// suppressible reports whether SAFE. and SAFE_CAST turn an error into NULL. They do so for errors that the data caused, not for errors of
// the system.
func suppressible(err error) bool {
	var e *usererror.Error
	return errors.As(err, &e) && (e.Code == codes.OutOfRange || e.Code == codes.InvalidArgument)
}

func unsupported(f *tree.Function) error {
	args := make([]string, len(f.Args))
	for i, t := range f.Args {
		if args[i] = "LAMBDA"; t != nil {
			args[i] = t.String()
		}
	}
	return usererror.UnsupportedFunction(f.Name, args)
}

// null returns NULL of a kind, without an error.
func null(k value.Kind) (value.Value, error) { return value.Null(k), nil }

func ofBool(b bool) (value.Value, error)       { return value.OfBool(b), nil }
func ofInt64(i int64) (value.Value, error)     { return value.OfInt64(i), nil }
func ofFloat64(f float64) (value.Value, error) { return value.OfFloat64(f), nil }
func ofString(s string) (value.Value, error)   { return value.OfString(s), nil }
func ofBytes(b []byte) (value.Value, error)    { return value.OfBytes(b), nil }
