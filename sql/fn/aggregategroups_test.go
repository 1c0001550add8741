package fn

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/value"
)

// TestGroups adds random rows to the groups of each aggregate, in batches of which some rows are left out and whose columns are strided or have one value,
// and compares the results with those of a State for each group.
func TestGroups(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for name, record := range aggregates {
		for _, o := range record.overloads {
			for _, safe := range []bool{false, true} {
				for range 50 {
					types, result := randomCall(r, o.signature)
					a, err := LookupAggregate(&tree.Function{Name: name, Args: types, Type: result, Safe: safe})
					if err != nil {
						t.Fatal(err)
					}
					compareGroups(t, r, fmt.Sprint(name, types), a, types, result)
				}
			}
		}
	}
}

func compareGroups(t *testing.T, r *rand.Rand, name string, a *Aggregate, types []*value.Type, result *value.Type) {
	groups, states := a.NewGroups(), []State{}
	for range 4 {
		if len(states) > 0 && r.IntN(3) == 0 {
			kept := r.IntN(len(states))
			groups.Keep(kept)
			states = []State{states[kept]}
		}
		for range r.IntN(3) {
			states = append(states, a.New())
		}
		groups.Grow(len(states))
		numbers, columns, rows := randomBatch(r, types, len(states))
		var want error
		for i, n := range numbers {
			if n >= 0 && want == nil {
				want = states[n].Add(rows[i])
			}
		}
		err := groups.Add(numbers, columns)
		if fmt.Sprint(err) != fmt.Sprint(want) {
			t.Fatalf("%s: %v, want %v", name, err, want)
		}
		if err != nil {
			return
		}
	}
	for i, s := range states {
		want, wantErr := s.Result()
		got, err := groups.Result(i)
		if fmt.Sprint(err) != fmt.Sprint(wantErr) || got.IsNull() != want.IsNull() || wantErr == nil && !value.Equal(got, want, result) {
			t.Fatalf("%s of group %d: %v %v, want %v %v", name, i, got, err, want, wantErr)
		}
	}
	groups.Clear()
	groups.Grow(1)
	got, err := groups.Result(0)
	want, wantErr := a.New().Result()
	if err != nil || wantErr != nil || !value.Equal(got, want, result) {
		t.Fatalf("%s of no rows: %v %v, want %v %v", name, got, err, want, wantErr)
	}
}

// randomBatch is up to 19 rows, each with the number of its group or -1: as columns, and row by row.
func randomBatch(r *rand.Rand, types []*value.Type, groups int) (numbers []int32, columns []Column, rows [][]value.Value) {
	n := r.IntN(20)
	for range n {
		numbers = append(numbers, int32(r.IntN(groups+1)-1))
	}
	for _, t := range types {
		column := Column{Stride: r.IntN(3)}
		for range n*column.Stride + 1 {
			column.Values = append(column.Values, random(r, t))
		}
		columns = append(columns, column)
	}
	for i := range n {
		var row []value.Value
		for j := range columns {
			row = append(row, columns[j].At(i))
		}
		rows = append(rows, row)
	}
	return numbers, columns, rows
}
