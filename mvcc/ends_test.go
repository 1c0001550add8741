package mvcc_test

import (
	"context"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/crowfoot-db/crowfoot/kv/pebble"
	"github.com/crowfoot-db/crowfoot/mvcc"
)

// TestEnds checks that Ends returns the first and last key of a range, even if they are deleted. It also checks that
// From accepts keys and positions between keys.
func TestEnds(t *testing.T) {
	store, err := pebble.Open("data", vfs.NewMem())
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	v := mvcc.New(store).In(7)
	b := v.NewBatch()
	defer b.Close()
	for ts, k := range []string{"b", "d", "d", "f"} {
		if err := b.Put(key(k), []byte(k), mvcc.Timestamp(ts+1)); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Delete(key("a"), 9); err != nil {
		t.Fatal(err)
	}
	if err := b.Commit(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ start, end, first, last string }{
		{"", "z", "a", "f"}, {"b", "f", "b", "d"}, {"c", "e", "d", "d"}, {"e", "f", "", ""},
	} {
		first, last, err := v.Ends([]byte(c.start), key(c.end))
		if err != nil || name(first) != c.first || name(last) != c.last {
			t.Errorf("ends of %s-%s: %q, %q, %v", c.start, c.end, first, last, err)
		}
	}
	for place, want := range map[string]string{"": "a", "b": "b", "b\x00": "b", "b\x01": "d", "c\x00\x01": "d", "f\x01": "", "\xff": ""} {
		if got, err := v.From([]byte(place), key("z")); err != nil || name(got) != want {
			t.Errorf("from %q: %q, %v, want %q", place, got, err, want)
		}
	}
	if n, err := v.Size(key("a"), []byte("z")); err != nil || n != 0 {
		t.Errorf("in memory: %d bytes, %v", n, err)
	}
	for _, atLeast := range []uint64{1 << 30, 1} {
		if err := v.Flush(context.Background(), atLeast); err != nil {
			t.Fatal(err)
		}
		if n, err := v.Size(key("a"), []byte("z")); err != nil || (n > 0) != (atLeast == 1) {
			t.Errorf("flushed if there are %d bytes: %d bytes, %v", atLeast, n, err)
		}
	}
}
