package pebble

import (
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestOpenLog checks that a copy gets only the synced part of the log that is being written, even if the file has
// older bytes after it, and that the copy gets all of the earlier logs.
func TestOpenLog(t *testing.T) {
	mem := vfs.NewMem()
	if err := mem.MkdirAll("data", 0o755); err != nil {
		t.Fatal(err)
	}
	fs, err := keepSynced("data", mem)
	if err != nil {
		t.Fatal(err)
	}
	create := func(name string) vfs.File {
		t.Helper()
		f, err := fs.Create("data/"+name, vfs.WriteCategoryUnspecified)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	shows := func(name string, want int) {
		t.Helper()
		f, err := fs.Open("data/" + name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if data, err := io.ReadAll(f); err != nil || len(data) != want {
			t.Errorf("%s shows %d bytes, want %d: %v", name, len(data), want, err)
		}
	}
	write := func(f vfs.File, n int, synced bool) {
		t.Helper()
		if _, err := f.Write(make([]byte, n)); err != nil {
			t.Fatal(err)
		}
		if synced {
			if err := f.Sync(); err != nil {
				t.Fatal(err)
			}
		}
	}
	first := create("000002.log")
	write(first, 100, true)
	write(first, 50, false)
	shows("000002.log", 100)
	write(first, 1, true)
	shows("000002.log", 151)
	second, err := fs.ReuseForWrite("data/000002.log", "data/000004.log", vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	shows("000004.log", 0)
	write(second, 10, true)
	shows("000004.log", 10)
	third := create("000005.log")
	write(third, 7, false)
	shows("000005.log", 0)
	shows("000004.log", 151)
}

// TestNumberTwice lets a crash of the machine lose a file but keep the note of the file. The note must not count for a
// later file that gets the same number.
func TestNumberTwice(t *testing.T) {
	mem := vfs.NewMem()
	if err := mem.MkdirAll("data", 0o755); err != nil {
		t.Fatal(err)
	}
	var before notes
	for place, n := range map[int]note{0: newNote("MANIFEST-000005", 5), 1: newNote("MANIFEST-000003", 3), 10: newNote("000007.log", 7), 11: newNote("000006.log", 6)} {
		n.offset = 1000
		before[place] = n
	}
	if err := before.store("data", mem); err != nil {
		t.Fatal(err)
	}
	fs, err := keepSynced("data", mem)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"MANIFEST-000005", "000006.log", "000007.log"} {
		f, err := fs.Create("data/"+name, vfs.WriteCategoryUnspecified)
		if err != nil {
			t.Fatal(err)
		}
		says := func(want int64) {
			t.Helper()
			if all, err := readNotes("data", mem); err != nil || all.of(name) != want {
				t.Errorf("%d bytes of %s are taken to be synced, want %d: %v", all.of(name), name, want, err)
			}
		}
		says(0)
		for size := int64(10); size < 30; size += 10 {
			if _, err := f.Write(make([]byte, 10)); err != nil {
				t.Fatal(err)
			}
			if err := f.Sync(); err != nil {
				t.Fatal(err)
			}
			says(size)
		}
	}
	if all, err := readNotes("data", mem); err != nil || all.of("MANIFEST-000003") != 1000 {
		t.Errorf("another manifest's note: %d, %v", all.of("MANIFEST-000003"), err)
	}
}

// TestLostFiles removes a log whose rows are in no table, or syncedFile. Open must refuse the store, or a copy of the
// store, and must not change it.
func TestLostFiles(t *testing.T) {
	fs := killed(t, 100)
	s := open(t, fs, "data")
	put(t, s, "row\x00", strings.Repeat("x", 100_000)) // this row is only in the log
	if err := s.Checkpoint(t.Context(), "copy"); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"data", "copy"} {
		remains := func() *vfs.MemFS {
			lost := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(0, 0))})
			if dir == "copy" {
				if err := errors.Join(lost.RemoveAll("data"), lost.Rename("copy", "data")); err != nil {
					t.Fatal(err)
				}
			}
			return lost
		}
		for _, kind := range []string{".log", syncedFile} {
			lost := remains()
			name := last(t, lost, kind)
			remove(t, lost, name)
			before := contents(t, lost)
			for how, open := range map[string]func(string, vfs.FS) (*Store, error){"start": Open, "check": OpenToRead} {
				if _, err := open("data", lost); err == nil || !strings.Contains(err.Error(), name+" is missing") {
					t.Errorf("%s of the %s without %s: %v", how, dir, name, err)
				}
			}
			if after := contents(t, lost); after != before {
				t.Errorf("the %s without %s was changed:\n%s\nwas\n%s", dir, name, after, before)
			}
		}
		cut := remains()
		write(t, cut, last(t, cut, ".log"), "")
		if _, err := Open("data", cut); !errors.Is(err, errLogDamaged) {
			t.Errorf("%s with an empty log: %v", dir, err)
		}
		doWithout := remains()
		write(t, doWithout, syncedFile, "")
		if got := get(t, open(t, doWithout, "data"), "row\x00"); len(got) != 100_000 {
			t.Errorf("%s with an empty %s: a row of %d bytes", dir, syncedFile, len(got))
		}
	}
}
