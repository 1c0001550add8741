package table

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/value"
)

// batchMemory is a mapWriter that is also a BatchView. The field each holds the keys of the last call of GetEach.
type batchMemory struct {
	*mapWriter
	each [][]byte
}

func (m *batchMemory) Timestamp() mvcc.Timestamp { return 1 }

func (m *batchMemory) GetEach(ctx context.Context, keys [][]byte, _ mvcc.Timestamp, found func(i int, val []byte, ok bool) bool) error {
	m.each = keys
	gets := m.gets
	defer func() { m.gets = gets }()
	for i, k := range keys {
		val, ok, err := m.Get(ctx, k, LockShared)
		if err != nil {
			return err
		}
		if !found(i, val, ok) {
			break
		}
	}
	return nil
}

// TestReadAhead checks that ReadAhead followed by Reopen gives the same rows as Reopen alone. It also checks how many
// rows are read from the View one by one after Reopen. These are the rows that ReadAhead did not keep (a row that is
// too large, and all rows with smaller keys, because ReadAhead reads in descending order), and the rows that are not
// read in the order of the calls of Expect.
func TestReadAhead(t *testing.T) {
	const missing = 100
	for _, c := range []struct {
		name             string
		sizes            []int
		expected, wanted []int64
		gets             int
	}{
		{name: "any order", sizes: []int{1, 2, 3, 4}, expected: []int64{2, 0, 3, 2, 1}, wanted: []int64{2, 0, 3, 2, 1}},
		{name: "a missing row", sizes: []int{1, 2}, expected: []int64{1, missing, 0}, wanted: []int64{1, missing, 0}},
		{name: "not all are wanted", sizes: []int{1, 2, 3}, expected: []int64{1, 2, 0}, wanted: []int64{1}},
		{name: "another is wanted", sizes: []int{1, 2, 3}, expected: []int64{1, 2}, wanted: []int64{0, 2, 1}, gets: 2},
		{name: "a large row", sizes: []int{1, 2, LargeRow + 1, 4}, expected: []int64{0, 1, 2, 3}, wanted: []int64{0, 1, 2, 3}, gets: 3},
		{name: "more than is kept", sizes: slices.Repeat([]int{LargeRow - 100}, 10), expected: []int64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, wanted: []int64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, gets: 2},
	} {
		s, p := rowsOf(t, c.sizes)
		view := &batchMemory{mapWriter: s.m}
		key := func(id int64) []byte { return p.AppendKey(nil, []value.Value{value.OfInt64(id)}) }
		rows := Read{Projection: p}.Open(context.Background(), view)
		for range 2 {
			rows.Forget()
			for _, id := range c.expected {
				rows.Expect(key(id))
			}
			if _, err := rows.ReadAhead(view, 0); err != nil {
				t.Fatal(err)
			}
			if !slices.IsSortedFunc(view.each, func(a, b []byte) int { return bytes.Compare(b, a) }) {
				t.Errorf("%s: keys were read in the order %x", c.name, view.each)
			}
			before := s.m.gets
			for _, id := range c.wanted {
				if err := rows.Reopen([]Span{{Start: key(id)}}, 0); err != nil {
					t.Fatal(err)
				}
				ok, err := rows.Next()
				if err != nil || ok != (id != missing) {
					t.Fatalf("%s: row %d: %v, %v", c.name, id, ok, err)
				}
				if !ok {
					continue
				}
				if v := rows.Values(nil); v[0].AsInt64() != id || v[1].AsString() != strings.Repeat("x", c.sizes[id]) {
					t.Errorf("%s: row %d is %v", c.name, id, v)
				}
			}
			if got := s.m.gets - before; got != c.gets {
				t.Errorf("%s: %d rows were got one by one, wanted %d", c.name, got, c.gets)
			}
		}
		if err := rows.Close(); err != nil {
			t.Error(err)
		}
	}
}
