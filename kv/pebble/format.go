package pebble

import (
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// The format of a data directory stands in a file of its own. It changes when a
// release could not read, or would misread, what an older one wrote.
//
//	1  first
const (
	formatFile    = "CROWFOOT"
	formatFileNew = "CROWFOOT.new" // renamed to formatFile when durable
	formatMagic   = "crowfoot data directory, format "
	formatNow     = formatMagic + "1\n"
)

// lockFile is the name of Pebble's lock, which a process that was stopped between
// making a directory and marking it leaves behind.
const lockFile = "LOCK"

// claim makes sure that dir is a data directory of this format, or an empty one
// which it marks as such, and takes its lock. Fresh says that it holds no store yet.
//
// The directory is judged before anything is written to it. The mark is the
// first file of a new directory and durable before the store is made, so a crash
// in between leaves a directory that is claimed again as a fresh one.
func claim(dir string, fs vfs.FS) (lock *pebble.Lock, fresh bool, err error) {
	if _, err := judge(dir, fs); err != nil {
		return nil, false, err
	}
	if err := makeDir(dir, fs); err != nil {
		return nil, false, fmt.Errorf("make data directory %s: %w", dir, err)
	}
	lock, err = pebble.LockDirectory(dir, fs)
	if err != nil {
		return nil, false, fmt.Errorf("data directory %s is in use by another process (or cannot be locked): %w", dir, err)
	}
	state, err := judge(dir, fs)
	if err == nil && state == unmarked {
		err = mark(dir, fs)
	}
	if err != nil {
		_ = lock.Close()
		return nil, false, err
	}
	return lock, state != complete, nil
}

// condition is what a directory that may be opened holds.
type condition int

const (
	unmarked condition = iota // nothing, or it does not exist
	marked                    // the mark, but no store
	complete                  // mark and store
)

// judge reads dir and refuses what is not a data directory of this format. It writes nothing.
func judge(dir string, fs vfs.FS) (condition, error) {
	names, err := fs.List(dir)
	if errors.Is(err, iofs.ErrNotExist) {
		return unmarked, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read data directory %s: %w", dir, err)
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
		if other != "" {
			return 0, fmt.Errorf("%s is not a Crowfoot data directory: it holds %q and no file %s; choose another directory or an empty one", dir, other, formatFile)
		}
		return unmarked, nil
	}
	if err := readMark(dir, fs); err != nil {
		return 0, err
	}
	return judgeStore(dir, fs, names)
}

// judgeStore tells a directory that never got its store from one that lost it.
func judgeStore(dir string, fs vfs.FS, names []string) (condition, error) {
	desc, err := pebble.Peek(dir, fs)
	if err != nil {
		return 0, fmt.Errorf("data directory %s is damaged: %w", dir, err)
	}
	if desc.Exists {
		return complete, nil
	}
	for _, name := range names {
		if strings.HasSuffix(name, ".sst") || strings.HasSuffix(name, ".log") {
			return 0, fmt.Errorf("data directory %s is damaged: it holds %s but no manifest that names it", dir, name)
		}
	}
	return marked, nil
}

func readMark(dir string, fs vfs.FS) error {
	f, err := fs.Open(fs.PathJoin(dir, formatFile))
	if err != nil {
		return fmt.Errorf("read data directory %s: %w", dir, err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 256))
	switch {
	case err != nil:
		return fmt.Errorf("read data directory %s: %w", dir, err)
	case string(text) == formatNow:
		return nil
	case strings.HasPrefix(string(text), formatMagic):
		return fmt.Errorf("data directory %s has format %q, which this release of Crowfoot cannot read", dir,
			strings.TrimSpace(strings.TrimPrefix(string(text), formatMagic)))
	}
	return fmt.Errorf("data directory %s is damaged or not Crowfoot's: its file %s does not say which format it has", dir, formatFile)
}

func mark(dir string, fs vfs.FS) error {
	err := writeMark(dir, fs)
	if err != nil {
		return fmt.Errorf("write data directory %s: %w", dir, err)
	}
	return nil
}

func writeMark(dir string, fs vfs.FS) error {
	temporary := fs.PathJoin(dir, formatFileNew)
	f, err := fs.Create(temporary, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	if _, err := f.Write([]byte(formatNow)); err != nil {
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

// makeDir makes dir, and makes its name durable in the directory above.
func makeDir(dir string, fs vfs.FS) error {
	if _, err := fs.Stat(dir); err == nil {
		return nil
	}
	if err := fs.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return syncDir(fs.PathDir(dir), fs)
}

func syncDir(dir string, fs vfs.FS) error {
	d, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
