package pebble

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/crowfoot-db/crowfoot/kv"
)

// TestRecentIterLeavesOut checks that RecentIter does not read a file whose versions are all too old. It must read
// files without the property newestName, which holds the timestamp of the newest version, and files with a key that has
// no version.
func TestRecentIterLeavesOut(t *testing.T) {
	fs := vfs.NewMem()
	s := open(t, fs, "data")
	flush := func() {
		if err := s.db.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	// The key ranges of the files do not overlap, so Pebble does not compact the files.
	put(t, s, string(version("a-old", 5)), "old")
	put(t, s, string(version("a-older", 4)), "old")
	flush()
	put(t, s, string(version("b-beside", 3)), "old, in a file with a new one")
	put(t, s, string(version("b-new", 9)), "new")
	flush()
	put(t, s, "\x00\x00\x00\x01c\x00", "no version")
	put(t, s, string(version("c-record", 2)), "old, in a file with a key that has no version")
	flush()
	ingest(t, s, fs, version("d-foreign", 1))
	put(t, s, string(version("e-memory", 1)), "old, in no file")

	for _, c := range []struct {
		name string
		want bool
	}{{"a-old", false}, {"a-older", false}, {"b-beside", true}, {"b-new", true}, {"c-record", true}, {"d-foreign", true}, {"e-memory", true}} {
		it, err := s.RecentIter(6)
		if err != nil {
			t.Fatal(err)
		}
		if got := it.SeekPrefixGE(version(c.name, 20)); got != c.want || it.Error() != nil {
			t.Errorf("%s: found %v, %v", c.name, got, it.Error())
		}
		_ = it.Close()
	}
}

// ingest adds a table file without the property newestName, such as older releases wrote.
func ingest(t *testing.T, s *Store, fs vfs.FS, key []byte) {
	t.Helper()
	const name = "foreign.sst"
	f, err := fs.Create(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	w := sstable.NewWriter(objstorageprovider.NewFileWritable(f), sstable.WriterOptions{Comparer: comparer, TableFormat: s.db.TableFormat()})
	if err := w.Set(key, []byte("foreign")); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.db.Ingest(t.Context(), []string{name}); err != nil {
		t.Fatal(err)
	}
}

// TestRecentIter writes random versions, deletes versions and ranges, and flushes and compacts the store. In between,
// it checks that RecentIter and PointIter find the same versions at or above a random timestamp. A failed run can be
// repeated with its seed.
func TestRecentIter(t *testing.T) {
	for seed := range uint64(20) {
		m := &recentModel{t: t, rng: rand.New(rand.NewPCG(seed, 7)), s: open(t, vfs.NewMem(), "data")}
		for range 400 {
			m.step()
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		}
	}
}

type recentModel struct {
	t   *testing.T
	rng *rand.Rand
	s   *Store
	now uint64
	// Each stored value is the timestamp of its version in decimal digits, followed by the bytes in the field value.
	// The function look compares the iterators. If it is nil, the method compare does this.
	value []byte
	look  func()
}

func (m *recentModel) key() string { return string(rune('a' + m.rng.IntN(12))) }

func (m *recentModel) step() {
	b := m.s.NewBatch()
	defer b.Close()
	var err error
	switch n := m.rng.IntN(100); {
	case n < 45:
		m.now++
		err = b.Put(version(m.key(), m.now), append(fmt.Append(nil, m.now), m.value...))
	case n < 50: // deletes a single version, as Collect of package mvcc does
		err = b.Delete(version(m.key(), 1+m.rng.Uint64N(m.now+1)))
	case n < 52:
		from, to := m.key(), m.key()
		if from < to {
			err = b.DeleteRange(version(from, math.MaxInt64), version(to, math.MaxInt64))
		}
	case n < 58:
		err = m.s.db.Flush()
	case n < 60:
		from, to := m.key(), m.key()
		if from < to {
			err = m.s.db.Compact(m.t.Context(), []byte(version(from, math.MaxInt64)), []byte(version(to, 0)), false)
		}
	case m.look != nil:
		m.look()
	default:
		m.compare()
	}
	if err == nil {
		err = b.CommitNoSync()
	}
	if err != nil {
		m.t.Error(err)
	}
}

func (m *recentModel) compare() {
	since := m.rng.Uint64N(m.now + 2)
	recent, err := m.s.RecentIter(since)
	if err != nil {
		m.t.Fatal(err)
	}
	defer recent.Close()
	whole, err := m.s.PointIter()
	if err != nil {
		m.t.Fatal(err)
	}
	defer whole.Close()
	for range 20 {
		key, at := m.key(), since+m.rng.Uint64N(m.now+2-since)
		got, gotValue := find(m.t, recent, version(key, at), since)
		want, wantValue := find(m.t, whole, version(key, at), since)
		if !bytes.Equal(got, want) || gotValue != wantValue {
			m.t.Errorf("%s at %d since %d: found %s=%s, without a bound %s=%s", key, at, since, formatKey(got), gotValue, formatKey(want), wantValue)
		}
	}
}

// find returns the newest version of a key that is not newer than the version in seek. It returns nothing if the
// timestamp of the version that it finds is lower than the parameter since.
func find(t *testing.T, it kv.Iterator, seek []byte, since uint64) (key []byte, value string) {
	if !it.SeekPrefixGE(seek) || versionOf(it.Key()) < since {
		if it.Error() != nil {
			t.Error(it.Error())
		}
		return nil, ""
	}
	v, err := it.Value()
	if err != nil {
		t.Error(err)
	}
	return bytes.Clone(it.Key()), string(v)
}
