package pebble

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	records "github.com/cockroachdb/pebble/v2/record"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/wal"

	"github.com/crowfoot-db/crowfoot/kv"
)

// TestAssumptions checks what this package assumes about Pebble's files and behaviour beyond the promises of Pebble's
// API. Each subtest makes a store with Pebble alone and checks one assumption. If a subtest fails with a new version
// of Pebble, its error names the assumption and the code that depends on it.
func TestAssumptions(t *testing.T) {
	for _, a := range []assumption{
		{"the names of files are MANIFEST-NNNNNN, NNNNNN.log, NNNNNN.sst, OPTIONS-NNNNNN, marker.* and LOCK", "synced.go:parseNote, guard.go:roleOf, verify.go:VerifyTables", fileNames},
		{"every store has markers and options, and a checkpoint begins with one of them", "format.go:isEngineFile", firstFiles},
		{"Peek finds the manifest, finds none in an empty directory, and writes nothing", "format.go:judgeStore, manifest.go:checkManifest", peeking},
		{"the lock file is LOCK, and a directory cannot be locked twice", "format.go:lockDirectory", locking},
		{"a manifest is chunks with a header of 7 bytes, in blocks of 32 KiB, with a CRC-32C over type and payload", "manifest.go:manifestScan", manifestChunks},
		{"an edit begins with the comparer's name and the lowest number of a log that is not in tables", "manifest.go:manifestScan.edit", manifestHeads},
		{"a manifest is synced after each edit, before the next one is written", "manifest.go:checkManifest", manifestSyncs},
		{"a log is chunks of types 5 to 12 with the log's number, in blocks of 32 KiB, with a CRC-32C from the type on", "log.go:scanLog", logChunks},
		{"a log that was closed ends in a trailer of type 5 with the next number, and a log in use has none", "log.go:logScan.trailer", logTrailer},
		{"the first log of a store has no synced offsets, and the later ones have", "pebble.go:open", logOffsets},
		{"a synced offset is never beyond the chunk that shows it, and rises with the syncs", "log.go:logScan.proof", logOffsetsRise},
		{"wal.Scan finds the logs by number, and ParseLogFilename parses their names", "synced.go:checkFiles, synced.go:logNumber", logNumbers},
		{"logs and manifests are written with Write from their beginning, never with WriteAt, and are created, or renamed for reuse", "synced.go:notedFile, guard.go:WriteAt", writtenInOrder},
		{"the versions of Pebble's files that the data directory's formats name are supported", "format.go:engineVersions", majorVersions},
		{"a table ends in Pebble's magic bytes and has the table format of the store's version", "verify.go:verifyTable", tableFooter},
		{"a table's properties have the newest version under its name", "newest.go:newest", tableProperties},
		{"the checksums of a table's blocks show damage, in an error that begins with the number of the file", "verify.go:verifyTable", tableChecksums},
		{"the options file names the comparer, and a store of another comparer is not opened", "options.go:comparerName", optionsFile},
		{"a store that is opened to read only makes and removes no file", "verify.go:OpenToRead", readOnly},
		{"flushes and compactions create tables in categories of their own", "guard.go:roleOf", categories},
		{"a compaction's events have one job number and come in order, and name tables by the numbers of their files", "compactions.go:compactions, work.go:listener", compactionEvents},
		{"the reason of a stall begins with memtable if commits wait for a flush, and else not", "work.go:reasonOf", stallReasons},
		{"MaxOpenFiles is 1000 by default and at least 74", "descriptors.go:Files", openFiles},
		{"Pebble does not notice a missing log", "synced.go:checkFiles (no longer needed if Pebble does)", missingLog},
		{"Pebble takes damage in the midst of a manifest for its end", "manifest.go:checkManifest (no longer needed if Pebble does not)", damagedManifest},
	} {
		t.Run(strings.ReplaceAll(a.where, ":", " "), func(t *testing.T) {
			t.Parallel()
			defer func() {
				if p := recover(); p != nil {
					a.broken(t, "panic: %v", p)
				} else if t.Failed() {
					a.broken(t, "see the error before")
				}
			}()
			if err := a.check(t); err != nil {
				t.Error(err)
			}
		})
	}
}

// An assumption is a statement about Pebble. The field what holds the text of the statement, and the field where names
// the code that depends on it. check returns an error if the statement is false.
type assumption struct {
	what, where string
	check       func(*testing.T) error
}

func (a *assumption) broken(t *testing.T, format string, args ...any) {
	t.Helper()
	t.Errorf("Pebble %s: assumption %q no longer holds; see kv/pebble/%s: %s", pebbleVersion(t), a.what, a.where, fmt.Sprintf(format, args...))
}

// pebbleVersion returns the version of Pebble in go.mod.
func pebbleVersion(t *testing.T) string {
	text, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`cockroachdb/pebble/v2 (v\S+)`).FindSubmatch(text)
	if found == nil {
		t.Fatal("go.mod does not name Pebble")
	}
	return string(found[1])
}

// A world is a file system in memory with a store that Pebble alone writes. It records which files Pebble creates, and
// how Pebble writes and syncs manifests and logs.
type world struct {
	*vfs.MemFS
	mu      sync.Mutex
	created []creation
	ops     []fileOp // writes and syncs of manifests and logs, in order
}

type creation struct {
	name     string
	category vfs.DiskWriteCategory
}

// A fileOp is a write or a sync of a file.
type fileOp struct {
	file string
	data []byte
	sync bool
	at   bool // whether the write was a WriteAt; if so, data is nil
}

func newWorld() *world { return &world{MemFS: vfs.NewCrashableMem()} }

func (w *world) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := w.MemFS.Create(name, category)
	return w.made(f, err, name, category)
}

func (w *world) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := w.MemFS.ReuseForWrite(oldname, newname, category)
	return w.made(f, err, newname, category)
}

func (w *world) made(f vfs.File, err error, name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.created = append(w.created, creation{w.PathBase(name), category})
	return &watchedFile{f, w, w.PathBase(name)}, nil
}

func (w *world) note(op fileOp) {
	_, isLog := logNumber(op.file)
	_, isManifest := manifestNumber(op.file)
	if !isLog && !isManifest {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	op.data = bytes.Clone(op.data)
	w.ops = append(w.ops, op)
}

// A watchedFile is a file that Pebble has created. It records in its world each write to the file and each sync of the
// file.
type watchedFile struct {
	vfs.File
	world *world
	name  string
}

func (f *watchedFile) Write(p []byte) (int, error) {
	f.world.note(fileOp{file: f.name, data: p})
	return f.File.Write(p)
}

func (f *watchedFile) WriteAt(p []byte, at int64) (int, error) {
	f.world.note(fileOp{file: f.name, at: true})
	return f.File.WriteAt(p, at)
}

func (f *watchedFile) Sync() error {
	f.world.note(fileOp{file: f.name, sync: true})
	return f.File.Sync()
}
func (f *watchedFile) SyncData() error {
	f.world.note(fileOp{file: f.name, sync: true})
	return f.File.SyncData()
}

// open opens the store in the directory "data". If the function change is not nil, open first calls it to change
// Pebble's options.
func (w *world) open(t *testing.T, change func(*pebble.Options)) *pebble.DB {
	t.Helper()
	db, err := w.tryOpen(change)
	if err != nil {
		t.Fatal(err)
	}
	return db
}

func (w *world) tryOpen(change func(*pebble.Options)) (*pebble.DB, error) {
	o := &pebble.Options{FS: w, Comparer: comparer, FormatMajorVersion: engineVersions[kv.LastFormat], Logger: messages{fail: func(error) {}},
		BlockPropertyCollectors: []func() pebble.BlockPropertyCollector{newNewest}, DisableAutomaticCompactions: true, L0StopWritesThreshold: 1000}
	// Without a handler for DataCorruption, Pebble ends the process.
	o.EventListener = &pebble.EventListener{DataCorruption: func(pebble.DataCorruptionInfo) {}}
	if change != nil {
		change(o)
	}
	return pebble.Open("data", o)
}

// fill creates a store with files of all kinds and returns it open. It writes rows, flushes, reopens the store, writes
// and flushes again, and then writes rows that stay in the log.
func (w *world) fill(t *testing.T) *pebble.DB {
	t.Helper()
	db := w.open(t, nil)
	set(t, db, 10, 10)
	flush(t, db)
	closeDB(t, db)
	db = w.open(t, nil)
	set(t, db, 10, 10)
	flush(t, db)
	set(t, db, 20, logBlockBytes/4)
	return db
}

func set(t *testing.T, db *pebble.DB, rows, size int) {
	t.Helper()
	for i := range rows {
		if err := db.Set(version(fmt.Sprintf("row %d\x00", i), uint64(i)), bytes.Repeat([]byte{'x'}, size), pebble.Sync); err != nil {
			t.Fatal(err)
		}
	}
}

func flush(t *testing.T, db *pebble.DB) {
	t.Helper()
	if err := db.Flush(); err != nil {
		t.Fatal(err)
	}
}

func closeDB(t *testing.T, db *pebble.DB) {
	t.Helper()
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// killed returns a copy of the store's files as a crash of the process would leave them, and closes the store.
func (w *world) killed(t *testing.T, db *pebble.DB) *vfs.MemFS {
	t.Helper()
	fs := w.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(0, 0))})
	closeDB(t, db)
	return fs
}

func fileNames(t *testing.T) error {
	w := newWorld()
	fs := w.killed(t, w.fill(t))
	kinds := map[string]int{}
	for _, name := range list(t, fs) {
		manifest, isManifest := manifestNumber(name)
		log, isLog := logNumber(name)
		switch {
		case isManifest && name == fmt.Sprintf("%s%06d", manifestPrefix, manifest):
			kinds["manifest"]++
		case isLog && name == logName(wal.NumWAL(log)) && len(name) == len("000001.log"):
			kinds["log"]++
		case regexp.MustCompile(`^\d{6}\.sst$`).MatchString(name):
			kinds["table"]++
		case regexp.MustCompile(`^OPTIONS-\d{6}$`).MatchString(name):
			kinds["options"]++
		case strings.HasPrefix(name, "marker."):
			kinds["marker"]++
		case name == lockFile:
			kinds["lock"]++
		default:
			return fmt.Errorf("there is a file %s", name)
		}
	}
	if len(kinds) != 6 {
		return fmt.Errorf("of six kinds of files there are %v", kinds)
	}
	return nil
}

func firstFiles(t *testing.T) error {
	w := newWorld()
	db := w.open(t, nil)
	set(t, db, 1, 1)
	flush(t, db)
	if names := list(t, w); !slices.ContainsFunc(names, isEngineFile) {
		return fmt.Errorf("a new directory has %q", names)
	}
	w.mu.Lock()
	before := len(w.created)
	w.mu.Unlock()
	if err := db.Checkpoint("copy", pebble.WithFlushedWAL()); err != nil {
		return err
	}
	defer closeDB(t, db)
	w.mu.Lock()
	defer w.mu.Unlock()
	if first := w.created[before].name; !isEngineFile(first) {
		return fmt.Errorf("a checkpoint begins with %s", first)
	}
	return nil
}

func peeking(t *testing.T) error {
	w := newWorld()
	if err := w.MkdirAll("empty", 0o755); err != nil {
		return err
	}
	if desc, err := pebble.Peek("empty", w); err != nil || desc.Exists {
		return fmt.Errorf("in an empty directory: %+v, %v", desc, err)
	}
	fs := w.killed(t, w.fill(t))
	before := contents(t, fs)
	desc, err := pebble.Peek("data", fs)
	if err != nil || !desc.Exists {
		return fmt.Errorf("of a store: %+v, %v", desc, err)
	}
	if _, ok := manifestNumber(fs.PathBase(desc.ManifestFilename)); !ok || contents(t, fs) != before {
		return fmt.Errorf("the manifest is %s; the directory changed: %t", desc.ManifestFilename, contents(t, fs) != before)
	}
	if _, err := fs.Stat(desc.ManifestFilename); err != nil {
		return err
	}
	return nil
}

func locking(t *testing.T) error {
	w := newWorld()
	if err := w.MkdirAll("data", 0o755); err != nil {
		return err
	}
	lock, err := pebble.LockDirectory("data", w)
	if err != nil {
		return err
	}
	if names := list(t, w); !slices.Equal(names, []string{lockFile}) {
		return fmt.Errorf("a locked directory has %q", names)
	}
	if _, err := pebble.LockDirectory("data", w); err == nil {
		return fmt.Errorf("a directory was locked twice")
	}
	return lock.Close()
}

// manifestOf returns the contents of a store's manifest.
func manifestOf(fs vfs.FS) (data []byte, err error) {
	desc, err := pebble.Peek("data", fs)
	if err != nil {
		return nil, err
	}
	return readAll(fs, desc.ManifestFilename)
}

func readAll(fs vfs.FS, name string) ([]byte, error) {
	f, err := fs.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	data := make([]byte, info.Size())
	_, err = f.ReadAt(data, 0)
	return data, err
}

func manifestChunks(t *testing.T) error {
	w := newWorld()
	db := w.fill(t)
	for range 400 { // so many edits that the manifest exceeds one block
		set(t, db, 1, 1)
		flush(t, db)
	}
	fs := w.killed(t, db)
	data, err := manifestOf(fs)
	if err != nil {
		return err
	}
	s := manifestScan{}
	if err := s.scan(bytes.NewReader(data)); err != nil {
		return err
	}
	if s.end != int64(len(data)) || s.broken || len(data) < logBlockBytes {
		return fmt.Errorf("a manifest of %d bytes is read up to %d, damaged: %t", len(data), s.end, s.broken)
	}
	return nil
}

func manifestHeads(t *testing.T) error {
	w := newWorld()
	fs := w.killed(t, w.fill(t))
	data, err := manifestOf(fs)
	if err != nil {
		return err
	}
	r := records.NewReader(bytes.NewReader(data), 0)
	first, err := r.Next()
	if err != nil {
		return err
	}
	head := make([]byte, 2+len(comparerName))
	if _, err := first.Read(head); err != nil {
		return err
	}
	if want := append([]byte{editComparer, byte(len(comparerName))}, comparerName...); !bytes.Equal(head, want) {
		return fmt.Errorf("the first edit begins with %q; want %q", head, want)
	}
	s := manifestScan{}
	if err := s.scan(bytes.NewReader(data)); err != nil {
		return err
	}
	logs, err := wal.Scan(wal.Dir{FS: fs, Dirname: "data"})
	if err != nil {
		return err
	}
	if newest := logs[len(logs)-1].Num; s.unflushed != newest { // the newest log has the writes since the last flush
		return fmt.Errorf("the manifest says that log %d is the first that is not in tables; want %d", s.unflushed, newest)
	}
	return nil
}

func manifestSyncs(t *testing.T) error {
	w := newWorld()
	db := w.fill(t)
	for range 5 {
		set(t, db, 1, 1)
		flush(t, db)
	}
	closeDB(t, db)
	text := map[string][]byte{}
	ends, unsynced := map[string]int{}, map[string]int{}
	syncs := 0
	for _, op := range w.ops {
		if _, ok := manifestNumber(op.file); !ok {
			continue
		}
		if op.sync {
			unsynced[op.file] = 0
			syncs++
			continue
		}
		text[op.file] = append(text[op.file], op.data...)
		s := manifestScan{}
		if err := s.scan(bytes.NewReader(text[op.file])); err != nil {
			return err
		}
		if int(s.end) > ends[op.file] {
			if ends[op.file] > 0 && unsynced[op.file] > 0 && syncs > 0 {
				return fmt.Errorf("%s: an edit is written at %d while the one before is not synced", op.file, ends[op.file])
			}
			ends[op.file] = int(s.end)
			unsynced[op.file]++
		}
	}
	if syncs < 5 {
		return fmt.Errorf("%d syncs of the manifest after 5 flushes", syncs)
	}
	return nil
}

// newestLog returns the number and the contents of a store's newest log.
func newestLog(t *testing.T, fs vfs.FS) (wal.NumWAL, []byte) {
	t.Helper()
	name := last(t, fs, ".log")
	number, _ := logNumber(name)
	return wal.NumWAL(number), []byte(read(t, fs, name))
}

func logChunks(t *testing.T) error {
	w := newWorld()
	fs := w.killed(t, w.fill(t))
	number, data := newestLog(t, fs)
	end, proof, closed, err := scanLog(bytes.NewReader(data), number)
	if err != nil {
		return err
	}
	if written := len(bytes.TrimRight(data, "\x00")); int(end) < written || proof != 0 || closed || written < 3*logBlockBytes {
		return fmt.Errorf("a log of %d bytes is read up to %d, with proof %d of damage, closed: %t", written, end, proof, closed)
	}
	return nil
}

func logTrailer(t *testing.T) error {
	w := newWorld()
	db := w.fill(t)
	inUse := w.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(0, 0))})
	closeDB(t, db)
	for _, test := range []struct {
		fs   vfs.FS
		want bool
	}{{inUse, false}, {w, true}} {
		number, data := newestLog(t, test.fs)
		if _, _, closed, err := scanLog(bytes.NewReader(data), number); err != nil || closed != test.want {
			return fmt.Errorf("the store is closed: %t; its log has a trailer: %t, %v", test.want, closed, err)
		}
	}
	return nil
}

// chunkTypes returns the type, the offset and the synced offset of each chunk of a log. The log must be undamaged.
func chunkTypes(number wal.NumWAL, data []byte) (types []byte, starts []int, synced []uint64) {
	s := logScan{num: uint32(number)}
	for at := 0; at < len(data); {
		left := logBlockBytes - at%logBlockBytes
		n, offset := s.chunk(data[at:min(at+left, len(data))])
		if n == 0 {
			if at+left >= len(data) {
				break
			}
			at += left
			continue
		}
		types, starts, synced = append(types, data[at+6]), append(starts, at), append(synced, offset)
		at += n
	}
	return types, starts, synced
}

func logOffsets(t *testing.T) error {
	w := newWorld()
	db := w.open(t, nil)
	set(t, db, 5, 10)
	number, data := newestLog(t, w)
	types, _, _ := chunkTypes(number, data)
	if len(types) == 0 || slices.Max(types) >= logTypeSynced {
		return fmt.Errorf("the first log has chunks of types %v; want below %d: the store need not be opened twice", types, logTypeSynced)
	}
	closeDB(t, db)
	db = w.open(t, nil)
	set(t, db, 5, 10)
	number, data = newestLog(t, w)
	types, _, _ = chunkTypes(number, data)
	if len(types) == 0 || slices.Min(types) < logTypeSynced {
		return fmt.Errorf("the second log has chunks of types %v; want %d to %d", types, logTypeSynced, logTypes-1)
	}
	closeDB(t, db)
	return nil
}

func logOffsetsRise(t *testing.T) error {
	w := newWorld()
	db := w.fill(t)
	set(t, db, 100, 100)
	number, data := newestLog(t, w)
	_, starts, synced := chunkTypes(number, data)
	distinct := map[uint64]bool{}
	for i := range starts {
		if int(synced[i]) > starts[i] {
			return fmt.Errorf("the chunk at %d says that the log is synced up to %d", starts[i], synced[i])
		}
		if i > 0 && synced[i] < synced[i-1] {
			return fmt.Errorf("the synced offset falls from %d to %d at %d", synced[i-1], synced[i], starts[i])
		}
		distinct[synced[i]] = true
	}
	if len(distinct) < 10 {
		return fmt.Errorf("120 commits, one after the other, show %d different offsets", len(distinct))
	}
	closeDB(t, db)
	return nil
}

func logNumbers(t *testing.T) error {
	w := newWorld()
	fs := w.killed(t, w.fill(t))
	logs, err := wal.Scan(wal.Dir{FS: fs, Dirname: "data"})
	if err != nil {
		return err
	}
	found := map[string]bool{}
	for _, log := range logs {
		found[logName(log.Num)] = true
	}
	for _, name := range list(t, fs) {
		if strings.HasSuffix(name, ".log") && !found[name] {
			return fmt.Errorf("wal.Scan does not find %s: %v", name, logs)
		}
		delete(found, name)
	}
	if len(found) > 0 {
		return fmt.Errorf("wal.Scan finds %v, which there are not", found)
	}
	if n, ok := logNumber("000123.log"); !ok || n != 123 {
		return fmt.Errorf("000123.log has the number %d, %t", n, ok)
	}
	if n, ok := logNumber("000123.sst"); ok {
		return fmt.Errorf("000123.sst is the log %d", n)
	}
	return nil
}

func writtenInOrder(t *testing.T) error {
	w := newWorld()
	db := w.fill(t)
	for range 3 {
		set(t, db, 1, 1)
		flush(t, db) // after a flush, Pebble reuses an older log
	}
	closeDB(t, db)
	written := map[string]int64{}
	for _, op := range w.ops {
		if op.at {
			return fmt.Errorf("%s is written with WriteAt", op.file)
		}
		written[op.file] += int64(len(op.data))
	}
	scanned := 0
	for file, n := range written {
		if !slices.ContainsFunc(w.created, func(c creation) bool { return c.name == file }) {
			return fmt.Errorf("%s was not created", file)
		}
		number, isLog := logNumber(file)
		if !isLog {
			continue
		}
		data, err := readAll(w, "data/"+file)
		if errors.Is(err, os.ErrNotExist) { // Pebble has removed this log
			continue
		}
		if err != nil {
			return err
		}
		scanned++
		end, _, _, err := scanLog(bytes.NewReader(data), wal.NumWAL(number))
		if err != nil || end > n {
			return fmt.Errorf("%s: %d bytes were written, and it is read up to %d, %v", file, n, end, err)
		}
	}
	if scanned == 0 {
		return errors.New("there is no log to read")
	}
	return nil
}

func majorVersions(t *testing.T) error {
	for format, v := range engineVersions {
		if v < pebble.FormatMinSupported || v > pebble.FormatNewest {
			return fmt.Errorf("format %d needs %s; Pebble supports %s to %s", format, v, pebble.FormatMinSupported, pebble.FormatNewest)
		}
		if v != 21 { // the number in the format-version markers of existing data directories
			return fmt.Errorf("format %d needs %s, which has the number %d", format, v, uint64(v))
		}
	}
	w := newWorld()
	db := w.open(t, nil)
	defer closeDB(t, db)
	want := engineVersions[kv.LastFormat]
	if got := db.FormatMajorVersion(); got != want {
		return fmt.Errorf("a new store has the version %s; want %s", got, want)
	}
	if marker := last(t, w, "marker.format-version"); !strings.HasSuffix(marker, fmt.Sprintf(".%03d", uint64(want))) {
		return fmt.Errorf("the marker of version %d is %s", uint64(want), marker)
	}
	return nil
}

// aTable returns the files of a store and the name of one of its table files.
func aTable(t *testing.T) (*vfs.MemFS, string) {
	t.Helper()
	w := newWorld()
	fs := w.killed(t, w.fill(t))
	return fs, last(t, fs, ".sst")
}

func openTable(fs vfs.FS, name string) (*sstable.Reader, error) {
	f, err := fs.Open(fs.PathJoin("data", name))
	if err != nil {
		return nil, err
	}
	readable, err := sstable.NewSimpleReadable(f)
	if err != nil {
		return nil, err
	}
	o := &pebble.Options{FS: fs, Comparer: comparer}
	o.EnsureDefaults()
	return sstable.NewReader(context.Background(), readable, o.MakeReaderOptions())
}

func tableFooter(t *testing.T) error {
	const magic = "\xf0\x9f\xaa\xb3\xf0\x9f\xaa\xb3"
	fs, name := aTable(t)
	if !strings.HasSuffix(read(t, fs, name), magic) {
		return fmt.Errorf("the table does not end in %q", magic)
	}
	r, err := openTable(fs, name)
	if err != nil {
		return err
	}
	defer r.Close()
	format, err := r.TableFormat()
	if want := engineVersions[kv.LastFormat].MaxTableFormat(); err != nil || format != want {
		return fmt.Errorf("the table has the format %s, %v; want %s", format, err, want)
	}
	return nil
}

func tableProperties(t *testing.T) error {
	fs, name := aTable(t)
	r, err := openTable(fs, name)
	if err != nil {
		return err
	}
	defer r.Close()
	p, err := r.ReadPropertiesBlock(context.Background(), nil)
	if err != nil {
		return err
	}
	got, ok := p.UserProperties[newestName]
	// The first byte is Pebble's number of the property. The timestamps of the table's versions are 0 to 9.
	if !ok || len(got) != 1+fileNewest || binary.BigEndian.Uint64([]byte(got[1:])) != 9 {
		return fmt.Errorf("the property %s is %q", newestName, got)
	}
	return nil
}

func tableChecksums(t *testing.T) error {
	fs, name := aTable(t)
	r, err := openTable(fs, name)
	if err != nil {
		return err
	}
	if err := r.ValidateBlockChecksums(); err != nil {
		return fmt.Errorf("a sound table: %w", err)
	}
	_ = r.Close()
	text := []byte(read(t, fs, name))
	text[1] ^= 1
	write(t, fs, name, string(text))
	if r, err = openTable(fs, name); err != nil {
		return err
	}
	defer r.Close()
	if err := r.ValidateBlockChecksums(); err == nil || !strings.Contains(err.Error(), "pebble: file 000000: ") {
		return fmt.Errorf("a table with one bit changed: %v", err)
	}
	return nil
}

func optionsFile(t *testing.T) error {
	w := newWorld()
	closeDB(t, w.fill(t))
	if text := read(t, w, last(t, w, "OPTIONS-")); !strings.Contains(text, "comparer="+comparerName+"\n") {
		return fmt.Errorf("the options file does not name the comparer:\n%s", text)
	}
	db, err := w.tryOpen(func(o *pebble.Options) { o.Comparer = pebble.DefaultComparer })
	if err == nil {
		closeDB(t, db)
		return fmt.Errorf("a store was opened with another comparer")
	}
	return nil
}

func readOnly(t *testing.T) error {
	w := newWorld()
	fs := w.killed(t, w.fill(t))
	before := contents(t, fs)
	db, err := pebble.Open("data", &pebble.Options{FS: fs, Comparer: comparer, ReadOnly: true, Logger: messages{}})
	if err != nil {
		return err
	}
	closeDB(t, db)
	if contents(t, fs) != before {
		return fmt.Errorf("the directory was changed")
	}
	return nil
}

func categories(t *testing.T) error {
	w := newWorld()
	db := w.fill(t)
	flush(t, db)
	w.mu.Lock()
	flushed := len(w.created)
	w.mu.Unlock()
	if err := db.Compact(context.Background(), []byte{0}, []byte{0xff}, false); err != nil {
		return err
	}
	closeDB(t, db)
	for i, c := range w.created {
		want := categoryFlush
		if i >= flushed {
			want = categoryCompaction
		}
		if strings.HasSuffix(c.name, ".sst") && c.category != want {
			return fmt.Errorf("%s has the category %q; want %q", c.name, c.category, want)
		}
	}
	if !slices.ContainsFunc(w.created[flushed:], func(c creation) bool { return strings.HasSuffix(c.name, ".sst") }) {
		return fmt.Errorf("a compaction created no table")
	}
	return nil
}

func compactionEvents(t *testing.T) error {
	w := newWorld()
	var mu sync.Mutex
	var events []string
	var inputs []string
	job := -1
	note := func(what string, id int, compaction bool) {
		if compaction {
			job = id
		}
		if id == job {
			events = append(events, what)
		}
	}
	closeDB(t, w.fill(t))
	db := w.open(t, func(o *pebble.Options) {
		o.EventListener.CompactionBegin = func(i pebble.CompactionInfo) {
			mu.Lock()
			defer mu.Unlock()
			note("begin", i.JobID, true)
			for _, l := range i.Input {
				for _, table := range l.Tables {
					inputs = append(inputs, fmt.Sprintf("%s.sst", table.FileNum))
				}
			}
		}
		o.EventListener.TableCreated = func(i pebble.TableCreateInfo) {
			mu.Lock()
			defer mu.Unlock()
			note(fmt.Sprintf("%s.sst", i.FileNum), i.JobID, false)
		}
		o.EventListener.CompactionEnd = func(i pebble.CompactionInfo) {
			mu.Lock()
			defer mu.Unlock()
			note("end", i.JobID, false)
		}
	})
	if err := db.Compact(context.Background(), []byte{0}, []byte{0xff}, false); err != nil {
		return err
	}
	closeDB(t, db)
	if len(events) != 3 || events[0] != "begin" || events[2] != "end" {
		return fmt.Errorf("the events are %q", events)
	}
	for _, name := range append(inputs, events[1]) {
		if !slices.ContainsFunc(w.created, func(c creation) bool { return c.name == name }) {
			return fmt.Errorf("the events name %s, which was not created", name)
		}
	}
	if len(inputs) < 2 {
		return fmt.Errorf("the inputs are %q", inputs)
	}
	return nil
}

// A heldFS blocks the creation of files whose category is the one in its field hold. It does so until the channel in
// its field release is closed.
type heldFS struct {
	*world
	hold    vfs.DiskWriteCategory
	release chan struct{}
}

func (fs heldFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if category == fs.hold {
		<-fs.release
	}
	return fs.world.Create(name, category)
}

func stallReasons(t *testing.T) error {
	for _, test := range []struct {
		want   stallReason
		hold   vfs.DiskWriteCategory
		change func(*pebble.Options)
	}{
		{stallFlush, categoryFlush, func(o *pebble.Options) { o.MemTableSize, o.MemTableStopWritesThreshold = 64<<10, 2 }},
		{stallCompaction, categoryCompaction, func(o *pebble.Options) {
			o.DisableAutomaticCompactions, o.L0CompactionThreshold, o.L0StopWritesThreshold = false, 2, 2
		}},
	} {
		fs := heldFS{newWorld(), test.hold, make(chan struct{})}
		began := make(chan string, 100)
		db := fs.open(t, func(o *pebble.Options) {
			o.FS = fs
			o.EventListener.WriteStallBegin = func(i pebble.WriteStallBeginInfo) { began <- i.Reason }
			test.change(o)
		})
		written := make(chan error, 1)
		go func() {
			var err error
			for i := 0; i < 10 && err == nil; i++ {
				if err = db.Set([]byte("k\x00"), make([]byte, 30<<10), pebble.NoSync); err == nil && test.want == stallCompaction {
					err = db.Flush()
				}
			}
			written <- err
		}()
		var reason string
		select {
		case reason = <-began:
		case err := <-written:
			return fmt.Errorf("no stall: %v", err)
		}
		close(fs.release)
		if err := <-written; err != nil {
			return err
		}
		closeDB(t, db)
		if got := reasonOf(pebble.WriteStallBeginInfo{Reason: reason}); got != test.want {
			return fmt.Errorf("the reason %q counts as %d; want %d", reason, got, test.want)
		}
	}
	return nil
}

func openFiles(*testing.T) error {
	o := new(pebble.Options)
	o.EnsureDefaults()
	if o.MaxOpenFiles != mostFiles {
		return fmt.Errorf("by default there are %d; want %d", o.MaxOpenFiles, mostFiles)
	}
	least := pebble.FileCacheSize(0)
	if pebble.FileCacheSize(leastFiles) != least || pebble.FileCacheSize(leastFiles+1) != least+1 {
		return fmt.Errorf("%d files, which are %d tables, are not the least", leastFiles, pebble.FileCacheSize(leastFiles))
	}
	return nil
}

func missingLog(t *testing.T) error {
	w := newWorld()
	fs := w.killed(t, w.fill(t))
	if err := fs.Remove(fs.PathJoin("data", last(t, fs, ".log"))); err != nil {
		return err
	}
	db, err := pebble.Open("data", &pebble.Options{FS: fs, Comparer: comparer, Logger: messages{}})
	if err != nil {
		return err
	}
	closeDB(t, db)
	return nil
}

func damagedManifest(t *testing.T) error {
	w := newWorld()
	db := w.fill(t)
	for range 5 {
		set(t, db, 1, 1)
		flush(t, db)
	}
	fs := w.killed(t, db)
	desc, err := pebble.Peek("data", fs)
	if err != nil {
		return err
	}
	data, err := manifestOf(fs)
	if err != nil {
		return err
	}
	var chunks []int // offsets of the chunks, which are all in one block
	for at := 0; at < len(data); {
		n := manifestChunk(data[at:])
		if n == 0 {
			return fmt.Errorf("there is no chunk at %d", at)
		}
		chunks = append(chunks, at)
		at += n
	}
	damaged := bytes.Clone(data)
	damaged[chunks[len(chunks)-2]+manifestHeaderBytes] ^= 1
	write(t, fs, fs.PathBase(desc.ManifestFilename), string(damaged))
	db, err = pebble.Open("data", &pebble.Options{FS: fs, Comparer: comparer, ReadOnly: true, Logger: messages{}})
	if err != nil {
		return err
	}
	closeDB(t, db)
	return nil
}
