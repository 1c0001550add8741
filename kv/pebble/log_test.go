package pebble

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/cockroachdb/pebble/v2/wal"

	"github.com/crowfoot-db/crowfoot/kv/pebble/disktest"
)

const (
	logClients = 3
	logCommits = 60 // how many commits each client makes
)

// TestLogDamage flips bits of the last log of a store whose process was killed, one at a time, and opens the store.
// Either the store has every acknowledged commit, or Open returns an error that gives the file and the offset of the
// damage.
func TestLogDamage(t *testing.T) {
	fs := killed(t, 100)
	log := last(t, fs, ".log")
	sound := []byte(read(t, fs, log))
	size := len(bytes.TrimRight(sound, "\x00"))
	rng := rand.New(rand.NewPCG(1, 0))
	places := []int{size - 1, size - 2, 0, 4, 6, 7, 11}
	for range 150 {
		places = append(places, rng.IntN(size))
	}
	refused := 0
	for _, at := range places {
		bit := byte(1) << rng.IntN(8)
		damaged := bytes.Clone(sound)
		damaged[at] ^= bit
		if opened := openDamaged(t, fs, log, damaged); opened < 0 {
			refused++
		} else if want := logClients * logCommits; opened != want {
			t.Errorf("with bit %#x of byte %d flipped %d of %d commits are there", bit, at, opened, want)
		}
	}
	t.Logf("%d of %d were refused; the log has %d bytes", refused, len(places), size)
}

// TestLogCutOff checks that Open refuses a store if a synced part of its log was cut off.
func TestLogCutOff(t *testing.T) {
	fs := killed(t, 100)
	log := last(t, fs, ".log")
	sound := []byte(read(t, fs, log))
	size := len(bytes.TrimRight(sound, "\x00"))
	for _, keep := range []int{0, 100, size / 2, size &^ (logBlockBytes - 1), size - 1} {
		if openDamaged(t, fs, log, sound[:keep]) >= 0 {
			t.Errorf("a log of which %d bytes of %d are left was opened", keep, size)
		}
	}
}

// TestLogDamageAfterPowerLoss damages a log whose note in syncedFile was lost, as a crash of the machine may cause.
// Open must find the damage if chunks after it show three later syncs (see logScan.proof). If they show fewer, Open may
// take the damage for the end of the log, so that only the commits of the last syncs are lost.
func TestLogDamageAfterPowerLoss(t *testing.T) {
	fs := killed(t, 0)
	write(t, fs, syncedFile, "")
	log := last(t, fs, ".log")
	sound := []byte(read(t, fs, log))
	size := len(bytes.TrimRight(sound, "\x00"))
	rng := rand.New(rand.NewPCG(2, 0))
	const tail = 4 * logClients // the commits of 4 syncs: a sync covers at most one commit of each client
	lost := 0
	for range 100 {
		damaged := bytes.Clone(sound)
		at := rng.IntN(size)
		damaged[at] ^= 1 << rng.IntN(8)
		if opened := openDamaged(t, fs, log, damaged); opened >= 0 {
			lost = max(lost, logClients*logCommits-opened)
		}
	}
	if lost > tail {
		t.Errorf("%d commits were lost silently, want at most the last %d", lost, tail)
	}
	t.Logf("at most the last %d commits were lost silently", lost)
}

// TestEarlierLogDamage checks that Open also finds damage in earlier logs whose rows are not in tables yet.
func TestEarlierLogDamage(t *testing.T) {
	disk := disktest.New("data", 8<<20)
	s := open(t, disk, "data")
	release := make(chan struct{})
	disk.Fail(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpCreate && strings.HasSuffix(op.Path, ".sst") {
			<-release
		}
		return nil
	})
	const rows = 20 // so many that they take three logs
	for i := range rows {
		put(t, s, fmt.Sprintf("row %d\x00", i), strings.Repeat("x", 30_000))
	}
	fs := disk.Files.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(0, 0))})
	close(release)
	logs := 0
	rng := rand.New(rand.NewPCG(4, 0))
	for _, log := range list(t, fs) {
		number, ok := logNumber(log)
		if !ok {
			continue
		}
		text := []byte(read(t, fs, log))
		sound, _, _, err := scanLog(bytes.NewReader(text), wal.NumWAL(number))
		if err != nil {
			t.Fatal(err)
		}
		if sound < 100_000 {
			continue
		}
		logs++
		if openDamaged(t, fs, log, text[:logBlockBytes]) >= 0 {
			t.Errorf("%s was cut off at the end of a chunk, and is opened", log)
		}
		places := []int64{7, logBlockBytes + 7} // where the first chunks of two blocks have the log's number
		for range 20 {
			places = append(places, rng.Int64N(sound))
		}
		for _, at := range places {
			damaged := bytes.Clone(text)
			damaged[at] ^= 1 << rng.IntN(8)
			if opened := openDamaged(t, fs, log, damaged); opened >= 0 && opened != rows {
				t.Errorf("with a bit of byte %d of %s flipped %d of %d commits are there", at, log, opened, rows)
			}
		}
	}
	if logs < 3 {
		t.Errorf("%d logs have rows, want 3", logs)
	}
}

// TestTornTail crashes the machine while a commit is written. Open must not take the unfinished part of the log for
// damage, however much of it is on the disk.
func TestTornTail(t *testing.T) {
	for seed := range uint64(20) {
		fs := vfs.NewCrashableMem()
		s := open(t, fs, "data")
		put(t, s, "acknowledged\x00", "1")
		for i := range 40 { // commits without sync, some longer than a block
			b := s.NewBatch()
			_ = b.Put(fmt.Appendf(nil, "%d\x00", i), make([]byte, i%2*40_000+i))
			if err := b.CommitNoSync(); err != nil {
				t.Fatal(err)
			}
			_ = b.Close()
		}
		remains := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50, RNG: rand.New(rand.NewPCG(seed, 0))})
		if got := get(t, open(t, remains, "data"), "acknowledged\x00"); got != "1" {
			t.Errorf("seed %d: read %q", seed, got)
		}
	}
}

// killed returns the files of a store whose process was killed after several clients had committed rows of 10 bytes to
// 100 kB. The files include unsyncedPercent per cent of the data that was not synced and so not acknowledged.
func killed(t *testing.T, unsyncedPercent int) *vfs.MemFS {
	t.Helper()
	fs := vfs.NewCrashableMem()
	s := open(t, fs, "data")
	var clients sync.WaitGroup
	for c := range logClients {
		clients.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(c), 0))
			for i := range logCommits {
				size := 10 + rng.IntN(100)
				if i%2 == 0 {
					size = rng.IntN(60_000)
				}
				put(t, s, fmt.Sprintf("row %d %d\x00", c, i), strings.Repeat("x", size))
			}
		})
	}
	clients.Wait()
	return fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: unsyncedPercent, RNG: rand.New(rand.NewPCG(0, 0))})
}

var damageAt = regexp.MustCompile(`(\d{6}\.log: the write-ahead log|MANIFEST-\d{6}: the manifest) is damaged at offset \d+`)

// openDamaged opens a copy of fs in which file has the contents text, and returns the number of rows. It returns -1 if
// Open refused the store with an error that gives the file and the offset.
func openDamaged(t *testing.T, fs *vfs.MemFS, file string, text []byte) int {
	t.Helper()
	copied := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(0, 0))})
	write(t, copied, file, string(text))
	before := contents(t, copied)
	s, err := Open("data", copied)
	if err != nil {
		if !damageAt.MatchString(err.Error()) {
			t.Errorf("the refusal does not name file and offset: %v", err)
		}
		if after := contents(t, copied); after != before {
			t.Errorf("the refused directory was changed:\n%s\nwas\n%s", after, before)
		}
		return -1
	}
	defer s.Close()
	it, err := s.NewIter([]byte("row "), []byte("row!"))
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	rows := 0
	for ok := it.First(); ok; ok = it.Next() {
		rows++
	}
	return rows
}
