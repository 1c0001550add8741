package result

import (
	"math/rand/v2"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/crowfoot-db/crowfoot/server/result/resulttest"
)

func randomValue(r *rand.Rand, depth int) *structpb.Value {
	switch n := r.IntN(8); {
	case n < 3 || depth == 0:
		return structpb.NewStringValue(strings.Repeat([]string{"a", "é", "語", "🙂"}[r.IntN(4)], r.IntN(150)))
	case n == 3:
		return structpb.NewNumberValue(r.Float64())
	case n == 4:
		return structpb.NewNullValue()
	}
	list := &structpb.ListValue{}
	for range r.IntN(9) {
		list.Values = append(list.Values, randomValue(r, depth-1))
	}
	return structpb.NewListValue(list)
}

// TestCutMerges cuts random values until no piece is too long, and checks that merging the pieces gives the value
// again.
func TestCutMerges(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 1))
		want := randomValue(r, 3)
		limit := 128 + r.IntN(500)
		body, err := proto.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got *structpb.Value
		add := func(piece []byte) {
			v := new(structpb.Value)
			if err := proto.Unmarshal(piece, v); err != nil {
				t.Fatalf("seed %d: piece is no value (or bad UTF-8): %v", seed, err)
			}
			if got == nil {
				got = v
			} else {
				got = resulttest.Merge(got, v)
			}
		}
		for cuts := 0; ; cuts++ {
			head, tail, ok := cut(body, limit)
			if !ok {
				break
			}
			if len(head) > limit+4*elementHead {
				t.Fatalf("seed %d: piece of %d bytes, the limit is %d", seed, len(head), limit)
			}
			if len(tail) >= len(body) || cuts > 100000 {
				t.Fatalf("seed %d: no progress: %d bytes, then %d", seed, len(body), len(tail))
			}
			add(head)
			body = tail
		}
		if len(body) > limit+16 {
			t.Fatalf("seed %d: %d bytes left uncut, the limit is %d", seed, len(body), limit)
		}
		add(body)
		if !proto.Equal(got, want) {
			t.Fatalf("seed %d: merged pieces differ from the value", seed)
		}
	}
}
