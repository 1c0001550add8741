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

// syncedFile is the name of a file that records how far the newest manifests and logs have been synced. It holds notes
// of 20 bytes, one for each file:
//
//	number of the file (8 bytes, big-endian), offset (8), CRC-32C of the file's name and both numbers (4)
//
// The first manifestNotes notes are for manifests, the others for logs. The note of a new file replaces the note of the
// oldest file of its kind. The note of a file is overwritten after every sync of the file, before the commits that wait
// for the sync are acknowledged.
//
// syncedFile is not synced itself. After a crash of the process it is exact, since the operating system has its
// contents. After a crash of the machine it may be old or empty. Its notes are true even then, since each file was
// synced at least up to the offset in its note. syncedFile always exists in a store of format 2 or later, since its
// name is durable before the store has rows. If a log that has a note is missing, either the manifest says that all of
// it is in tables, or the log is lost.
const syncedFile = "CROWFOOT.synced"

const (
	noteBytes = 20
	// manifestNotes is the number of notes for manifests: one for the current manifest and one for a new one that
	// Pebble is beginning.
	manifestNotes = 2
	// allNotes is the number of all notes. It is more than enough for two manifests and the logs of all memtables.
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

// parseNote parses the note at index place of syncedFile. It returns the zero note if the bytes are not a valid note.
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

// notes holds the notes of syncedFile, in the order of the file.
type notes [allNotes]note

// readNotes reads syncedFile. If a note was only partly written when the machine crashed, it counts as missing.
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

// makeNotes makes syncedFile, durably, without a note of any file.
func makeNotes(dir string, fs vfs.FS) error {
	return new(notes).store(dir, fs)
}

// store replaces syncedFile by the notes n, durably.
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

// of returns the offset up to which the file with this name is known to be synced; 0 if nothing is known.
func (n *notes) of(name string) int64 {
	crc := crc32.Checksum([]byte(name), castagnoli)
	for _, note := range n {
		if note.nameCRC == crc {
			return note.offset
		}
	}
	return 0
}

// ring gives out the indexes of the notes for one kind of file in turn.
type ring struct{ first, places, next int }

// after returns a ring for the notes of one kind of file. The parameter first is the index of the first of these notes,
// and places is their number. The ring starts with the note that follows the note of the newest file.
func (n *notes) after(first, places int) ring {
	r := ring{first: first, places: places}
	for i, newest := 0, uint64(0); i < places; i++ {
		if number := n[first+i].number; number > newest {
			newest, r.next = number, i+1
		}
	}
	return r
}

func (r *ring) nextPlace() (place int) {
	place = r.first + r.next%r.places
	r.next++
	return place
}

// syncedFS updates syncedFile while Pebble writes manifests and logs.
type syncedFS struct {
	vfs.FS
	dir string // the data directory, in the form that PathDir returns

	mu              sync.Mutex
	notes           vfs.File        // syncedFile
	earlier         notes           // notes of files that were written before the store was opened
	text            [noteBytes]byte // buffer for the encoded form of a note
	manifests, logs ring
	newestLog       *notedFile // the newest log made since the store was opened; nil before the first
}

// keepSynced opens syncedFile for writing and returns a syncedFS. It keeps the notes of files that were written
// before the store was opened.
func keepSynced(dir string, fs vfs.FS) (*syncedFS, error) {
	all, err := readNotes(dir, fs)
	if err != nil && !errors.Is(err, iofs.ErrNotExist) { // a store of format 1 may have no syncedFile
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
	if fs.PathDir(name) != fs.dir { // the files of a copy are not files of the store
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
		place = kind.nextPlace()
		fs.earlier[place] = note{}
	}
	noted := &notedFile{File: f, fs: fs, note: n, place: place}
	if isLog {
		fs.newestLog = noted
	}
	return noted, nil
}

// forget is called with the note n of a file that is about to be made. If there is an earlier note with the same
// number, forget overwrites it and returns its index; otherwise it returns -1. Such a note exists if the machine
// crashed before the name of the earlier file was durable, and the new file got the same number. Without forget, a
// reader would find the old note first.
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

// Open implements vfs.FS. If a checkpoint opens the log that is being written, it can read only the synced part. The
// part after it may change while it is copied, and in a reused file it belongs to an older log.
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

// syncedPart reads a log from its beginning up to the end of its synced part.
type syncedPart struct {
	vfs.File
	left int64 // how many bytes of the synced part were not read yet
}

func (f *syncedPart) Read(p []byte) (int, error) {
	if f.left == 0 {
		return 0, io.EOF
	}
	n, err := f.File.Read(p[:min(int64(len(p)), f.left)])
	f.left -= int64(n)
	return n, err
}

// close closes syncedFile. It ignores an error, because no data can be lost.
func (fs *syncedFS) close() { _ = fs.notes.Close() }

// notedFile is a manifest or log that Pebble writes from its beginning. Only one goroutine at a time may write and
// sync it.
type notedFile struct {
	vfs.File
	fs    *syncedFS
	place int  // index of the file's note in syncedFile
	note  note // its offset is the number of bytes written

	synced int64 // how many bytes of the file are synced; guarded by fs.mu
}

func (f *notedFile) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	f.note.offset += int64(n)
	return n, err
}

func (f *notedFile) Sync() error     { return f.noted(f.File.Sync()) }
func (f *notedFile) SyncData() error { return f.noted(f.File.SyncData()) }

// noted is called with the result of a sync of the file. After a successful sync, it writes the note that all written
// bytes are synced. If the note cannot be written, the older note stays, which is still true. If the sync failed, noted
// returns its error.
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

// IsDamaged reports whether err says that a store could not be opened because a log or the manifest is damaged, or
// because a log or syncedFile is missing.
func IsDamaged(err error) bool {
	return errors.Is(err, errLogDamaged) || errors.Is(err, errManifestDamaged) || errors.Is(err, errMissing)
}

// checkSynced returns an error if the manifest or a log of a store is missing or is damaged in a part that is known to
// have been synced. Pebble would take most damage for the end of the file, and would not notice a missing log. closed
// reports whether the store was closed in an orderly way.
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

// checkFiles compares the manifest, and the logs that the manifest needs, with the notes in the parameter synced, which
// say how far each file was synced. It returns notes with the lengths of these files. closed reports whether the newest
// log has a trailer, which Pebble writes when it closes a log.
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
		if log.Num < unflushed { // all of this log is in tables; Pebble will reuse the file
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

// checkLog returns the offset of a log's end, and whether the log was closed. It returns an error if the log is damaged
// in a part that was synced. The parameter synced is an offset up to which the log was synced; the log itself may prove
// a greater one.
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
