package stats

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"
)

func randomRecord(rnd *rand.Rand) record {
	r := record{rest: randomTally(rnd)}
	for range rnd.IntN(4) {
		r.tallies = append(r.tallies, randomTally(rnd))
	}
	return r
}

func randomTally(rnd *rand.Rand) *tally {
	text := func() string { return "texts and more texts"[:rnd.IntN(20)] }
	t := &tally{subject: subject{fingerprint: int64(rnd.Uint64()), kind: uint8(rnd.IntN(3)), truncated: rnd.IntN(2) == 0, name: text(), tag: text()}}
	for i := range t.subject.lists {
		for range rnd.IntN(3) {
			t.subject.lists[i] = append(t.subject.lists[i], text())
		}
	}
	for i := range t.sums {
		t.sums[i] = int64(rnd.Uint64()) >> rnd.IntN(64)
	}
	for range rnd.IntN(3) {
		t.distribution().Observe(time.Duration(rnd.IntN(1e12)))
	}
	for range rnd.IntN(3) {
		t.written = append(t.written, written{text(), int64(rnd.IntN(9)), math.MaxInt64})
		t.samples = append(t.samples, LockRequest{text(), text(), text()})
	}
	return t
}

func TestRecordRoundTrip(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	f := &family{sums: maxSums}
	for range 500 {
		r := randomRecord(rnd)
		got, err := decodeRecord(r.encode(f))
		if err != nil || !reflect.DeepEqual(got, r) {
			t.Fatalf("got %+v %v, want %+v", got, err, r)
		}
	}
}

// TestNewerSums: a record from another release, which has more or fewer sums, can be read.
func TestNewerSums(t *testing.T) {
	one := tally{subject: subject{name: "a"}}
	one.sums[0], one.sums[1] = 1, 2
	for _, sums := range []int{1, 2, maxSums} {
		r, err := decodeRecord(record{rest: &one}.encode(&family{sums: sums}))
		if err != nil || r.rest.sums[0] != 1 {
			t.Errorf("with %d sums: %v %v", sums, r.rest.sums, err)
		}
	}
}

// FuzzDecode checks that decoding any bytes returns a record or an error.
func FuzzDecode(f *testing.F) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 10 {
		data := randomRecord(rnd).encode(&family{sums: maxSums})
		f.Add(data)
		f.Add(data[:rnd.IntN(len(data))])
	}
	f.Add([]byte{recordVersion + 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		if r, err := decodeRecord(data); err == nil && r.rest == nil {
			t.Error("neither a record nor an error")
		}
		if s, err := decodeSet(data); err == nil && s == nil {
			t.Error("neither a set nor an error")
		}
	})
}
