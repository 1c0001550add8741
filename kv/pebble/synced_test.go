package pebble

import (
	"io"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestOpenLog: of the log that is written, a copy gets what is synced, also if the file has older bytes behind that. Of logs before it, it gets all.
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
