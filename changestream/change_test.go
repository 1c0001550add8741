package changestream_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/crowfoot-db/crowfoot/changestream"
	"github.com/crowfoot-db/crowfoot/kv"
	"github.com/crowfoot-db/crowfoot/schema"
)

var errPut = errors.New("no room in the batch")

// failing is a store whose batches return an error when a partition is written to them.
type failing struct{ kv.Store }

type failingBatch struct{ kv.Batch }

func (s failing) NewBatch() kv.Batch { return failingBatch{s.Store.NewBatch()} }

func (b failingBatch) Put(key, val []byte) error {
	if bytes.Contains(key, []byte("changestream/partition/")) {
		return errPut
	}
	return b.Batch.Put(key, val)
}

// TestReshapeThatCannotBeBuilt checks that the partitions are unchanged and that commits still work after Reshape has
// failed to build its batch.
func TestReshapeThatCannotBeBuilt(t *testing.T) {
	w := newWorld(t, vfs.NewMem())
	defer w.close()
	log, err := changestream.Open(changestream.Config{Space: 1, Store: failing{w.store}, Oracle: w.oracle, Clock: w.clock, Secret: [16]byte{1}})
	if err != nil {
		t.Fatal(err)
	}
	if err := log.Reshape(stream.ID, func() [][]byte { return [][]byte{[]byte("m")} }); !errors.Is(err, errPut) {
		t.Errorf("the batch was built: %v", err)
	}
	at := w.commit("a")
	if tokens := w.tokens(at); len(tokens) != 1 {
		t.Errorf("%d partitions", len(tokens))
	}
	w.reshape("m")
	if tokens := w.tokens(w.oracle.Visible()); len(tokens) != 2 {
		t.Errorf("%d partitions after the next change", len(tokens))
	}
}

// keys returns all keys of change streams in the store.
func (w *world) keys() (keys []string) {
	w.t.Helper()
	it, err := w.store.NewIter([]byte("\x00\x00\x00\x00changestream/\x00"), []byte("\x00\x00\x00\x00changestream0\x00"))
	if err != nil {
		w.t.Fatal(err)
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		keys = append(keys, string(it.Key()))
	}
	return keys
}

// TestReshapeBesideDrop checks that Reshape and Collect store nothing for a stream while a batch that drops the stream
// is being committed. If that commit fails, they must work again.
func TestReshapeBesideDrop(t *testing.T) {
	drop := func(t *testing.T, w *world, commit func(kv.Batch) error) error {
		b := w.store.NewBatch()
		defer b.Close()
		change, err := w.log.Change(b, nil, 0, func(*schema.ChangeStream) [][]byte { return nil })
		if err != nil {
			t.Fatal(err)
		}
		committed := commit(b)
		w.reshape("x")
		if err := w.log.Collect(stream.ID, w.oracle.Visible()); err != nil {
			t.Fatal(err)
		}
		return change.End(committed)
	}
	w := newWorld(t, vfs.NewMem())
	defer w.close()
	w.commit("a")
	if err := drop(t, w, func(kv.Batch) error { return kv.ErrRefused }); !errors.Is(err, kv.ErrRefused) {
		t.Fatal(err)
	}
	if at := w.commit("a"); len(w.tokens(at)) != 1 {
		t.Error("the partitions were changed beside the drop")
	}
	w.reshape("g", "m")
	if n := len(w.tokens(w.oracle.Visible())); n != 3 {
		t.Errorf("%d partitions of a stream that was not dropped", n)
	}
	if err := drop(t, w, kv.Batch.Commit); err != nil {
		t.Fatal(err)
	}
	if keys := w.keys(); len(keys) > 0 {
		t.Errorf("left behind: %q", keys)
	}
}
