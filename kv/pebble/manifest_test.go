package pebble

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	records "github.com/cockroachdb/pebble/v2/record"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/wal"
)

const manifestRows = 40

// manyEdits returns the files of a store whose process was killed after it had flushed many tables with one row each.
// It also returns the name and the contents of the manifest.
func manyEdits(t *testing.T) (fs *vfs.MemFS, manifest string, sound []byte) {
	t.Helper()
	mem := vfs.NewCrashableMem()
	s := open(t, mem, "data")
	for i := range manifestRows {
		put(t, s, fmt.Sprintf("row %d\x00", i), "x")
		if err := s.db.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	fs = mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(0, 0))})
	_, number, _ := strings.Cut(last(t, fs, "marker.manifest"), manifestPrefix)
	manifest = manifestPrefix + number
	return fs, manifest, []byte(read(t, fs, manifest))
}

// TestManifestDamage flips bits of the manifest of a store whose process was killed, one at a time, or cuts the
// manifest off. Open must return an error that gives the file and the offset of the damage.
func TestManifestDamage(t *testing.T) {
	fs, manifest, sound := manyEdits(t)
	rng := rand.New(rand.NewPCG(1, 0))
	for at := 0; at < len(sound); at += 1 + rng.IntN(len(sound)/60) {
		damaged := bytes.Clone(sound)
		damaged[at] ^= 1 << rng.IntN(8)
		if rows := openDamaged(t, fs, manifest, damaged); rows >= 0 {
			t.Errorf("with a bit of byte %d of %d flipped, a store with %d of %d rows is opened", at, len(sound), rows, manifestRows)
		}
		if rows := openDamaged(t, fs, manifest, sound[:at]); rows >= 0 {
			t.Errorf("with a manifest of %d bytes of %d, a store with %d of %d rows is opened", at, len(sound), rows, manifestRows)
		}
	}
	if rows := openDamaged(t, fs, manifest, sound); rows != manifestRows {
		t.Errorf("the sound store has %d rows, want %d", rows, manifestRows)
	}
}

// TestManifestDamageAfterPowerLoss damages the manifest of a store without the notes in syncedFile. Open must find the
// damage if a record begins after it.
func TestManifestDamageAfterPowerLoss(t *testing.T) {
	fs, manifest, sound := manyEdits(t)
	write(t, fs, syncedFile, "")
	if err := syncDir("data", fs); err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(2, 0))
	// Open cannot find damage in the last edit, because no record begins after it. So the loop ends at lastEdit, which
	// is an offset in the last edit or in the edit before it.
	lastEdit := len(sound) - 150
	for at := 0; at < lastEdit; at += 1 + rng.IntN(len(sound)/60) {
		damaged := bytes.Clone(sound)
		damaged[at] ^= 1 << rng.IntN(8)
		if rows := openDamaged(t, fs, manifest, damaged); rows >= 0 {
			t.Errorf("with a bit of byte %d of %d flipped, a store with %d of %d rows is opened", at, len(sound), rows, manifestRows)
		}
	}
	if rows := openDamaged(t, fs, manifest, sound[:len(sound)-1]); rows < 0 {
		t.Error("an edit that was on its way when the machine went down is taken for damage")
	}
}

// TestManifestScan checks that a scan reads edits that extend over several blocks, and finds in each edit the lowest
// number of a log that is not in tables.
func TestManifestScan(t *testing.T) {
	fs, _, sound := manyEdits(t)
	s := manifestScan{}
	if err := s.scan(bytes.NewReader(sound)); err != nil {
		t.Fatal(err)
	}
	number, _ := logNumber(last(t, fs, ".log"))
	if s.end != int64(len(sound)) || s.broken || uint64(s.unflushed) != number {
		t.Errorf("the scan ends at %d of %d with broken %v, and the least log is %d, want %d", s.end, len(sound), s.broken, s.unflushed, number)
	}
	var text bytes.Buffer
	w := records.NewWriter(&text)
	rng := rand.New(rand.NewPCG(3, 0))
	for i := range 40 {
		edit, err := w.Next()
		if err != nil {
			t.Fatal(err)
		}
		head := append([]byte{editComparer, byte(len(comparerName))}, comparerName...)
		head = binary.AppendUvarint(append(head, editUnflushed), uint64(1000+i))
		if _, err := edit.Write(append(head, make([]byte, rng.IntN(2*logBlockBytes))...)); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		s := manifestScan{}
		if err := s.scan(bytes.NewReader(text.Bytes())); err != nil {
			t.Fatal(err)
		}
		if s.end != int64(text.Len()) || s.broken || s.unflushed != wal.NumWAL(1000+i) {
			t.Fatalf("after %d edits the scan ends at %d of %d with broken %v, and the least log is %d", i+1, s.end, text.Len(), s.broken, s.unflushed)
		}
	}
}
