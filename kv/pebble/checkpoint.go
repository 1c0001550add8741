package pebble

import (
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Checkpoint copies the store, as it is at one moment, to a new directory, and syncs the copy. The parameter to is the
// path of the directory. The directory must not exist yet, but its parent must. Files that do not change any more
// become hard links if the file system supports them. Reads and writes can run at the same time. The mark of a data
// directory, the file CROWFOOT, is written to the copy only when the rest of the copy is durable. So Open refuses an
// incomplete copy, which has no mark. If ctx ends before the copy is complete, Checkpoint removes the copy. If the
// store has known damage, Checkpoint makes the copy and returns an error.
func (s *Store) Checkpoint(ctx context.Context, to string) error {
	if err := s.guard.failure(); err != nil {
		return err
	}
	to = filepath.Clean(to)
	if err := s.judgeTarget(to); err != nil {
		return err
	}
	if !s.guard.copying.CompareAndSwap(nil, &ctx) {
		return errors.New("another copy of the data directory is being made")
	}
	defer s.guard.copying.Store(nil)
	if err := s.copy(to); err != nil {
		return err
	}
	if err := s.guard.failure(); err != nil {
		return err
	}
	if n := s.work.damage.count(); n > 0 {
		return fmt.Errorf("the copy in %s is made, but files of the data directory are damaged, and so it is: %d reads have met damage since the server was started; keep older copies", to, n)
	}
	return nil
}

// judgeTarget returns an error if no copy can be made in a directory: if the directory exists, if its parent does not
// exist, or if it lies inside the data directory.
func (s *Store) judgeTarget(to string) error {
	if _, err := s.fs.Stat(to); err == nil {
		return fmt.Errorf("%s exists already; a copy needs a directory of its own", to)
	} else if !errors.Is(err, iofs.ErrNotExist) {
		return err
	}
	parent := s.fs.PathDir(to)
	if _, err := s.fs.Stat(parent); err != nil {
		return fmt.Errorf("%s must be there before a copy is made in it: %w", parent, err)
	}
	inside, err := filepath.Rel(resolved(s.dir), resolved(parent))
	if err == nil && filepath.IsLocal(inside) {
		return fmt.Errorf("%s lies in the data directory %s; a copy needs a directory outside of it", to, s.dir)
	}
	return nil
}

// resolved returns the absolute path of a directory without symbolic links. If the operating system does not know the
// directory, for example because it is only in a file system in memory, resolved does not replace symbolic links.
func resolved(dir string) string {
	whole, err := filepath.Abs(dir)
	if err != nil {
		return dir
	}
	if resolved, err := filepath.EvalSymlinks(whole); err == nil {
		return resolved
	}
	return whole
}

func (s *Store) copy(to string) error {
	synced, err := readNotes(s.dir, s.fs)
	if err != nil && !errors.Is(err, iofs.ErrNotExist) { // an operator may have deleted syncedFile
		return fmt.Errorf("copy the data directory to %s: %w", to, err)
	}
	if err := s.db.Checkpoint(to, pebble.WithFlushedWAL()); err != nil {
		return fmt.Errorf("copy the data directory to %s: %w", to, err)
	}
	if err := noteCopy(to, s.fs, &synced); err != nil {
		return errors.Join(fmt.Errorf("copy the data directory to %s: %w", to, err), s.fs.RemoveAll(to))
	}
	if err := writeMark(to, s.fs, mark{format: s.format}); err != nil {
		return errors.Join(err, s.fs.RemoveAll(to))
	}
	return nil
}

// noteCopy stores in a copy how long its manifest and logs are, so that Open refuses the copy if these files are later
// damaged or lost. It fails if a file of the copy lacks bytes that were already synced in the store when the copy
// began.
func noteCopy(to string, fs vfs.FS, synced *notes) error {
	found, _, err := checkFiles(to, fs, synced)
	if err != nil {
		return err
	}
	return found.store(to, fs)
}
