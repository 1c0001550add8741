package pebble

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	iofs "io/fs"
	"strconv"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/wal"

	"github.com/crowfoot-db/crowfoot/kv"
)

// syncedFile says how far the newest manifests and logs have been synced. It is a row of notes of 20 bytes, one for each file:
//
//	number of the file (8 bytes, big-endian), offset (8), CRC-32C of the file's name and both numbers (4)
//
// The first manifestNotes are those of manifests, the others those of logs; a new file takes the oldest one's place. A note is overwritten
// after every sync of its file and before what waits for the sync goes on, such as commits that are then acknowledged.
//
// It is not synced itself. After the death of the process it is exact, since the operating system has it; after the machine's
// it may be old, or empty, and what it says is true all the same: so much of the file was synced. The file itself is always there, as its name is
// durable before a store has rows: format 1 alone had none. A log that has a note and is not there was in tables, and so the manifest
// says, or it is lost.
const syncedFile = "CROWFOOT.synced"

const (
	noteBytes = 20
	// manifestNotes are enough for one that is begun while the one before is still the store's.
	manifestNotes = 2
	// allNotes leave room for the logs of all that a store has in memory, and more.
	allNotes = 64
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// note says how far a file has been synced.
type note struct {
	number  uint64
	offset  int64
	nameCRC uint32
}

func newNote(name string, number uint64) note {
	return note{number: number, nameCRC: crc32.Checksum([]byte(name), castagnoli)}
}

func (n note) append(dst []byte) []byte {
	start := len(dst)
	dst = binary.BigEndian.AppendUint64(dst, n.number)
	dst = binary.BigEndian.AppendUint64(dst, uint64(n.offset))
	return binary.BigEndian.AppendUint32(dst, crc32.Update(n.nameCRC, castagnoli, dst[start:]))
}

// parseNote returns the zero note if there is none in a place.
func parseNote(place int, b []byte) note {
	number := binary.BigEndian.Uint64(b)
	name := logName(wal.NumWAL(number))
	if place < manifestNotes {
		name = fmt.Sprintf("%s%06d", manifestPrefix, number)
	}
	n := newNote(name, number)
	n.offset = int64(binary.BigEndian.Uint64(b[8:]))
	if string(n.append(nil)) != string(b) {
		return note{}
	}
	return n
}

const manifestPrefix = "MANIFEST-"

func logName(n wal.NumWAL) string { return n.String() + ".log" }

// notes are those of syncedFile, each in its place.
type notes [allNotes]note

// readNotes reads syncedFile. Of what a machine that went down left half of, nothing is known to be synced.
func readNotes(dir string, fs vfs.FS) (all notes, err error) {
	f, err := fs.Open(fs.PathJoin(dir, syncedFile))
	if err != nil {
		return all, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, allNotes*noteBytes))
	for i := range len(data) / noteBytes {
		all[i] = parseNote(i, data[i*noteBytes:(i+1)*noteBytes])
	}
	return all, err
}

// makeNotes makes an empty syncedFile, durably.
func makeNotes(dir string, fs vfs.FS) error {
	return new(notes).store(dir, fs)
}

// store makes n what syncedFile says, durably.
func (n *notes) store(dir string, fs vfs.FS) error {
	f, err := fs.Create(fs.PathJoin(dir, syncedFile), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	var text []byte
	for _, note := range n {
		text = note.append(text)
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Sync(), f.Close(), syncDir(dir, fs))
}

// of is the offset up to which a file is known to be synced.
func (n *notes) of(name string) int64 {
	crc := crc32.Checksum([]byte(name), castagnoli)
	for _, note := range n {
		if note.nameCRC == crc {
			return note.offset
		}
	}
	return 0
}

// ring is the places of one kind of file, taken in turn.
type ring struct{ first, places, next int }

// after is the ring of some places of n whose next is behind the newest file's.
func (n *notes) after(first, places int) ring {
	r := ring{first: first, places: places}
	for i, newest := 0, uint64(0); i < places; i++ {
		if number := n[first+i].number; number > newest {
			newest, r.next = number, i+1
		}
	}
	return r
}

func (r *ring) take() (place int) {
	place = r.first + r.next%r.places
	r.next++
	return place
}

// syncedFS keeps syncedFile up to date while Pebble writes manifests and logs.
type syncedFS struct {
	vfs.FS
	dir string // as PathDir gives it

	mu              sync.Mutex
	notes           vfs.File
	earlier         notes // of files that were written before
	text            [noteBytes]byte
	manifests, logs ring
	newestLog       *notedFile // of those that were made here
}

// keepSynced opens syncedFile, and leaves what it says about files that were written before.
func keepSynced(dir string, fs vfs.FS) (*syncedFS, error) {
	all, err := readNotes(dir, fs)
	if err != nil && !errors.Is(err, iofs.ErrNotExist) { // format 1
		return nil, err
	}
	f, err := fs.OpenReadWrite(fs.PathJoin(dir, syncedFile), vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, err
	}
	return &syncedFS{FS: fs, dir: clean(dir, fs), notes: f, earlier: all,
		manifests: all.after(0, manifestNotes), logs: all.after(manifestNotes, allNotes-manifestNotes)}, nil
}

// Unwrap implements vfs.FS.
func (fs *syncedFS) Unwrap() vfs.FS { return fs.FS }

// Create implements vfs.FS.
func (fs *syncedFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return fs.make(name, func() (vfs.File, error) { return fs.FS.Create(name, category) })
}

// ReuseForWrite implements vfs.FS.
func (fs *syncedFS) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return fs.make(newname, func() (vfs.File, error) { return fs.FS.ReuseForWrite(oldname, newname, category) })
}

func (fs *syncedFS) make(name string, create func() (vfs.File, error)) (vfs.File, error) {
	base := fs.PathBase(name)
	kind := &fs.logs
	number, isLog := logNumber(base)
	if !isLog {
		var ok bool
		if number, ok = manifestNumber(base); !ok {
			return create()
		}
		kind = &fs.manifests
	}
	if fs.PathDir(name) != fs.dir { // the files of a copy are not the store's
		return create()
	}
	n := newNote(base, number)
	place, err := fs.forget(kind, n)
	if err != nil {
		return nil, err
	}
	f, err := create()
	if err != nil {
		return nil, err
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if place < 0 {
		place = kind.take()
		fs.earlier[place] = note{}
	}
	noted := &notedFile{File: f, fs: fs, note: n, place: place}
	if isLog {
		fs.newestLog = noted
	}
	return noted, nil
}

// forget takes back what an earlier note says of a file that is about to be made, and returns the note's place; -1 if there is none. If the machine went
// down before the name of a file was durable, another file may get its number, and the old note would be found first.
func (fs *syncedFS) forget(r *ring, n note) (place int, err error) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	for place := r.first; place < r.first+r.places; place++ {
		if fs.earlier[place].nameCRC == n.nameCRC {
			fs.earlier[place] = note{}
			return place, fs.write(place, n)
		}
	}
	return -1, nil
}

func (fs *syncedFS) write(place int, n note) error {
	_, err := fs.notes.WriteAt(n.append(fs.text[:0]), int64(place*noteBytes))
	return err
}

func manifestNumber(base string) (uint64, bool) {
	digits, ok := strings.CutPrefix(base, manifestPrefix)
	number, err := strconv.ParseUint(digits, 10, 64)
	return number, ok && err == nil
}

func logNumber(base string) (uint64, bool) {
	number, _, ok := wal.ParseLogFilename(base)
	return uint64(number), ok && strings.HasSuffix(base, ".log")
}

// Open implements vfs.FS. Of the log that is being written, which a checkpoint copies meanwhile, it shows what is synced: what is behind
// that may change while it is copied, and in a file that is used again it is an older log's.
func (fs *syncedFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	f, err := fs.FS.Open(name, opts...)
	if err != nil || fs.PathDir(name) != fs.dir {
		return f, err
	}
	number, ok := logNumber(fs.PathBase(name))
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if !ok || fs.newestLog == nil || number != fs.newestLog.note.number {
		return f, nil
	}
	return &syncedPart{File: f, left: fs.newestLog.synced}, nil
}

// syncedPart is a log as far as it is synced, read from its beginning.
type syncedPart struct {
	vfs.File
	left int64
}

func (f *syncedPart) Read(p []byte) (int, error) {
	if f.left == 0 {
		return 0, io.EOF
	}
	n, err := f.File.Read(p[:min(int64(len(p)), f.left)])
	f.left -= int64(n)
	return n, err
}

// close ends it. Nothing is lost if it fails.
func (fs *syncedFS) close() { _ = fs.notes.Close() }

// notedFile is a manifest or log that Pebble writes, from its beginning. One goroutine writes and syncs it at a time.
type notedFile struct {
	vfs.File
	fs    *syncedFS
	place int
	note  note // the offset is of what has been written

	synced int64 // guarded by fs.mu
}

func (f *notedFile) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	f.note.offset += int64(n)
	return n, err
}

func (f *notedFile) Sync() error     { return f.noted(f.File.Sync()) }
func (f *notedFile) SyncData() error { return f.noted(f.File.SyncData()) }

// noted notes that all that has been written is synced. If the note cannot be written, the older one stays true.
func (f *notedFile) noted(err error) error {
	if err != nil {
		return err
	}
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	f.synced = f.note.offset
	_ = f.fs.write(f.place, f.note)
	return nil
}

var errMissing = errors.New("is missing")

// IsDamaged says whether a store could not be opened because a log or the manifest is damaged or missing.
func IsDamaged(err error) bool {
	return errors.Is(err, errLogDamaged) || errors.Is(err, errManifestDamaged) || errors.Is(err, errMissing)
}

// checkSynced refuses a store of which something is damaged, or missing, that is known to have been synced. Pebble would take most damage of a manifest or
// a log for its end, and not miss a log.
// Closed says whether the store was closed in order.
func checkSynced(dir string, fs vfs.FS, format kv.Format) (closed bool, err error) {
	all, err := readNotes(dir, fs)
	if errors.Is(err, iofs.ErrNotExist) {
		if format > kv.FirstFormat {
			return false, fmt.Errorf("%s %w, so it cannot be told whether the write-ahead log is complete: "+
				"fetch the file from where the directory was copied from, or make an empty one to do without", fs.PathJoin(dir, syncedFile), errMissing)
		}
		err = nil
	}
	if err == nil {
		_, closed, err = checkFiles(dir, fs, &all)
	}
	return closed, err
}

// checkFiles compares the manifest and the logs that it needs with what is known to have been synced. It returns notes of what is there, and
// whether the newest log was closed.
func checkFiles(dir string, fs vfs.FS, synced *notes) (found notes, closed bool, err error) {
	manifest, unflushed, err := checkManifest(dir, fs, synced)
	if err != nil {
		return found, false, err
	}
	found[0] = manifest
	logs, err := wal.Scan(wal.Dir{FS: fs, Dirname: dir})
	if err != nil {
		return found, false, err
	}
	for _, n := range synced[manifestNotes:] {
		number := wal.NumWAL(n.number)
		if _, there := logs.Get(number); !there && n.offset > 0 && number >= unflushed {
			return found, false, fmt.Errorf("%s %w: the write-ahead log was synced up to offset %d of it", fs.PathJoin(dir, logName(number)), errMissing, n.offset)
		}
	}
	place := manifestNotes
	closed = true
	for _, log := range logs {
		if log.Num < unflushed { // it waits to be used again
			continue
		}
		var end int64
		if end, closed, err = checkLog(dir, fs, log.Num, synced.of(logName(log.Num))); err != nil {
			return found, false, err
		}
		if place < allNotes {
			found[place] = newNote(logName(log.Num), uint64(log.Num))
			found[place].offset = end
			place++
		}
	}
	return found, closed, nil
}

// checkLog returns where a log ends, and whether it was closed.
func checkLog(dir string, fs vfs.FS, number wal.NumWAL, synced int64) (end int64, closed bool, err error) {
	name := fs.PathJoin(dir, logName(number))
	f, err := fs.Open(name)
	if err != nil {
		return 0, false, err
	}
	defer f.Close()
	end, proof, closed, err := scanLog(f, number)
	if err == nil && end < max(synced, proof) {
		err = fmt.Errorf("%s: %w at offset %d, before offset %d up to which it was synced", name, errLogDamaged, end, max(synced, proof))
	}
	return end, closed, err
}
