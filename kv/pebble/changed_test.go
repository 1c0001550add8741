package pebble

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/crowfoot-db/crowfoot/kv"
)

// TestBlockProperties calls the methods of newest in the order in which Pebble calls them while it writes a table file.
// It checks that the property newestName of each data block and each index block holds the newest version in the block.
func TestBlockProperties(t *testing.T) {
	c := newNewest()
	keys := func(list ...[]byte) []byte {
		for _, k := range list {
			if err := c.AddPointKey(pebble.MakeInternalKey(k, 0, pebble.InternalKeyKindSet), nil); err != nil {
				t.Fatal(err)
			}
		}
		prop, err := c.FinishDataBlock([]byte("before"))
		if err != nil || !bytes.HasPrefix(prop, []byte("before")) {
			t.Fatal(prop, err)
		}
		return prop[len("before"):]
	}
	index := func() []byte {
		prop, err := c.FinishIndexBlock(nil)
		if err != nil {
			t.Fatal(err)
		}
		return prop
	}
	has := func(prop []byte, newest uint64) {
		t.Helper()
		for since, want := range map[uint64]bool{newest: true, newest + 1: false, 0: true, math.MaxUint64: newest == math.MaxUint64} {
			if newest == math.MaxUint64 {
				want = true
			}
			if got, err := (sinceInBlocks{sinceOf(since)}).Intersects(prop); got != want || err != nil {
				t.Errorf("a block whose newest version is %d has one since %d: %v, %v", newest, since, got, err)
			}
		}
	}
	has(keys(version("a", 9), version("a", 3)), 9)
	c.AddPrevDataBlockToIndexBlock()
	has(keys(version("b", 2)), 2)
	c.AddPrevDataBlockToIndexBlock()
	last := keys(version("c", 20)) // this key begins the next index block
	has(index(), 9)
	has(last, 20)
	c.AddPrevDataBlockToIndexBlock()
	has(index(), 20)
	has(keys([]byte("no version\x00")), math.MaxUint64)
	c.AddPrevDataBlockToIndexBlock()
	has(index(), math.MaxUint64)
}

func sinceOf(version uint64) since { return since(version) }

// TestChangedIterLeavesOut checks that ChangedIter leaves out old blocks of a file even if the file has newer versions
// in other blocks. It must not leave out blocks without the property newestName, such as older releases wrote.
func TestChangedIterLeavesOut(t *testing.T) {
	fs := vfs.NewMem()
	s := open(t, fs, "data")
	value := strings.Repeat("x", blockBytes/4)
	const keys = 200
	for i := range keys {
		put(t, s, string(version(fmt.Sprintf("k%03d", i), 5)), value)
	}
	put(t, s, string(version("k100", 9)), value)
	if err := s.db.Flush(); err != nil {
		t.Fatal(err)
	}
	ingest(t, s, fs, version("z-foreign", 1))
	count, found := walk(t, s, 6)
	if count == 0 || count > 20 || found != "k100@9 " {
		t.Errorf("saw %d versions, among them %s", count, found)
	}
}

// walk counts the versions that a ChangedIter shows. found lists those of them whose timestamp is at least the number
// in the parameter since.
func walk(t *testing.T, s kv.Store, since uint64) (count int, found string) {
	t.Helper()
	it, err := s.ChangedIter(nil, nil, since)
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		count++
		if v := versionOf(it.Key()); v >= since {
			found += fmt.Sprintf("%s@%d ", strings.Trim(string(it.Key()[:split(it.Key())]), "\x00\x01"), v)
		}
	}
	if err := it.Error(); err != nil {
		t.Error(err)
	}
	return count, found
}

// TestChangedIter writes versions, deletes them one by one and by ranges, and flushes and compacts the store. In
// between, it compares the versions at or above a random timestamp in a ChangedIter with those in an iterator over
// everything. A failed run can be repeated with its seed.
func TestChangedIter(t *testing.T) {
	for seed := range uint64(8) {
		m := &recentModel{t: t, rng: rand.New(rand.NewPCG(seed, 8)), s: open(t, vfs.NewMem(), "data"), value: make([]byte, blockBytes/3)}
		m.look = m.compareChanged
		for range 300 {
			m.step()
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		}
	}
}

func (m *recentModel) compareChanged() {
	since := m.rng.Uint64N(m.now + 2)
	_, got := walk(m.t, m.s, since)
	whole, err := m.s.NewIter(nil, nil)
	if err != nil {
		m.t.Fatal(err)
	}
	defer whole.Close()
	want := ""
	for ok := whole.First(); ok; ok = whole.Next() {
		if v := versionOf(whole.Key()); v >= since && v != math.MaxUint64 {
			want += fmt.Sprintf("%s@%d ", strings.Trim(string(whole.Key()[:split(whole.Key())]), "\x00\x01"), v)
		}
	}
	if got != want {
		m.t.Errorf("since %d: %s, all iterators show %s", since, got, want)
	}
}
