package formats_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/crowfoot-db/crowfoot"
	"github.com/crowfoot-db/crowfoot/endtoend/formats"
	"github.com/crowfoot-db/crowfoot/kv"
)

// TestFormats opens a stored data directory of every released format. Each was left by a killed process of that
// release. This release upgrades the directory. A client must then read the schema and the rows that it read from the
// old release, and must read them once more after another start.
func TestFormats(t *testing.T) {
	for f := kv.FirstFormat; f <= kv.LastFormat; f++ {
		want, err := os.ReadFile(filepath.Join("testdata", formats.File(f, "txt")))
		if errors.Is(err, os.ErrNotExist) && f == kv.LastFormat {
			continue // the directory of a new format is stored when the release is made
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Run(fmt.Sprint(f), func(t *testing.T) {
			data := t.TempDir()
			err := formats.Unpack(filepath.Join("testdata", formats.File(f, "tgz")), func(name string, text []byte) error {
				return os.WriteFile(filepath.Join(data, name), text, 0o644)
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, when := range []string{"upgraded", "started again"} {
				s, err := crowfoot.Start(t.Context(), crowfoot.Options{Data: data})
				if err != nil {
					t.Fatal(err)
				}
				t.Setenv("SPANNER_EMULATOR_HOST", s.GRPC)
				got, err := formats.Dump(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if got != string(want) {
					t.Errorf("%s: %s", when, firstDifference(got, string(want)))
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
				if mark, err := os.ReadFile(filepath.Join(data, "CROWFOOT")); err != nil || string(mark) != fmt.Sprintf("crowfoot data directory, format %d\n", kv.LastFormat) {
					t.Errorf("%s: the mark says %q, %v", when, mark, err)
				}
			}
		})
	}
}

// firstDifference returns the first line in which two texts differ.
func firstDifference(got, want string) string {
	gotLines, wantLines := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(gotLines), len(wantLines)) {
		if gotLines[i] != wantLines[i] {
			return fmt.Sprintf("line %d:\n%.300s\nwant\n%.300s", i+1, gotLines[i], wantLines[i])
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(gotLines), len(wantLines))
}
