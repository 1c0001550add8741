package library

import (
	"testing"
	"time"

	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/sql/fn/sqltext"
	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// goLambda is a Go function that takes the place of a lambda argument.
type goLambda func(args []value.Value) (value.Value, error)

func (l goLambda) Apply(args []value.Value) (value.Value, error) { return l(args) }

func TestLambdas(t *testing.T) {
	ints := value.ArrayOf(value.Int64Type)
	odd := goLambda(func(a []value.Value) (value.Value, error) {
		if a[0].IsNull() {
			return value.Null(value.Bool), nil
		}
		return value.OfBool(a[0].AsInt64()%2 == 1), nil
	})
	second := goLambda(func(a []value.Value) (value.Value, error) { return a[1], nil })
	fails := goLambda(func([]value.Value) (value.Value, error) { return value.Value{}, usererror.UserError("raised") })
	list := value.OfArray([]value.Value{value.OfInt64(4), value.OfInt64(5), value.Null(value.Int64), value.OfInt64(7)})
	none := value.Null(value.Array)

	for _, c := range []struct {
		name   string
		safe   bool
		args   []value.Value
		lambda fn.Lambda
		result *value.Type
		want   string
	}{
		{"array_filter", false, []value.Value{list}, odd, ints, "[5, 7]"},
		{"array_filter", false, []value.Value{none}, odd, ints, "NULL"},
		{"array_filter", false, []value.Value{list}, fails, ints, "raised"},
		{"array_filter", true, []value.Value{list}, fails, ints, "NULL"},
		{"array_transform", false, []value.Value{list}, second, ints, "[0, 1, 2, 3]"},
		{"array_transform", false, []value.Value{none}, second, ints, "NULL"},
		{"array_includes", false, []value.Value{list}, odd, value.BoolType, "true"},
		{"array_includes", false, []value.Value{value.OfArray(nil)}, odd, value.BoolType, "false"},
		{"array_includes", false, []value.Value{none}, odd, value.BoolType, "NULL"},
	} {
		f := &tree.Function{Name: c.name, Args: []*value.Type{ints, nil}, Type: c.result, Safe: c.safe}
		s, err := Lookup(f)
		if err != nil {
			t.Fatal(err)
		}
		v, err := s.Higher(testContext(), c.args, []fn.Lambda{c.lambda})
		got := string(sqltext.Printer{Zone: time.UTC}.Append(nil, v, c.result))
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}
