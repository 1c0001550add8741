package table

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/value"
)

// byteSource makes random numbers from the fuzzer's bytes, so that the fuzzer controls random choices.
type byteSource struct {
	data  []byte
	drawn uint64
}

func (s *byteSource) Uint64() uint64 {
	var b [8]byte
	n := copy(b[:2], s.data)
	s.data = s.data[n:]
	s.drawn++
	// The multiplication spreads the bits of the two bytes over the whole number, because IntN uses the high bits.
	// Each call must return a different number, because IntN calls Uint64 again until it accepts a number.
	return (binary.LittleEndian.Uint64(b[:])<<32 + s.drawn) * 0x9E3779B97F4A7C15
}

// FuzzMutations checks that commits have the same results in a store as in the model of TestModel. The fuzzer's bytes
// choose the commits.
func FuzzMutations(f *testing.F) {
	for i := range byte(4) {
		f.Add([]byte{i, 50 * i, 99, i, 7, 3, 5, 1, 2, 200, i, 180, 4, 100, i, 77, 31, 8, 250, 60, 20, 10, i, 90})
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		script := newScript()
		if err := script.ddl(modelDDL); err != nil {
			t.Fatal(err)
		}
		source := &byteSource{data: data}
		m := newModel(script.catalog, rand.New(source))
		for step := mvcc.Timestamp(1); len(source.data) > 0 && step < 50; step++ {
			muts := m.randomCommit()
			want := m.commit(muts)
			err := script.m.attempt(func() error {
				_, err := Apply(context.Background(), script.m, NewDescriptors(script.catalog), muts, testNow)
				return err
			})
			m.agree(t, err, want, muts)
			script.m.commit(step)
			m.compare(t, script.m, "after a commit")
		}
	})
}

// FuzzKeySets checks that reading a key set from a store with a few rows returns the same rows as the model of
// TestModel. The fuzzer's bytes choose the key sets.
func FuzzKeySets(f *testing.F) {
	f.Add(uint64(1), []byte{1, 2, 3, 4, 5, 6, 7, 8, 9})
	f.Add(uint64(2), []byte{200, 9, 100, 40, 50, 60, 70, 80, 90, 250, 3})
	f.Fuzz(func(t *testing.T, seed uint64, data []byte) {
		script := newScript()
		if err := script.ddl(modelDDL); err != nil {
			t.Fatal(err)
		}
		m := newModel(script.catalog, rand.New(rand.NewPCG(seed, 1)))
		for range 10 {
			muts := m.randomCommit()
			m.commit(muts)
			_ = script.m.attempt(func() error {
				_, err := Apply(context.Background(), script.m, NewDescriptors(script.catalog), muts, testNow)
				return err
			})
		}
		source := &byteSource{data: data}
		m.r = rand.New(source)
		for i := 0; len(source.data) > 0 && i < 50; i++ {
			m.compareKeySet(t, script.m)
		}
	})
}

// FuzzStored checks that decoding damaged keys and values does not panic. It must return an error, or a row that has
// exactly the decoded key.
func FuzzStored(f *testing.F) {
	script := newScript()
	if err := script.ddl(modelDDL); err != nil {
		f.Fatal(err)
	}
	tab := script.catalog.Table("Casc")
	d, err := newDescriptor(script.catalog, tab)
	if err != nil {
		f.Fatal(err)
	}
	g := newTarget(d, true)
	row := []value.Value{value.OfInt64(1), value.OfString("a\x00"), value.OfInt64(-5), value.OfInt64(7), value.OfString("w")}
	key, _ := g.layout.appendRowKey(nil, row, nil)
	val, _ := appendRowValue(nil, g.stored, row, nil)
	f.Add(key, val)
	f.Add(key[:5], val[:3])
	f.Fuzz(func(t *testing.T, key, val []byte) {
		if err := g.decode(g.row, Stored{key, val}); err != nil {
			return
		}
		again, _ := g.layout.appendRowKey(nil, g.row, nil)
		if string(again) != string(key) {
			t.Errorf("key %x is read as one with key %x", key, again)
		}
	})
}
