package pebble

import (
	"fmt"
	"hash/crc32"
	"io"
	"sort"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestOpenRefuses opens directories that are not intact data directories. Open must return an error with the reason
// and must not change the directory.
func TestOpenRefuses(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(t *testing.T, fs vfs.FS)
		want  string
	}{
		{"foreign", func(t *testing.T, fs vfs.FS) {
			remove(t, fs, "")
			write(t, fs, "letters.txt", "dear")
		}, `is not a Crowfoot data directory: it holds "letters.txt"`},
		{"another engine's", func(t *testing.T, fs vfs.FS) { remove(t, fs, formatFile) }, "is not a Crowfoot data directory"},
		{"newer format", func(t *testing.T, fs vfs.FS) { write(t, fs, formatFile, formatMagic+"5\n") }, "has format 5, and this release of Crowfoot reads formats 1 to 4"},
		{"on the way to a newer format", func(t *testing.T, fs vfs.FS) { write(t, fs, formatFile, formatMagic+"4, upgrading to 5\n") },
			"has format 4 and is being upgraded to format 5, and this release of Crowfoot reads formats 1 to 4"},
		{"no format", func(t *testing.T, fs vfs.FS) { write(t, fs, formatFile, formatMagic+"0\n") }, "does not say which format it has"},
		{"mark overwritten", func(t *testing.T, fs vfs.FS) { write(t, fs, formatFile, "\x00\x00\x00") }, "does not say which format it has"},
		{"manifest lost", func(t *testing.T, fs vfs.FS) { remove(t, fs, "MANIFEST-") }, "damaged"},
		{"marker of the manifest lost", func(t *testing.T, fs vfs.FS) { remove(t, fs, "marker.manifest") }, "damaged"},
		{"manifest overwritten", func(t *testing.T, fs vfs.FS) {
			_, manifest, _ := strings.Cut(last(t, fs, "marker.manifest"), "MANIFEST-")
			write(t, fs, "MANIFEST-"+manifest, strings.Repeat("garbage", 100))
		}, "damaged"},
		{"table lost", func(t *testing.T, fs vfs.FS) { remove(t, fs, ".sst") }, "damaged"},
		{"log damaged before its end", func(t *testing.T, fs vfs.FS) {
			s, err := Open("data", fs)
			if err != nil {
				t.Fatal(err)
			}
			for range 100 {
				put(t, s, "l\x00", strings.Repeat("x", 1000))
			}
			log := last(t, fs, ".log")
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			text := []byte(read(t, fs, log))
			text[len(text)/2] ^= 0xFF
			write(t, fs, log, string(text))
		}, "damaged"},
		{"a file", func(t *testing.T, fs vfs.FS) {
			remove(t, fs, "")
			if err := fs.RemoveAll("data"); err != nil {
				t.Fatal(err)
			}
			writeAt(t, fs, "data", "x")
		}, "data"},
	} {
		t.Run(c.name, func(t *testing.T) {
			fs := vfs.NewMem()
			make1(t, fs)
			c.spoil(t, fs)
			before := contents(t, fs)
			s, err := Open("data", fs)
			if err == nil {
				_ = s.Close()
				t.Fatal("opened")
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %q does not say %q", err, c.want)
			}
			if after := contents(t, fs); after != before {
				t.Errorf("directory was changed:\n%s\nwas\n%s", after, before)
			}
		})
	}
}

// TestOpenCreates checks that Open makes a store in a missing directory, in an empty one, and in one where making a
// store was cut short at any point.
func TestOpenCreates(t *testing.T) {
	for _, files := range []map[string]string{
		nil,
		{},
		{lockFile: ""},
		{lockFile: "", formatFileNew: "crow"},
		{lockFile: "", formatFile: formatMagic + "2\n"},
	} {
		fs := vfs.NewMem()
		if files != nil {
			if err := fs.MkdirAll("data", 0o755); err != nil {
				t.Fatal(err)
			}
		}
		for name, text := range files {
			write(t, fs, name, text)
		}
		make1(t, fs)
		s, err := Open("data", fs)
		if err != nil {
			t.Fatalf("%v: %v", files, err)
		}
		if got := get(t, s, "k\x00"); got != "v" {
			t.Errorf("%v: read %q", files, got)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestOpenTwice checks that Open refuses a directory that another Store has open, in memory and on disk, and that the
// directory can be opened after that Store is closed.
func TestOpenTwice(t *testing.T) {
	for name, fs := range map[string]vfs.FS{"memory": vfs.NewMem(), "disk": vfs.Default} {
		dir := fs.PathJoin(t.TempDir(), "deep", "data")
		s, err := Open(dir, fs)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Open(dir, fs); err == nil || !strings.Contains(err.Error(), "is in use by another process") {
			t.Errorf("%s: opened twice: %v", name, err)
		}
		put(t, s, "k\x00", "v")
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if s, err = Open(dir, fs); err != nil {
			t.Fatal(err)
		}
		if got := get(t, s, "k\x00"); got != "v" {
			t.Errorf("%s: read %q", name, got)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// make1 makes a store with one key, which is in a table file.
func make1(t *testing.T, fs vfs.FS) {
	t.Helper()
	s, err := Open("data", fs)
	if err != nil {
		t.Fatal(err)
	}
	put(t, s, "k\x00", "v")
	if err := s.db.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func put(t *testing.T, s *Store, key, val string) {
	t.Helper()
	b := s.NewBatch()
	defer b.Close()
	if err := b.Put([]byte(key), []byte(val)); err != nil {
		t.Fatal(err)
	}
	if err := b.Commit(); err != nil {
		t.Fatal(err)
	}
}

func get(t *testing.T, s *Store, key string) string {
	t.Helper()
	it, err := s.PointIter()
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	if !it.SeekPrefixGE([]byte(key)) {
		return ""
	}
	val, err := it.Value()
	if err != nil {
		t.Fatal(err)
	}
	return string(val)
}

func write(t *testing.T, fs vfs.FS, name, text string) {
	t.Helper()
	writeAt(t, fs, fs.PathJoin("data", name), text)
}

func writeAt(t *testing.T, fs vfs.FS, path, text string) {
	t.Helper()
	f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
}

// remove removes all files in the directory "data" whose names contain the given text.
func remove(t *testing.T, fs vfs.FS, part string) {
	t.Helper()
	for _, name := range list(t, fs) {
		if strings.Contains(name, part) {
			if err := fs.Remove(fs.PathJoin("data", name)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// last returns the name of the newest file in the directory "data" whose name contains the given text.
func last(t *testing.T, fs vfs.FS, part string) string {
	t.Helper()
	found := ""
	for _, name := range list(t, fs) {
		if strings.Contains(name, part) {
			found = name
		}
	}
	if found == "" {
		t.Fatalf("no %s", part)
	}
	return found
}

func list(t *testing.T, fs vfs.FS) []string {
	t.Helper()
	names, err := fs.List("data")
	if err != nil {
		t.Fatal(err)
	}
	sort.Strings(names)
	return names
}

// contents prints the name, size and checksum of every file of the directory. It leaves out the lock file, because Open
// may make this file even if it then refuses the directory.
func contents(t *testing.T, fs vfs.FS) string {
	t.Helper()
	out := new(strings.Builder)
	if info, err := fs.Stat("data"); err == nil && !info.IsDir() {
		return info.Name()
	}
	for _, name := range list(t, fs) {
		if name == lockFile {
			continue
		}
		data := read(t, fs, name)
		fmt.Fprintf(out, "%s: %d bytes, CRC %08x\n", name, len(data), crc32.ChecksumIEEE([]byte(data)))
	}
	return out.String()
}

func read(t *testing.T, fs vfs.FS, name string) string {
	t.Helper()
	f, err := fs.Open(fs.PathJoin("data", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
