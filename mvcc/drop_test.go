package mvcc_test

import (
	"errors"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/crowfoot-db/crowfoot/kv/pebble"
	"github.com/crowfoot-db/crowfoot/mvcc"
)

// TestDrop checks that every read of a dropped space fails, at old timestamps and at Latest. Queries of the changes in
// the space must fail, too.
func TestDrop(t *testing.T) {
	store, err := pebble.Open("data", vfs.NewMem())
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	versions, gone := mvcc.New(store), errors.New("the database was dropped")
	v := versions.In(1)
	b := v.NewBatch()
	defer b.Close()
	if err := errors.Join(b.Put(key("a"), []byte("x"), 1), versions.Drop(b.KV(), 1, gone), b.Commit()); err != nil {
		t.Fatal(err)
	}
	for _, at := range []mvcc.Timestamp{1, mvcc.Latest} {
		_, _, _, get := v.Get(key("a"), at, nil)
		each := v.GetEach([][]byte{key("a")}, at, 0, func(int, []byte, bool) bool { return true })
		_, scan := v.Scan(nil, nil, at, false)
		_, changed := v.ChangedSince(nil, nil, at)
		_, keyChanged := v.KeyChangedSince(key("a"), at)
		for i, err := range []error{get, each, scan, changed, keyChanged} {
			if !errors.Is(err, gone) {
				t.Errorf("question %d at %d: %v", i, at, err)
			}
		}
	}
}
