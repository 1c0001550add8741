package library

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/sql/fn/aggregate"
	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/value"
)

// TestGroups checks that the Groups of each aggregate return the same results as one State for each group, if both get
// the same random rows. In each batch some rows belong to no group. The columns have every form that a fn.Column can
// have: a vector, values with a Stride, or one value for all rows.
func TestGroups(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for name, signatures := range aggregateSignatures {
		for _, signature := range signatures {
			for _, safe := range []bool{false, true} {
				for range 50 {
					types, result := randomCall(r, signature)
					a, err := aggregate.Lookup(&tree.Function{Name: name, Args: types, Type: result, Safe: safe})
					if err != nil {
						t.Fatal(err)
					}
					compareGroups(t, r, fmt.Sprint(name, types), a, types, result)
				}
			}
		}
	}
}

func compareGroups(t *testing.T, r *rand.Rand, name string, a *fn.Aggregate, types []*value.Type, result *value.Type) {
	groups, states := a.NewGroups(), []fn.State{}
	for range 4 {
		if len(states) > 0 && r.IntN(3) == 0 {
			kept := r.IntN(len(states))
			groups.Keep(kept)
			states = []fn.State{states[kept]}
		}
		for range r.IntN(3) {
			states = append(states, a.New())
		}
		groups.Grow(len(states))
		numbers, columns, rows := randomBatch(r, types, len(states))
		var want error
		var counted []int32
		for i, n := range numbers {
			if n < 0 {
				continue
			}
			counted = append(counted, int32(i))
			if want == nil {
				want = states[n].Add(rows[i])
			}
		}
		err := groups.Add(counted, numbers, columns)
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

// randomBatch returns up to 19 rows, as columns and row by row. The result numbers holds the number of each row's
// group, or -1 for a row without a group.
func randomBatch(r *rand.Rand, types []*value.Type, groups int) (numbers []int32, columns []fn.Column, rows [][]value.Value) {
	n := r.IntN(20)
	for range n {
		numbers = append(numbers, int32(r.IntN(groups+1)-1))
	}
	for _, t := range types {
		columns = append(columns, randomColumn(r, t, n))
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

// randomColumn returns a column of n values of a type. The column holds a vector, or Values with a random Stride (see
// fn.Column).
func randomColumn(r *rand.Rand, t *value.Type, n int) fn.Column {
	if r.IntN(2) == 0 {
		var values []value.Value
		for range n {
			values = append(values, random(r, t))
		}
		return fn.Column{Vector: vectorOf(values, t)}
	}
	c := fn.Column{Stride: r.IntN(3)}
	for range n*c.Stride + 1 {
		c.Values = append(c.Values, random(r, t))
	}
	return c
}

// vectorOf makes a vector of values, in the layout that vectors of their type have.
func vectorOf(values []value.Value, t *value.Type) *value.Vector {
	v := &value.Vector{Type: t, Offsets: []int32{0}}
	nanoseconds := t.Kind == value.Timestamp
	for _, x := range values {
		if x.IsNull() && v.Nulls == nil {
			v.Nulls = make([]bool, len(values))
		}
		_, ok := x.UnixNanos()
		nanoseconds = nanoseconds && ok
	}
	for i, x := range values {
		if v.Nulls != nil {
			v.Nulls[i] = x.IsNull()
		}
		if n, _ := x.UnixNanos(); nanoseconds {
			v.Ints = append(v.Ints, n)
		} else {
			v.Ints = append(v.Ints, x.AsInt64())
		}
		v.Bools = append(v.Bools, x.AsBool())
		if t.Kind == value.Float64 || t.Kind == value.Float32 {
			v.Floats = append(v.Floats, x.AsFloat64())
		}
		if t.Kind == value.Numeric {
			v.Decimals = append(v.Decimals, x.AsNumeric())
		}
		if value.KeepsTexts(t.Kind) {
			if !x.IsNull() {
				v.Text = append(v.Text, x.AsBytes()...)
			}
			v.Offsets = append(v.Offsets, int32(len(v.Text)))
		}
	}
	keep := value.Vector{Type: t, Nulls: v.Nulls}
	switch {
	case t.Kind == value.Int64 || t.Kind == value.Date || nanoseconds:
		keep.Ints = v.Ints
	case t.Kind == value.Bool:
		keep.Bools = v.Bools
	case v.Floats != nil:
		keep.Floats = v.Floats
	case v.Decimals != nil:
		keep.Decimals = v.Decimals
	case value.KeepsTexts(t.Kind):
		keep.Offsets, keep.Text = v.Offsets, v.Text
	default:
		keep.Values = values
	}
	return &keep
}
