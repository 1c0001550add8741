package pebble

import (
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/crowfoot-db/crowfoot/kv/pebble/disktest"
)

// TestCheckpoint makes copies while clients commit one row after another. It checks that each copy has the rows of
// each client without gaps, including all rows that were acknowledged before the copy began. At the end, the store
// itself must have all rows. Checkpoint must also refuse directories in which no copy can be made.
func TestCheckpoint(t *testing.T) {
	const clients, rows, copies = 3, 100, 4
	fs := vfs.NewCrashableMem()
	s := open(t, fs, "data")
	if err := makeDir("copies", fs); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	acknowledged := make([]int, clients)
	var running sync.WaitGroup
	for c := range clients {
		running.Go(func() {
			for i := range rows {
				put(t, s, fmt.Sprintf("row %d %03d\x00", c, i), strings.Repeat("x", i%5*20_000))
				mu.Lock()
				acknowledged[c] = i + 1
				mu.Unlock()
			}
		})
	}
	for n := range copies {
		mu.Lock()
		before := append([]int(nil), acknowledged...)
		mu.Unlock()
		if err := s.Checkpoint(t.Context(), fmt.Sprint("copies/", n)); err != nil {
			t.Fatal(err)
		}
		remains := fs.CrashClone(vfs.CrashCloneCfg{}) // has only synced data
		for c, n := range readClients(t, remains, fmt.Sprint("copies/", n), clients) {
			if n < before[c] {
				t.Errorf("a copy has %d rows of client %d, of which %d were acknowledged before", n, c, before[c])
			}
		}
	}
	running.Wait()
	for to, want := range map[string]string{
		"copies/0":     "exists already; a copy needs a directory of its own",
		"unmounted/0":  "unmounted must be there",
		"data/0":       "lies in the data directory",
		"data/../data": "exists already",
	} {
		if err := s.Checkpoint(t.Context(), to); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a copy to %s: %v, want %q", to, err, want)
		}
	}
	for c, n := range readClients(t, fs.CrashClone(vfs.CrashCloneCfg{}), "data", clients) {
		if n != rows {
			t.Errorf("the store has %d rows of client %d", n, c)
		}
	}
}

// readClients returns the number of rows of each client in a copy, and checks that a client's rows have no gaps.
func readClients(t *testing.T, fs vfs.FS, dir string, clients int) []int {
	t.Helper()
	s := open(t, fs, dir)
	it, err := s.NewIter([]byte("row "), []byte("row!"))
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	counts := make([]int, clients)
	for ok := it.First(); ok; ok = it.Next() {
		part := strings.Fields(strings.TrimSuffix(string(it.Key()), "\x00"))
		c, _ := strconv.Atoi(part[1])
		if i, _ := strconv.Atoi(part[2]); i != counts[c] {
			t.Errorf("client %d has row %d behind %d rows", c, i, counts[c])
		}
		counts[c]++
	}
	return counts
}

// TestCheckpointCutShort checks that Checkpoint removes the copy if its context ends. It also checks that Open refuses
// an incomplete copy, such as a killed server leaves.
func TestCheckpointCutShort(t *testing.T) {
	disk := disktest.New("data", 1<<30)
	s := open(t, disk, "data")
	put(t, s, "k\x00", "1")
	ctx, cancel := context.WithCancel(t.Context())
	var left *vfs.MemFS
	disk.Fail(func(op errorfs.Op) error {
		if strings.HasPrefix(op.Path, "copy/MANIFEST-") && op.Kind == errorfs.OpFileWrite && left == nil {
			left = disk.Files.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(0, 0))})
			cancel()
		}
		return nil
	})
	if err := s.Checkpoint(ctx, "copy"); !errors.Is(err, context.Canceled) {
		t.Errorf("cut short: %v", err)
	}
	if _, err := disk.Stat("copy"); !errors.Is(err, iofs.ErrNotExist) {
		t.Errorf("what was copied is there: %v", err)
	}
	if _, err := Open("copy", left); err == nil || !strings.Contains(err.Error(), "an unfinished checkpoint") {
		t.Errorf("what a killed server leaves is opened: %v", err)
	}
	if err := s.Checkpoint(t.Context(), "copy"); err != nil {
		t.Error(err)
	}
}

// TestCheckpointOfDamage checks that Checkpoint makes a copy of a store with known damage and returns an error that
// says so.
func TestCheckpointOfDamage(t *testing.T) {
	s := open(t, vfs.NewMem(), "data")
	put(t, s, "k\x00", "1")
	s.work.damage.found(pebble.DataCorruptionInfo{Path: "data/000001.sst", Details: errors.New("checksum mismatch")})
	if err := s.Checkpoint(t.Context(), "copy"); err == nil || !strings.Contains(err.Error(), "1 reads have met damage") {
		t.Errorf("a copy with damage: %v", err)
	}
	if got := get(t, open(t, s.fs, "copy"), "k\x00"); got != "1" {
		t.Errorf("the copy has %q", got)
	}
}

// TestModes checks that only the server's user may access the files that the server makes.
func TestModes(t *testing.T) {
	dir := t.TempDir()
	data, copied := filepath.Join(dir, "data"), filepath.Join(dir, "copy")
	if err := open(t, vfs.Default, data).Checkpoint(t.Context(), copied); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{data, copied} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s has mode %v, %v", name, info.Mode(), err)
		}
	}
}
