package pebble

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/crowfoot-db/crowfoot/kv"
)

const upgradeRecords = 5

// TestUpgradeCrash cuts an upgrade short at each of its writes, on a file system that loses a random part of what was
// not synced. Afterwards the store either has the old format, and is upgraded when it is opened again, or has the new
// format and only rewritten records. As long as the mark (see formatFile) lets the old release open the store, no
// record may have the new form, because the old release cannot read it.
func TestUpgradeCrash(t *testing.T) {
	upgraded := 0
	for write := 1; ; write++ {
		fs := vfs.NewCrashableMem()
		makeFormat1(t, fs)
		writes, rng := 0, rand.New(rand.NewPCG(uint64(write), 0))
		var mu sync.Mutex // the engine writes in several goroutines
		var remains *vfs.MemFS
		crashing := errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
			mu.Lock()
			defer mu.Unlock()
			if op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
				if writes++; writes == write {
					remains = fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50, RNG: rng})
				}
			}
			return nil
		}))
		s := open(t, crashing, "data")
		if err := s.Upgrade(2, func() error { return renewRecords(s) }); err != nil {
			t.Fatal(err)
		}
		if remains == nil {
			t.Logf("cut short at %d writes; the upgrade was complete at %d of them", write-1, upgraded)
			return
		}
		if checkUpgrade(t, remains) {
			upgraded++
		}
	}
}

// checkUpgrade checks the store after a crash, and completes the upgrade. It reports whether the upgrade was complete
// before.
func checkUpgrade(t *testing.T, fs vfs.FS) (complete bool) {
	t.Helper()
	text := read(t, fs, formatFile)
	s := open(t, fs, "data")
	renewed := 0
	for i := range upgradeRecords {
		if get(t, s, record(i)) == "new" {
			renewed++
		}
	}
	switch complete = s.Format() == 2; {
	case complete && renewed != upgradeRecords:
		t.Errorf("format 2 has %d of %d records of its own", renewed, upgradeRecords)
	case text == formatMagic+"1\n" && renewed > 0:
		t.Errorf("the old release would read a directory with %d new records", renewed)
	case !complete:
		if err := s.Upgrade(2, func() error { return renewRecords(s) }); err != nil {
			t.Fatal(err)
		}
	}
	for i := range upgradeRecords {
		if got := get(t, s, record(i)); got != "new" {
			t.Errorf("after the second start record %d is %q", i, got)
		}
	}
	if got := read(t, fs, formatFile); got != formatMagic+"2\n" {
		t.Errorf("after the second start the mark says %q", got)
	}
	return complete
}

// makeFormat1 makes a store with records such as a release with format 1 would have made it.
func makeFormat1(t *testing.T, fs vfs.FS) {
	t.Helper()
	s, err := Open("data", fs)
	if err != nil {
		t.Fatal(err)
	}
	for i := range upgradeRecords {
		put(t, s, record(i), "old")
	}
	if err := errors.Join(writeMark("data", fs, mark{format: 1}), s.Close()); err != nil {
		t.Fatal(err)
	}
}

func record(i int) string { return fmt.Sprintf("record %d\x00", i) }

// renewRecords is an upgrade step that commits each rewritten record in a batch of its own.
func renewRecords(s *Store) error {
	for i := range upgradeRecords {
		b := s.NewBatch()
		if err := errors.Join(b.Put([]byte(record(i)), []byte("new")), b.Commit(), b.Close()); err != nil {
			return err
		}
	}
	return nil
}

// TestUpgradeFails checks that a store keeps the old format if an upgrade step fails, and that the error says which
// upgrade failed.
func TestUpgradeFails(t *testing.T) {
	fs := vfs.NewMem()
	makeFormat1(t, fs)
	s := open(t, fs, "data")
	err := s.Upgrade(2, func() error { return errors.New("a record is in the way") })
	if err == nil || !strings.Contains(err.Error(), "from format 1 to format 2: a record is in the way") {
		t.Errorf("error %v", err)
	}
	if s.Format() != 1 {
		t.Errorf("format %d", s.Format())
	}
	if got := read(t, fs, formatFile); got != formatMagic+"1, upgrading to 2\n" {
		t.Errorf("the mark says %q", got)
	}
}

// TestFormats checks that a new store has the last format, and that engineVersions has a version of Pebble's files for
// each format.
func TestFormats(t *testing.T) {
	if s := open(t, vfs.NewMem(), "data"); s.Format() != kv.LastFormat {
		t.Errorf("a new store has format %d", s.Format())
	}
	for f := kv.FirstFormat; f <= kv.LastFormat; f++ {
		if engineVersions[f] == 0 {
			t.Errorf("format %d has no version of Pebble's files", f)
		}
	}
}
