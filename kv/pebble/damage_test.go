package pebble

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/crowfoot-db/crowfoot/kv"
)

// TestDamagedTable flips bits of a table file, one at a time. It checks that each read returns the value that was
// written or a DamagedError, that the log names the file, that the metrics count the read, and that a compaction that
// finds the damage does not end the process.
func TestDamagedTable(t *testing.T) {
	const keys = 200
	rng := rand.New(rand.NewPCG(1, 0))
	fs := vfs.NewCrashableMem()
	s, err := Open("data", fs)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for i := range keys {
		key, val := fmt.Sprintf("%04d\x00", i), make([]byte, 200)
		for j := range val {
			val[j] = byte(rng.Uint32())
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
	table := last(t, fs, ".sst")
	sound := []byte(read(t, fs, table))
	lost, refused := 0, 0
	for at := 50; at < len(sound); at += len(sound) / 10 {
		copied := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rng})
		damaged := bytes.Clone(sound)
		damaged[at] ^= 1 << rng.IntN(8)
		write(t, copied, table, string(damaged))
		if n := readDamaged(t, copied, table, want); n < 0 {
			refused++
		} else {
			lost += n
		}
	}
	if lost == 0 {
		t.Error("nothing was damaged")
	}
	t.Logf("%d reads failed; %d directories were refused", lost, refused)
}

// readDamaged opens a copy of the store with the changed table, reads all keys, and returns how many cannot be read;
// -1 if the store does not open.
func readDamaged(t *testing.T, fs vfs.FS, table string, want map[string]string) int {
	t.Helper()
	text := new(bytes.Buffer)
	before := slog.Default()
	defer slog.SetDefault(before)
	slog.SetDefault(slog.New(slog.NewTextHandler(text, nil)))
	s, err := Open("data", fs)
	if err != nil {
		return -1
	}
	defer s.Close()
	lost := 0
	for key, val := range want {
		got, err := lookUp(s, key)
		switch {
		case err != nil && !errors.As(err, new(*kv.DamagedError)):
			t.Errorf("a damaged key is %v", err)
		case err != nil:
			lost++
		case got != val:
			t.Errorf("a damaged table gives another value for %q", key)
		}
	}
	if lost == 0 {
		return 0
	}
	put(t, s, "0\x00", "so that the table is merged with another")
	if err := s.db.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := s.db.Compact(t.Context(), []byte("0"), []byte("9"), false); !pebble.IsCorruptionError(err) {
		t.Errorf("a compaction of a damaged table is %v", err)
	}
	if m := s.Metrics(); m.DamagedReads < int64(lost) {
		t.Errorf("metrics count %d reads that met damage, want %d", m.DamagedReads, lost)
	}
	if !strings.Contains(text.String(), table) {
		t.Errorf("the log does not name %s: %s", table, text)
	}
	put(t, s, "later\x00", "1")
	if got := get(t, s, "later\x00"); got != "1" {
		t.Errorf("a later write is read as %q", got)
	}
	return lost
}

func lookUp(s *Store, key string) (string, error) {
	it, err := s.PointIter()
	if err != nil {
		return "", err
	}
	defer it.Close()
	if !it.SeekPrefixGE([]byte(key)) {
		return "", it.Error()
	}
	val, err := it.Value()
	return string(val), err
}
