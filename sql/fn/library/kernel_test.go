package library

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/sql/fn/operators"
	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/value"
)

// TestKernels checks that each kernel (see operators.Kernel) returns the same results as the Scalar of its function.
// The columns have every form that a Column can have, and the kernel computes only some of the rows.
func TestKernels(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for name, kinds := range operators.Kernels {
		for kind, kernel := range kinds {
			types := []*value.Type{{Kind: kind}, {Kind: kind}}
			f := &tree.Function{Name: name, Args: types, Type: types[0]}
			if scalarSignatures[name][0] == "ANY, ANY -> BOOL" {
				f.Type = value.BoolType
			}
			scalar, err := Lookup(f)
			if err != nil {
				t.Fatal(err)
			}
			var out operators.Output
			failed := 0
			for range 1000 {
				if !compareKernel(t, r, fmt.Sprint(name, types), kernel, &out, scalar, f) {
					failed++
				}
			}
			if failed > 900 {
				t.Errorf("%s: %d of 1000 fail", f.Name, failed)
			}
		}
	}
}

func compareKernel(t *testing.T, r *rand.Rand, name string, kernel operators.Kernel, out *operators.Output, scalar *fn.Scalar, f *tree.Function) (ok bool) {
	numbers, columns, rows := randomBatch(r, f.Args, 3)
	var places []int32
	failed := false
	want := make([]value.Value, len(numbers))
	for i, n := range numbers {
		if n < 0 {
			continue
		}
		places = append(places, int32(i))
		var err error
		want[i], err = scalar.Call(&fn.Context{}, rows[i])
		failed = failed || err != nil
	}
	ok = kernel(out, columns, len(numbers), places)
	if !ok && !failed && f.Args[0].Kind != value.Timestamp || ok && failed {
		t.Fatalf("%s: ok is %v, but an error is %v: %v", name, ok, failed, rows)
	}
	for _, i := range places {
		if !ok {
			break
		}
		got := out.Vector.At(int(i))
		if got.IsNull() != want[i].IsNull() || !value.Equal(got, want[i], f.Type) {
			t.Fatalf("%s of %v: %v, want %v", name, rows[i], got, want[i])
		}
	}
	return ok
}
