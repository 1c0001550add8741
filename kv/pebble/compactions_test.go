package pebble

import (
	"bytes"
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/crowfoot-db/crowfoot/kv"
)

// TestDamagedVersions flips bits of a table file whose last key has two versions, one bit at a time, and compacts the
// file. The compaction must fail or keep both versions, and a read that meets the damage must return a DamagedError.
func TestDamagedVersions(t *testing.T) {
	fs, want := twoVersions(t)
	table, rng := last(t, fs, ".sst"), rand.New(rand.NewPCG(3, 0))
	sound := []byte(read(t, fs, table))
	failed := 0
	for at := 10; at < len(sound); at += 25 {
		copied := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rng})
		damaged := bytes.Clone(sound)
		damaged[at] ^= 1 << rng.IntN(8)
		write(t, copied, table, string(damaged))
		s, err := Open("data", copied)
		if err != nil {
			continue
		}
		if compactionErr := merge(t, s); compactionErr != nil {
			failed++
		}
		for key, val := range want {
			if got, err := lookUp(s, key); err == nil && got != val || err != nil && !errors.As(err, new(*kv.DamagedError)) {
				t.Errorf("with byte %d flipped, a compaction leaves %q, %v for version %q", at, got, err, key)
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if failed == 0 {
		t.Error("no compaction failed")
	}
}

// TestUnreadVersions compacts a table whose last key has two versions while one read of the table fails. In each run
// another read fails. It checks that nothing is lost, and that Pebble repeats the compaction.
func TestUnreadVersions(t *testing.T) {
	fs, want := twoVersions(t)
	table, rng := last(t, fs, ".sst"), rand.New(rand.NewPCG(4, 0))
	const none = -1
	var mu sync.Mutex
	offsets, failAt := map[int64]bool{}, int64(none) // the offsets that were read, and the offset whose next read fails
	fail := func(op errorfs.Op) error {
		if op.Kind != errorfs.OpFileReadAt || !strings.HasSuffix(op.Path, table) {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		offsets[op.Offset] = true
		if op.Offset != failAt {
			return nil
		}
		failAt = none
		return &os.PathError{Op: "read", Path: op.Path, Err: syscall.EIO}
	}
	try := func(offset int64) (failed bool) {
		s, err := Open("data", errorfs.Wrap(fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rng}), errorfs.InjectorFunc(fail)))
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		failNext := func(offset int64) {
			mu.Lock()
			defer mu.Unlock()
			failAt = offset
		}
		failNext(offset)
		failed = merge(t, s) != nil
		failNext(none)
		if err := merge(t, s); err != nil {
			t.Errorf("the read at %d failed once, and the compaction cannot be done: %v", offset, err)
		}
		for key, val := range want {
			if got, err := lookUp(s, key); err != nil || got != val {
				t.Errorf("the read at %d failed once, and version %q is %q, %v", offset, key, got, err)
			}
		}
		return failed
	}
	if try(none) {
		t.Fatal("a compaction without failures fails")
	}
	failed := 0
	for _, offset := range slices.Sorted(maps.Keys(offsets)) {
		if try(offset) {
			failed++
		}
	}
	if failed == 0 {
		t.Error("no compaction failed")
	}
	t.Logf("%d of %d compactions failed", failed, len(offsets))
}

// twoVersions makes a store with one table file, which holds two versions of one key. The value of the older version is
// in a value block.
func twoVersions(t *testing.T) (fs *vfs.MemFS, want map[string]string) {
	t.Helper()
	rng := rand.New(rand.NewPCG(5, 0))
	fs, want = vfs.NewCrashableMem(), map[string]string{}
	s, err := Open("data", fs)
	if err != nil {
		t.Fatal(err)
	}
	for version := range byte(2) {
		key, val := "key\x00"+string([]byte{version, 0, 0, 0, 0, 0, 0, 0, suffixMark}), make([]byte, 200)
		for i := range val {
			val[i] = byte(rng.Uint32())
		}
		want[key] = string(val)
		put(t, s, key, string(val))
	}
	if err := s.db.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return fs, want
}

// merge compacts the whole store after it has added one more table.
func merge(t *testing.T, s *Store) error {
	t.Helper()
	put(t, s, "0\x00", "so that the table is merged with another")
	if err := s.db.Flush(); err != nil {
		t.Fatal(err)
	}
	return s.db.Compact(t.Context(), []byte("0"), []byte("z"), false)
}
