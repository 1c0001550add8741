package pebble

import (
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/crowfoot-db/crowfoot/kv"
)

// The format of a data directory (kv.Format) is stored in a file of its own, called the mark. The mark holds one of
// these lines:
//
//	crowfoot data directory, format 2
//	crowfoot data directory, format 1, upgrading to 2
//
// To change the mark, a new file is written, synced, and renamed to replace the old one, so there is always one
// complete mark. While an upgrade runs, the mark holds a line of the second form. Releases that only know the old
// format refuse that line, and so never see records of both formats.
const (
	formatFile     = "CROWFOOT"
	formatFileNew  = "CROWFOOT.new" // renamed to formatFile when durable
	formatMagic    = "crowfoot data directory, format "
	formatOnTheWay = ", upgrading to "
)

// engineVersions holds for each format the version of Pebble's own files. Changing a version requires a new format.
var engineVersions = map[kv.Format]pebble.FormatMajorVersion{
	1: pebble.FormatTableFormatV6,
	2: pebble.FormatTableFormatV6,
	3: pebble.FormatTableFormatV6,
	4: pebble.FormatTableFormatV6,
}

// lockFile is the name of Pebble's lock file. If a process stopped after it had made the directory and before it wrote
// the mark, the directory contains only this file.
const lockFile = "LOCK"

// found describes what judge has found in a directory.
type found struct {
	marked bool
	format kv.Format // format in the mark; kv.LastFormat if there is no mark
	store  bool      // Pebble's files are there
}

// claim locks a data directory. dir must have a format that this release can read, or be empty or missing. In a new
// directory, claim writes a mark with the last format.
//
// claim checks the directory before it writes anything to it. The mark is the first file of a new directory and is
// durable before the store is made. So after a crash in between, the next claim treats the directory as a new one.
func claim(dir string, fs vfs.FS) (*pebble.Lock, found, error) {
	if _, err := judge(dir, fs); err != nil {
		return nil, found{}, err
	}
	if err := makeDir(dir, fs); err != nil {
		return nil, found{}, fmt.Errorf("make data directory %s: %w", dir, err)
	}
	lock, err := lockDirectory(dir, fs)
	if err != nil {
		return nil, found{}, err
	}
	f, err := judge(dir, fs)
	if err == nil && !f.marked {
		err = writeMark(dir, fs, mark{format: f.format})
	}
	if err != nil {
		_ = lock.Close()
		return nil, found{}, err
	}
	return lock, f, nil
}

func lockDirectory(dir string, fs vfs.FS) (*pebble.Lock, error) {
	lock, err := pebble.LockDirectory(dir, fs)
	if notAllowed(err) {
		return nil, errNotAllowed(dir, err)
	}
	if errors.Is(err, syscall.EAGAIN) {
		if holder := holderOf(dir, fs); holder > 0 {
			return nil, fmt.Errorf("data directory %s is in use by another process, %d", dir, holder)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("data directory %s is in use by another process (or cannot be locked): %w", dir, err)
	}
	return lock, nil
}

// holderOf returns the id of the process that has locked a directory; 0 if it is not known.
func holderOf(dir string, fs vfs.FS) int32 {
	f, err := fs.Open(fs.PathJoin(dir, lockFile))
	if err != nil {
		return 0
	}
	defer f.Close()
	if f.Fd() == vfs.InvalidFd { // the file is in memory
		return 0
	}
	return lockHolder(f.Fd())
}

// judge returns an error unless dir is a data directory of a format that this release can read, or is empty or
// missing. It writes nothing.
func judge(dir string, fs vfs.FS) (found, error) {
	names, err := fs.List(dir)
	if errors.Is(err, iofs.ErrNotExist) {
		return found{format: kv.LastFormat}, nil
	}
	if err != nil {
		return found{}, fmt.Errorf("read data directory %s: %w", dir, err)
	}
	hasMark, other := false, ""
	for _, name := range names {
		switch {
		case name == formatFile:
			hasMark = true
		case name != lockFile && name != formatFileNew:
			other = name
		}
	}
	if !hasMark {
		if slices.ContainsFunc(names, isEngineFile) {
			return found{}, fmt.Errorf("%s is not a Crowfoot data directory, but an unfinished checkpoint or another program's: it holds files of the storage engine and no file %s; "+
				"choose another directory or an empty one", dir, formatFile)
		}
		if other != "" {
			return found{}, fmt.Errorf("%s is not a Crowfoot data directory: it holds %q and no file %s; choose another directory or an empty one", dir, other, formatFile)
		}
		return found{format: kv.LastFormat}, nil
	}
	m, err := readMark(dir, fs)
	if err != nil {
		return found{}, err
	}
	if err := m.readable(dir); err != nil {
		return found{}, err
	}
	hasStore, err := judgeStore(dir, fs, names)
	return found{marked: true, format: m.format, store: hasStore}, err
}

// isEngineFile reports whether a file is of a kind that every Pebble store has. In a checkpoint, Pebble makes the files
// of these kinds first, so that even an unfinished checkpoint has one of them and judge refuses it.
func isEngineFile(name string) bool {
	return strings.HasPrefix(name, "OPTIONS-") || strings.HasPrefix(name, "marker.")
}

// judgeStore reports whether a directory with a mark contains a store. It returns an error if the directory once had a
// store and has lost it.
func judgeStore(dir string, fs vfs.FS, names []string) (exists bool, err error) {
	desc, err := pebble.Peek(dir, fs)
	if err != nil {
		return false, fmt.Errorf("data directory %s is damaged: %w", dir, err)
	}
	if desc.Exists {
		return true, nil
	}
	for _, name := range names {
		if strings.HasSuffix(name, ".sst") || strings.HasSuffix(name, ".log") {
			return false, fmt.Errorf("data directory %s is damaged: it holds %s but no manifest that names it", dir, name)
		}
	}
	return false, nil
}

// Format implements kv.Store.
func (s *Store) Format() kv.Format { return s.format }

// Upgrade implements kv.Store.
func (s *Store) Upgrade(next kv.Format, run func() error) error {
	if err := writeMark(s.dir, s.fs, mark{format: s.format, next: next}); err != nil {
		return err
	}
	if err := run(); err != nil {
		return fmt.Errorf("upgrade data directory %s from format %d to format %d: %w", s.dir, s.format, next, err)
	}
	if err := s.db.RatchetFormatMajorVersion(engineVersions[next]); err != nil {
		return fmt.Errorf("upgrade data directory %s to Pebble's format %s: %w", s.dir, engineVersions[next], err)
	}
	// The sync makes all records that the function run has written durable before the mark changes.
	if err := s.db.LogData(nil, pebble.Sync); err != nil {
		return fmt.Errorf("upgrade data directory %s: %w", s.dir, err)
	}
	if err := writeMark(s.dir, s.fs, mark{format: next}); err != nil {
		return err
	}
	s.format = next
	return nil
}

// mark is the content of formatFile.
type mark struct {
	format kv.Format
	next   kv.Format // 0, or the new format of an upgrade that has begun
}

func (m mark) String() string {
	if m.next == 0 {
		return fmt.Sprintf("%s%d\n", formatMagic, m.format)
	}
	return fmt.Sprintf("%s%d%s%d\n", formatMagic, m.format, formatOnTheWay, m.next)
}

func parseMark(text string) (mark, bool) {
	rest, ok := strings.CutPrefix(text, formatMagic)
	if !ok {
		return mark{}, false
	}
	format, next, upgrading := strings.Cut(strings.TrimSuffix(rest, "\n"), formatOnTheWay)
	var m mark
	n, err := strconv.Atoi(format)
	m.format = kv.Format(n)
	if upgrading && err == nil {
		n, err = strconv.Atoi(next)
		m.next = kv.Format(n)
	}
	return m, err == nil && m.format >= kv.FirstFormat && m.String() == text
}

// readable returns an error if a later release has written the mark.
func (m mark) readable(dir string) error {
	if max(m.format, m.next) <= kv.LastFormat {
		return nil
	}
	has := fmt.Sprintf("has format %d", m.format)
	if m.next != 0 {
		has += fmt.Sprintf(" and is being upgraded to format %d", m.next)
	}
	return fmt.Errorf("data directory %s %s, and this release of Crowfoot reads formats %d to %d: start the release that wrote it, or a later one",
		dir, has, kv.FirstFormat, kv.LastFormat)
}

func readMark(dir string, fs vfs.FS) (mark, error) {
	f, err := fs.Open(fs.PathJoin(dir, formatFile))
	if err != nil {
		return mark{}, fmt.Errorf("read data directory %s: %w", dir, err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 256))
	if err != nil {
		return mark{}, fmt.Errorf("read data directory %s: %w", dir, err)
	}
	m, ok := parseMark(string(text))
	if !ok {
		return mark{}, fmt.Errorf("data directory %s is damaged or not Crowfoot's: its file %s does not say which format it has", dir, formatFile)
	}
	return m, nil
}

// writeMark replaces the mark of a directory by m, durably.
func writeMark(dir string, fs vfs.FS, m mark) error {
	if err := replaceMark(dir, fs, m); err != nil {
		return fmt.Errorf("write data directory %s: %w", dir, err)
	}
	return nil
}

func replaceMark(dir string, fs vfs.FS, m mark) error {
	temporary := fs.PathJoin(dir, formatFileNew)
	f, err := fs.Create(temporary, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	if _, err := f.Write([]byte(m.String())); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := fs.Rename(temporary, fs.PathJoin(dir, formatFile)); err != nil {
		return err
	}
	return syncDir(dir, fs)
}

// dirMode is the mode of new data directories: only the server's user may access them. An existing directory keeps its
// mode.
const dirMode = 0o700

// makeDir makes dir if it does not exist, and makes its entry in the parent directory durable.
func makeDir(dir string, fs vfs.FS) error {
	if _, err := fs.Stat(dir); err == nil {
		return nil
	}
	if err := fs.MkdirAll(dir, dirMode); err != nil {
		return err
	}
	return syncDir(fs.PathDir(dir), fs)
}

// notAllowed reports whether err says that this process may not read or write a file, because of the file's owner and
// mode or because the file system is read-only.
func notAllowed(err error) bool {
	return errors.Is(err, iofs.ErrPermission) || errors.Is(err, syscall.EROFS)
}

func errNotAllowed(dir string, err error) error {
	return fmt.Errorf("data directory %s must belong to the user who starts the server (this is user %d), on a file system that can be written: %w",
		dir, os.Getuid(), err)
}

func syncDir(dir string, fs vfs.FS) error {
	d, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
