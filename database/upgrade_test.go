package database

import (
	"errors"
	"log/slog"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/crowfoot-db/crowfoot/endtoend/formats"
	"github.com/crowfoot-db/crowfoot/kv"
	"github.com/crowfoot-db/crowfoot/kv/pebble"
)

// TestUpgradeCrash upgrades a stored directory of every older format and crashes the machine at each write (with
// -short, at every fifth). A random part of the unsynced data is lost. An upgrade of the files that are left must then
// give the same keys and values as an upgrade without a crash.
func TestUpgradeCrash(t *testing.T) {
	every := 1
	if testing.Short() {
		every = 5
	}
	for f := kv.FirstFormat; f < kv.LastFormat; f++ {
		sound := unpackFormat(t, f)
		want := upgraded(t, sound.CrashClone(everything))
		last := 0
		for crash := 0; crash <= last; crash += every {
			fs, rng := sound.CrashClone(everything), rand.New(rand.NewPCG(uint64(crash), 0))
			var mu sync.Mutex // the engine writes from several goroutines
			var remains *vfs.MemFS
			writes := 0
			stopping := errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
				mu.Lock()
				defer mu.Unlock()
				if op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
					if writes++; writes == crash {
						remains = fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50, RNG: rng})
					}
				}
				return nil
			}))
			upgraded(t, stopping)
			mu.Lock()
			last = writes
			mu.Unlock()
			if remains != nil {
				if got := upgraded(t, remains); !maps.Equal(got, want) {
					t.Errorf("stopped at write %d, there are %d records that differ from the %d wanted", crash, len(got), len(want))
				}
			}
		}
		t.Logf("format %d: stopped at %d writes", f, last/every)
	}
}

// everything configures a CrashClone that keeps all written data, synced or not, as if only the process had ended and
// the machine had not crashed.
var everything = vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(0, 0))}

// upgraded opens a store, upgrades it, and returns all of its keys and values.
func upgraded(t *testing.T, fs vfs.FS) map[string]string {
	t.Helper()
	store, err := pebble.Open("data", fs)
	if err != nil {
		t.Fatal(err)
	}
	if err := upgrade(store, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	if store.Format() != kv.LastFormat {
		t.Errorf("an open store has format %d", store.Format())
	}
	it, err := store.NewIter(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	records := map[string]string{}
	for ok := it.First(); ok; ok = it.Next() {
		v, err := it.Value()
		if err != nil {
			t.Fatal(err)
		}
		records[string(it.Key())] = string(v)
	}
	if err := errors.Join(it.Error(), it.Close(), store.Close()); err != nil {
		t.Fatal(err)
	}
	return records
}

// unpackFormat unpacks the stored data directory that a release with format f has written.
func unpackFormat(t *testing.T, f kv.Format) *vfs.MemFS {
	t.Helper()
	fs := vfs.NewCrashableMem()
	if err := errors.Join(fs.MkdirAll("data", 0o755), syncDir(fs, "")); err != nil {
		t.Fatal(err)
	}
	err := formats.Unpack(filepath.Join("..", "endtoend", "formats", "testdata", formats.File(f, "tgz")), func(name string, text []byte) error {
		out, err := fs.Create("data/"+name, vfs.WriteCategoryUnspecified)
		if err != nil {
			return err
		}
		_, err = out.Write(text)
		return errors.Join(err, out.Sync(), out.Close(), syncDir(fs, "data"))
	})
	if err != nil {
		t.Fatal(err)
	}
	return fs
}

func syncDir(fs vfs.FS, dir string) error {
	d, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
