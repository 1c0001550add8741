package pebble

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

func open(tb testing.TB, fs vfs.FS, dir string) *Store {
	tb.Helper()
	s, err := Open(dir, fs)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = s.Close() })
	return s
}

// version returns the stored key of a version as package mvcc makes it.
func version(name string, ts uint64) []byte {
	key := append([]byte("\x00\x00\x00\x01"+name), 0)
	return append(binary.BigEndian.AppendUint64(key, ^ts), suffixMark)
}

// TestComparer runs Pebble's own checks of a comparer on keys as package mvcc makes them.
func TestComparer(t *testing.T) {
	var prefixes, suffixes [][]byte
	for _, name := range []string{"a", "ab", "b", "\xff\x01", "\x80"} {
		prefixes = append(prefixes, []byte(name+"\x00"))
	}
	for _, ts := range []uint64{1, 2, 9, 0x0900, 1 << 50} {
		suffixes = append(suffixes, version("", ts)[5:])
	}
	full := *comparer
	if err := pebble.CheckComparer(full.EnsureDefaults(), prefixes, suffixes); err != nil {
		t.Error(err)
	}
	keys := [][]byte{version("a", 2), version("a", 1), version("ab", 1), version("b", 1<<50), version("b", 9)}
	if !slices.IsSortedFunc(keys, comparer.Compare) {
		t.Error("versions of a key are not newest first, or keys out of order")
	}
	for i, a := range keys {
		if s := comparer.Successor(nil, a); comparer.Compare(s, a) < 0 || split(s) != len(s) && string(s) != string(a) {
			t.Errorf("successor of %s is %s", formatKey(a), formatKey(s))
		}
		next := comparer.ImmediateSuccessor(nil, a[:split(a)])
		for j, b := range keys {
			if i < j {
				s := comparer.Separator(nil, a, b)
				if comparer.Compare(a, s) > 0 || comparer.Compare(s, b) >= 0 {
					t.Errorf("separator of %s and %s is %s", formatKey(a), formatKey(b), formatKey(s))
				}
			}
			same := string(a[:split(a)]) == string(b[:split(b)])
			if after := comparer.Compare(b, next) >= 0; after != (comparer.Compare(b, a) > 0 && !same) {
				t.Errorf("immediate successor %s of %s is on the wrong side of %s", formatKey(next), formatKey(a), formatKey(b))
			}
		}
	}
	if got := fmt.Sprint(formatKey(version("k", 7))); got != `"\x00\x00\x00\x01k\x00"@7` {
		t.Errorf("printed as %s", got)
	}
}

// TestNextPrefix checks that NextPrefix goes to the newest version of the next key, both in memory and in table files.
func TestNextPrefix(t *testing.T) {
	s := open(t, vfs.NewMem(), "data")
	for _, name := range []string{"a", "ab", "b"} {
		for ts := range uint64(20) {
			put(t, s, string(version(name, ts)), "x")
		}
	}
	for range 2 {
		it, err := s.NewIter(nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for ok := it.First(); ok; ok = it.NextPrefix() {
			got = append(got, fmt.Sprint(formatKey(it.Key()[4:])))
		}
		if want := `["a\x00"@19 "ab\x00"@19 "b\x00"@19]`; fmt.Sprint(got) != want {
			t.Errorf("got %v", got)
		}
		if err := it.Close(); err != nil {
			t.Error(err)
		}
		if err := s.db.Flush(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSnapshot checks that a snapshot does not change when the store does.
func TestSnapshot(t *testing.T) {
	s := open(t, vfs.NewMem(), "data")
	put(t, s, "k\x00", "1")
	snap := s.Snapshot()
	defer snap.Close()
	put(t, s, "k\x00", "2")
	it, err := snap.NewIter([]byte("k"), []byte("l"))
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	if !it.First() {
		t.Fatal("no key")
	}
	if val, _ := it.Value(); string(val) != "1" {
		t.Errorf("snapshot reads %q", val)
	}
	if got := get(t, s, "k\x00"); got != "2" {
		t.Errorf("store reads %q", got)
	}
}

// TestPointIterFresh checks that PointIter never returns a kept iterator that does not see the latest write.
func TestPointIterFresh(t *testing.T) {
	s := open(t, vfs.NewMem(), "data")
	var committed [4]atomic.Uint64
	var done atomic.Bool
	var writers, readers sync.WaitGroup
	for w := range committed {
		writers.Go(func() {
			for i := uint64(1); i <= 3000; i++ {
				b := s.NewBatch()
				if err := b.Put([]byte{'k', byte(w), 0}, binary.BigEndian.AppendUint64(nil, i)); err != nil {
					t.Error(err)
				}
				if err := b.CommitNoSync(); err != nil {
					t.Error(err)
				}
				_ = b.Close()
				committed[w].Store(i)
			}
		})
		readers.Go(func() {
			for !done.Load() {
				least := committed[w].Load()
				var got uint64
				if val := get(t, s, string([]byte{'k', byte(w), 0})); val != "" {
					got = binary.BigEndian.Uint64([]byte(val))
				}
				if got < least {
					t.Errorf("read %d after %d was committed", got, least)
					return
				}
			}
		})
	}
	writers.Wait()
	done.Store(true)
	readers.Wait()
}

func load(b *testing.B, s *Store, rows int) {
	b.Helper()
	val := make([]byte, 1000)
	for i := 0; i < rows; {
		batch := s.NewBatch()
		for ; batch.Len() < 1<<20 && i < rows; i++ {
			if err := batch.Put(version(fmt.Sprintf("%08d", i), 1), val); err != nil {
				b.Fatal(err)
			}
		}
		if err := batch.CommitNoSync(); err != nil {
			b.Fatal(err)
		}
		_ = batch.Close()
	}
	if err := s.db.Flush(); err != nil {
		b.Fatal(err)
	}
}

func BenchmarkPointGet(b *testing.B) {
	s := open(b, vfs.NewMem(), "data")
	const rows = 50_000
	load(b, s, rows)
	keys := make([][]byte, rows)
	for i := range keys {
		keys[i] = version(fmt.Sprintf("%08d", i), 5)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		it, err := s.PointIter()
		if err != nil {
			b.Fatal(err)
		}
		if !it.SeekPrefixGE(keys[i*7919%rows]) {
			b.Fatal("missing")
		}
		if _, err := it.Value(); err != nil {
			b.Fatal(err)
		}
		_ = it.Close()
	}
}
